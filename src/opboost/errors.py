"""Every error that OpBoost raises on purpose.

The tree::

    OpBoostError
    ├── ParameterError (ValueError)     a mechanism, grid or budget that cannot be built
    │   ├── ConfigError                 ... in a configuration file
    │   └── MissingPackageError         ... without a package that it needs (ImportError)
    ├── DataError (ValueError)          a table that does not fit what was declared
    │   └── ColumnError                 ... in one named column
    ├── PrivacyError                    a request that would break a promise
    ├── PeerError                       another party, or the connection to it
    │   └── WireError                   ... sent bytes that are not a valid message
    ├── InferredBoundsWarning           bounds were taken from the data (a warning)
    ├── DroppedIndexWarning             a table's index was left out of a release (a warning)
    └── PlatformWarning                 the system lacks a protection, such as locks (a warning)

A message names the object, the rule, what was found, and the next step.  It is one line of bounded
length that any terminal can show, whatever a file or a peer put into it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters that are printable to Python but show nothing: fillers, variation selectors."""

Refusal = Literal["cap", "declaration", "rows"]
"""Why a feature party refuses a release; a peer learns nothing else about the refusal."""


class OpBoostError(Exception):
    """The base class of all errors that this package raises on purpose.

    >>> str(OpBoostError("A name is \\x1b[31m red.\\n"))
    'A name is \\\\x1b[31m red.'
    """

    refusal: Refusal | None = None
    """What a peer may learn about a refused release; None if it may learn nothing."""

    def __str__(self) -> str:
        return shown(super().__str__())


class ParameterError(OpBoostError, ValueError):
    """A parameter has a value that is not allowed."""


class ConfigError(ParameterError):
    """A configuration file is contradictory, wrong or incomplete."""


class MissingPackageError(ParameterError, ImportError):
    """A request needs a package that is not installed."""


class DataError(OpBoostError, ValueError):
    """A table does not fit what was declared about it.

    ``detail`` may show a raw value to the person who owns the data.  ``public`` is the message
    without ``detail``, the only form that may be sent to a peer.  ``logged`` names the row but
    never its value, because others may read logs and files later.

    >>> error = DataError("NaN has no cell", detail="1 of 9 rows", hint="Fill the gaps.", row=3)
    >>> str(error)
    'NaN has no cell (1 of 9 rows). Fill the gaps.'
    >>> error.logged
    'NaN has no cell (first in row 3). Fill the gaps.'
    >>> str(DataError("Did you mean (0, 20)?"))
    'Did you mean (0, 20)?'
    """

    def __init__(
        self, rule: str, *, detail: str = "", hint: str = "", row: int | None = None
    ) -> None:
        self.rule, self.detail, self.hint, self.row = rule, detail, hint, row
        super().__init__(rule, detail, hint)

    @property
    def public(self) -> str:
        """The message without any value of the data."""
        stop = "" if self.rule.endswith("?") else "."
        return shown(f"{self.rule}{stop} {self.hint}")

    @property
    def logged(self) -> str:
        """The message with the number of the row, and without any value."""
        if self.row is None:
            return self.public
        return f"{self.rule} (first in row {self.row}). {self.hint}".rstrip()

    def __str__(self) -> str:
        return shown(f"{self.rule} ({self.detail}). {self.hint}") if self.detail else self.public

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__)))


class ColumnError(DataError):
    """One column does not fit what was declared about it; ``.column`` is its name."""

    def __init__(
        self,
        column: object,
        rule: str,
        *,
        detail: str = "",
        hint: str = "",
        row: int | None = None,
    ) -> None:
        self.column = column
        super().__init__(f"Column {column!r} {rule}", detail=detail, hint=hint, row=row)

    @classmethod
    def of(cls, column: object, error: DataError | ParameterError) -> ColumnError:
        """Return the same error with the column's name in front."""
        if isinstance(error, ParameterError):
            return cls(column, f"cannot be set up: {str(error).rstrip('.')}")
        return cls(
            column,
            f"does not fit: {error.rule}",
            detail=error.detail,
            hint=error.hint,
            row=error.row,
        )


def _rebuild(kind: type[DataError], state: dict[str, object]) -> DataError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    error.args = (error.rule, error.detail, error.hint)
    return error


def unseen(text: str) -> str:
    """Return the first character that a reader cannot see, or that changes how others are shown.

    These are control characters, direction marks, zero-width characters and unassigned code
    points; a space of any kind counts as visible.  Return an empty text if there is none.

    >>> unseen("größer als 3 €"), unseen("age\\x1b[2K") == "\\x1b", unseen("a\\u202eb") == "\\u202e"
    ('', True, True)
    """
    if text.isascii() and text.isprintable():
        return ""
    return next((c for c in text if _is_unseen(c)), "")


def _is_unseen(character: str) -> bool:
    if _BLANK.match(character):
        return True
    return not character.isprintable() and unicodedata.category(character) != "Zs"


def visible(text: object, keep: str = "") -> str:
    """Return a text with every unseen character spelt out, except those in ``keep``.

    >>> print(visible("age\\x1b[2K\\nbudget: 0"))
    age\\x1b[2K\\nbudget: 0
    """
    line = str(text)
    if not unseen(line):
        return line
    return "".join(ascii(c)[1:-1] if c not in keep and _is_unseen(c) else c for c in line)


def shown(text: object, most: int = 2000) -> str:
    """Return a text as one line of bounded length, without characters that a terminal acts on."""
    line = visible(" ".join(str(text)[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def exit_status(error: OpBoostError) -> int:
    """Return the exit status of a command that ends with this error.

    >>> exit_status(PrivacyError("no")), exit_status(DataError("no")), exit_status(PeerError("no"))
    (3, 5, 4)
    """
    if isinstance(error, ParameterError):
        return 2
    if isinstance(error, PrivacyError):
        return 3
    if isinstance(error, PeerError):
        return 4
    return 5 if isinstance(error, DataError) else 1


def in_words(error: BaseException) -> str:
    """Return another program's error message as the end of a sentence, without its full stop."""
    return shown(error, 300).rstrip(".")


@contextmanager
def refusing(kind: Refusal) -> Iterator[None]:
    """Mark errors that this package raises inside the block with the reason that a peer may learn.

    >>> try:
    ...     with refusing("rows"):
    ...         raise DataError("NaN has no cell")
    ... except DataError as error:
    ...     error.refusal
    'rows'
    """
    try:
        yield
    except OpBoostError as error:
        error.refusal = error.refusal or kind
        raise


class PrivacyError(OpBoostError):
    """A request would break a privacy promise."""


class PeerError(OpBoostError):
    """Another party broke the protocol, or the connection to it failed."""


class WireError(PeerError):
    """A peer's bytes are not a valid message: altered, cut short, or of another version or kind."""


class InferredBoundsWarning(UserWarning):
    """Bounds were computed from the data, so the column's extremes are revealed."""


class DroppedIndexWarning(UserWarning):
    """The index of a table is left out of its release: it may hold an ID or a raw value."""


class PlatformWarning(UserWarning):
    """This operating system lacks a protection that others have; OpBoost continues without it."""
