"""Row IDs as bytes, the same at every party."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opboost.errors import DataError

NO_ID = frozenset({"na", "n/a", "#n/a", "null", "none", "nan", "-nan"})
"""How tables spell a gap, in small letters; two parties' gaps would be one person."""


def id_bytes(columns: Sequence[Sequence[Any]], names: Sequence[str]) -> list[bytes]:
    """Each row's ID as bytes: whole numbers and text alike by their text, parts kept apart."""
    parts = [_texts(column, name) for column, name in zip(columns, names, strict=True)]
    if len(parts) == 1:
        _refuse_gaps(columns[0], names[0])
        return parts[0]
    return [framed(row) for row in zip(*parts, strict=True)]


def framed(parts: Iterable[bytes]) -> bytes:
    """Parts in a row, each behind its length: no two lists give the same bytes."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def _texts(column: Sequence[Any], name: str) -> list[bytes]:
    if set(map(type, column)) == {int}:
        return [str(value).encode() for value in column]
    for row, value in enumerate(column):
        wrong = _wrong(value)
        if wrong:
            raise DataError(
                f"An ID in column {name!r} {wrong}; IDs are text or whole numbers",
                detail=f"row {row}",
                hint="Correct it, or leave the row out.",
                row=row,
            )
    return [str(value).encode() for value in column]


def _refuse_gaps(column: Sequence[Any], name: str) -> None:
    for row, value in enumerate(column):
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
