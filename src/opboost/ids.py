"""Row IDs as bytes, the same at every party."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opboost.errors import DataError


def id_bytes(columns: Sequence[Sequence[Any]], names: Sequence[str]) -> list[bytes]:
    """Each row's ID as bytes: whole numbers and text alike by their text, parts kept apart."""
    parts = [_texts(column, name) for column, name in zip(columns, names, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return [framed(row) for row in zip(*parts, strict=True)]


def framed(parts: Iterable[bytes]) -> bytes:
    """Parts in a row, each behind its length: no two lists give the same bytes."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def _texts(column: Sequence[Any], name: str) -> list[bytes]:
    kinds = set(map(type, column))
    if kinds == {str} and "" not in column:
        return [value.encode() for value in column]
    for row, value in enumerate(column):
        if value is None or value == "" or isinstance(value, float | bool):
            kind = "is missing" if value is None or value == "" else f"is a {type(value).__name__}"
            raise DataError(
                f"An ID in column {name!r} {kind}; IDs are text or whole numbers",
                detail=f"row {row}",
                hint="Fill it, or leave the row out.",
            )
    return [str(value).encode() for value in column]
