"""The format of a table's CSV files: separator, encoding, decimal mark."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from opboost.errors import ParameterError

_NAMES = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """The separator, encoding and decimal mark of CSV files.

    ``separator`` is None if none was given.  It is then a comma, and a file that seems to have
    another separator is refused.

    >>> CsvFormat(separator="tab", encoding="latin-1", decimal=",").separator
    '\\t'
    """

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.separator is not None:
            separator = _NAMES.get(self.separator, self.separator)
            if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
                raise ParameterError(
                    "separator must be one character, such as ';', '|' or 'tab'; "
                    f"got {separator!r}."
                )
            object.__setattr__(self, "separator", separator)
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ','; got {self.decimal!r}.")
        try:
            "a".encode(self.encoding)
        except (LookupError, ValueError):
            raise ParameterError(
                f"encoding {self.encoding!r} is unknown. Write 'utf-8', 'latin-1', 'cp1252' or "
                "'utf-16'."
            ) from None

    @property
    def delimiter(self) -> str:
        """The character between two fields."""
        return self.separator or ","

    @property
    def is_utf8(self) -> bool:
        """Whether text is UTF-8, as it is by default."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    def settings(self) -> dict[str, str]:
        """Return the settings that differ from the defaults, under their names in ``[data]``."""
        usual = CsvFormat()
        names = ("separator", "encoding", "decimal")
        return {n: getattr(self, n) for n in names if getattr(self, n) != getattr(usual, n)}


PLAIN_CSV = CsvFormat()
"""Commas, UTF-8 and decimal points."""
