"""Row keys: ID columns under a declared normalisation, the same at every party."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from opboost.columns.row_ids import Spelling, canonical, id_bytes, plain_ids
from opboost.errors import DataError, ParameterError
from opboost.storage.framing import framed

Digests = np.ndarray[Any, np.dtype[np.uint8]]
"""One row of 32 bytes per key."""

_DOMAIN = b"opboost row key 1\0"

_PIECE_KEYS = 16_384
"""How many keys are Python objects at a time; an object is several times as large as its key."""


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How two spellings of an ID may differ, and the parts of an ID.

    By default, IDs are compared in the canonical form that a ledger also uses: NFKC, case-folded
    and trimmed.  :meth:`exact` is for IDs that differ only in case; it needs a ledger with
    ``ids="exact"``.

    ``parts`` names the parts of an ID that spans several columns, in the order in which every party
    lists its columns; keys of other parts, or of the same parts in another order, never match.

    >>> Normalisation().text("  Ａb-７ ")
    'ab-7'
    """

    trim: bool = True
    case: Literal["keep", "lower", "upper", "fold"] = "fold"
    unicode: Literal["none", "NFC", "NFKC"] = "NFKC"
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.parts)) < len(self.parts) or not all(self.parts):
            raise ParameterError(f"parts are different names; got {list(self.parts)}.")

    @classmethod
    def exact(cls, parts: tuple[str, ...] = ()) -> Normalisation:
        """Return the rule by which IDs match only if all their characters are the same."""
        return cls(trim=False, case="keep", unicode="none", parts=parts)

    @property
    def spelling(self) -> Spelling | None:
        """The ledger's spelling with the same rules: ``"canonical"``, ``"exact"`` or None."""
        if self == Normalisation(parts=self.parts):
            return "canonical"
        return "exact" if self == Normalisation.exact(self.parts) else None

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse columns that do not match the parts of an ID one by one, in order."""
        named = list(self.parts)
        if len(names) > 1 and not named:
            raise ParameterError(
                f"The ID is made of {len(names)} columns, and the parties have not agreed on its "
                'parts. Name them in the job file: [align] parts = ["branch", "number"], in the '
                "order in which every party lists its columns."
            )
        if named and len(names) != len(named):
            raise ParameterError(
                f"The job's IDs have {len(named)} parts ({', '.join(named)}), this party's "
                f"{len(names)}. List a column for each part, in that order, as id under [align]."
            )
        if sorted(names) == sorted(named) and list(names) != named:
            raise ParameterError(
                f"The job's IDs have the parts {', '.join(named)}, and this party lists "
                f"{', '.join(names)}. List them in that order as id under [align]."
            )

    def text(self, value: str) -> str:
        """Return the normal form of a text; normalising that again changes nothing."""
        if self.spelling == "canonical":
            return canonical(value)
        value = self._composed(value)
        if self.case == "fold":
            value = self._composed(self._composed(value.casefold()).casefold())
        elif self.case == "lower":
            value = self._composed(value.lower())
        elif self.case == "upper":
            value = self._composed(value.upper())
        return value.strip() if self.trim else value

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return a column of IDs in normal form; values that are not text are unchanged."""
        if self.spelling == "exact":
            return values
        return [self.text(v) if isinstance(v, str) else v for v in values]

    def _composed(self, value: str) -> str:
        return value if self.unicode == "none" else unicodedata.normalize(self.unicode, value)


def row_keys(
    columns: Sequence[Sequence[Any]], names: Sequence[str], rule: Normalisation, first: int = 0
) -> list[bytes]:
    """Return each row's key: the names of the parts, then the IDs in normal form, kept apart.

    ``first`` is the number of the first row, which errors refer to.
    """
    spelt = [rule.column(c) for c in columns]
    for column, name in zip(spelt, names, strict=True):
        _refuse_invisible(column, name, first)
    keys = id_bytes(spelt, names, first)
    if not rule.parts:
        return keys
    rule.check_columns(names)
    parts = framed(part.encode() for part in rule.parts)
    return [framed((parts, key)) for key in keys]


def table_keys(
    table: pa.Table, names: Sequence[str], rule: Normalisation, first: int = 0
) -> list[bytes]:
    """Return the keys of a table's rows, as :func:`row_keys` does, but faster for plain IDs."""
    found: list[bytes] = key_array(table, names, rule, first).to_pylist()
    return found


def key_array(
    table: pa.Table, names: Sequence[str], rule: Normalisation, first: int = 0
) -> pa.LargeBinaryArray:
    """Return the keys of :func:`table_keys` as an array."""
    if len(names) == 1 and rule.spelling is not None and not rule.parts:
        sure = plain_ids(table.column(names[0]), rule.spelling)
        if sure is not None:
            return sure
    keys = row_keys([table.column(n).to_pylist() for n in names], names, rule, first)
    return pa.array(keys, pa.large_binary())


def _refuse_invisible(column: Sequence[Any], name: str, first: int) -> None:
    """Refuse invisible characters, such as a soft hyphen, which no normal form removes."""
    for row, value in enumerate(column, first):
        if isinstance(value, str) and not value.isprintable() and _unseen(value.strip()):
            raise DataError(
                f"An ID in column {name!r} contains an invisible character",
                detail=f"row {row} holds {value!a}",
                hint="Remove it: an ID without it would not match this one.",
                row=row,
            )


def _unseen(value: str) -> bool:
    return any(unicodedata.category(c) in ("Cc", "Cf") for c in value)


def key_digests(keys: Sequence[bytes] | pa.LargeBinaryArray) -> Digests:
    """Return the SHA-256 digest of each key; digests are blinded, and define the rows' order."""
    found = np.empty((len(keys), 32), dtype=np.uint8)
    for start in range(0, len(keys), _PIECE_KEYS):
        piece = keys[start : start + _PIECE_KEYS]
        some = piece.to_pylist() if isinstance(piece, pa.Array) else piece
        whole = b"".join([hashlib.sha256(_DOMAIN + key).digest() for key in some])
        found[start : start + len(some)] = np.frombuffer(whole, np.uint8).reshape(-1, 32)
    return found
