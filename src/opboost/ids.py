"""Row IDs as bytes, the same at every party."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost.errors import DataError

NO_ID = frozenset({"na", "n/a", "#n/a", "null", "none", "nan", "-nan"})
"""How tables spell a gap, in small letters; two parties' gaps would be one person."""


def id_bytes(columns: Sequence[Sequence[Any]], names: Sequence[str], first: int = 0) -> list[bytes]:
    """Each row's ID as bytes: whole numbers and text alike by their text, parts kept apart.

    ``first`` is the number of the first row, by which errors name one.
    """
    parts = [_texts(column, name, first) for column, name in zip(columns, names, strict=True)]
    if len(parts) == 1:
        _refuse_gaps(columns[0], names[0], first)
        return parts[0]
    return [framed(row) for row in zip(*parts, strict=True)]


def id_array(table: Any, names: Sequence[str], first: int = 0) -> pa.LargeBinaryArray:
    """The IDs of an Arrow table, the same bytes as :func:`id_bytes` gives, without Python's loops.

    >>> id_array(pa.table({"id": [7, 80]}), ["id"]).to_pylist()
    [b'7', b'80']
    """
    if len(names) == 1 and (sure := plain_ids(table.column(names[0]))) is not None:
        return sure
    slow = id_bytes([table.column(name).to_pylist() for name in names], names, first)
    return pa.array(slow, pa.large_binary())


def plain_ids(column: pa.ChunkedArray) -> pa.LargeBinaryArray | None:
    """IDs that are such beyond doubt, without a look at each; None where one is needed."""
    column = column.combine_chunks()
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.cast(pa.large_string()).cast(pa.large_binary())
    return column.cast(pa.large_binary()) if _plain_text(column) else None


def _plain_text(column: pa.Array) -> bool:
    """Whether all are IDs beyond doubt: printable ASCII, no space at an end, no word for a gap."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    if column.null_count or not len(column):
        return False
    sound = pc.match_substring_regex(column, r"^[!-~]([ -~]*[!-~])?$")
    words = pc.is_in(pc.ascii_lower(column), value_set=pa.array(sorted(NO_ID), column.type))
    return bool(pc.all(sound).as_py()) and not pc.any(words).as_py()


def framed(parts: Iterable[bytes]) -> bytes:
    """Parts in a row, each behind its length: no two lists give the same bytes."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


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
        if isinstance(value, str) and value.lower() in NO_ID:
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
