"""Draws as the ledger stores them: a few bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.columns import PrivateColumn
from opboost.frames import OutColumn
from opboost.mechanisms import UnaryEncoding


def width_of(column: PrivateColumn) -> int:
    """Bytes of one draw."""
    if isinstance(column.mechanism, UnaryEncoding):
        return -(-len(column.mechanism.categories) // 8)
    return -(-(column.mechanism.domain.size + 1).bit_length() // 8)


def to_bytes(column: PrivateColumn, out: list[OutColumn], width: int) -> np.ndarray[Any, Any]:
    """Released columns as a row of bytes a draw."""
    if isinstance(column.mechanism, UnaryEncoding):
        bits = np.column_stack([c.values for c in out]).astype(np.bool_)
        return np.packbits(bits, axis=1)
    steps = out[0].values.astype(np.int64) - column.mechanism.domain.L + 1
    if out[0].missing is not None:
        steps = np.where(out[0].missing, 0, steps)
    whole = np.ascontiguousarray(steps, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(whole[:, :width])


def from_bytes(column: PrivateColumn, drawn: np.ndarray[Any, Any]) -> list[OutColumn]:
    """The released columns that rows of bytes stand for."""
    if isinstance(column.mechanism, UnaryEncoding):
        bits = np.unpackbits(drawn, axis=1, count=len(column.mechanism.categories))
        return [OutColumn(n, bits[:, k]) for k, n in enumerate(column.release_names())]
    whole = np.zeros((len(drawn), 8), dtype=np.uint8)
    whole[:, : drawn.shape[1]] = drawn
    steps = whole.view("<i8").reshape(-1)
    domain = column.mechanism.domain
    values = np.maximum(steps - 1 + domain.L, domain.L).astype(domain.dtype())
    return [OutColumn(column.name, values, steps == 0 if column.flagged() else None)]
