"""Row IDs as bytes, the same at every party."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost.errors import DataError
from opboost.storage.framing import framed

MISSING_ID_WORDS = frozenset({"na", "n/a", "#n/a", "null", "none", "nan", "-nan"})
"""Words for a missing value, in lower case; as an ID, each would merge many people into one."""


Spelling = Literal["canonical", "exact"]
"""Whether spellings of an ID that differ in case, width or surrounding spaces mean one person."""


def canonical(text: str) -> str:
    """Return the form in which an ID is compared: NFKC, case-folded and trimmed.

    This is the compatibility caseless match of the Unicode standard (section 3.13, D146), and
    ``canonical(canonical(text)) == canonical(text)``.

    >>> canonical("  Ａnn-００1 ") == canonical("ANN-001")
    True
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", text.casefold()).strip()


def id_bytes(
    columns: Sequence[Sequence[Any]],
    names: Sequence[str],
    first: int = 0,
    spelling: Spelling = "exact",
) -> list[bytes]:
    """Return each row's ID as bytes; if it has several columns, their texts stay distinguishable.

    ``first`` is the number of the first row, for error messages.

    >>> id_bytes([["Ann", 7]], ["id"], spelling="canonical")
    [b'ann', b'7']
    """
    if spelling == "canonical":
        columns = [[canonical(v) if isinstance(v, str) else v for v in c] for c in columns]
    parts = [_texts(column, name, first) for column, name in zip(columns, names, strict=True)]
    if len(parts) == 1:
        _refuse_gaps(columns[0], names[0], first)
        return parts[0]
    return [framed(row) for row in zip(*parts, strict=True)]


def id_array(
    table: Any, names: Sequence[str], first: int = 0, spelling: Spelling = "exact"
) -> pa.LargeBinaryArray:
    """Return the IDs of an Arrow table as the bytes of :func:`id_bytes`, without a Python loop.

    >>> id_array(pa.table({"id": [7, 80]}), ["id"]).to_pylist()
    [b'7', b'80']
    """
    if len(names) == 1 and (sure := plain_ids(table.column(names[0]), spelling)) is not None:
        return sure
    slow = id_bytes([table.column(name).to_pylist() for name in names], names, first, spelling)
    return pa.array(slow, pa.large_binary())


def plain_ids(column: pa.ChunkedArray, spelling: Spelling = "exact") -> pa.LargeBinaryArray | None:
    """Return a column's IDs if all are plainly valid; None if each must be checked."""
    column = column.combine_chunks()
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.cast(pa.large_string()).cast(pa.large_binary())
    if not _plain_text(column):
        return None
    spelt = pc.ascii_lower(column) if spelling == "canonical" else column
    return spelt.cast(pa.large_binary())


def _plain_text(column: pa.Array) -> bool:
    """Return whether all are plainly valid: printable ASCII, trimmed, no word for "missing"."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    if column.null_count or not len(column):
        return False
    sound = pc.match_substring_regex(column, r"^[!-~]([ -~]*[!-~])?$")
    words = pc.is_in(
        pc.ascii_lower(column), value_set=pa.array(sorted(MISSING_ID_WORDS), column.type)
    )
    return bool(pc.all(sound).as_py()) and not pc.any(words).as_py()


def _texts(column: Sequence[Any], name: str, first: int) -> list[bytes]:
    if set(map(type, column)) == {int}:
        return [str(value).encode() for value in column]
    for row, value in enumerate(column, first):
        wrong = _wrong(value)
        if wrong:
            raise DataError(
                f"An ID in column {name!r} {wrong}; IDs are text or whole numbers",
                detail=f"row {row}",
                hint="Correct it, or leave the row out.",
                row=row,
            )
    return [str(value).encode() for value in column]


def _refuse_gaps(column: Sequence[Any], name: str, first: int) -> None:
    for row, value in enumerate(column, first):
        if isinstance(value, str) and value.lower() in MISSING_ID_WORDS:
            raise DataError(
                f"An ID in column {name!r} is a word for a missing value",
                detail=f"row {row} holds {value!r}",
                hint="Correct it, or leave the row out.",
                row=row,
            )


def _wrong(value: Any) -> str:
    if isinstance(value, str):
        if value.strip() != value:
            return "has spaces around it"
        return "" if value else "is missing"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return ""
    return "is missing" if value is None else f"is a {type(value).__name__}"
