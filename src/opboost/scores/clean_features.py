"""The features of trees from private columns without noise: cells, or one bit per category."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.columns.private_column import Prepared, PrivateColumn

Matrix = np.ndarray[Any, Any]


def feature_block(private: PrivateColumn, prepared: Prepared) -> Matrix:
    """Return the features of one column: bits, or its cells with reported missing values as NaN."""
    if private.has_order:
        cells = prepared.cells
        if private.flagged() is None or not prepared.missing.any():
            return cells[:, None]
        return np.where(prepared.missing, np.nan, cells).astype(np.float32)[:, None]
    first = 0 if private.mapping is None else private.mapping.domain.L
    positions = prepared.cells.astype(np.int64) - first
    return one_hot(positions, len(private.feature_names()))


def one_hot(positions: Any, width: int) -> Matrix:
    """Return one bit per category; a row with a negative position has no bit set."""
    bits = np.zeros((len(positions), width), dtype=np.uint8)
    known = positions >= 0
    bits[np.flatnonzero(known), positions[known]] = 1
    return bits


def edges(private: PrivateColumn) -> tuple[int, int]:
    """Return the lowest and the highest declared edge at which a feature of the column may be cut.

    A row goes left if its cell is below the edge.  If missing values are reported, an edge may also
    separate them from all cells.
    """
    if not private.has_order or private.mapping is None:
        return 1, 1
    grid = private.mapping.domain
    return (grid.L, grid.R + 1) if private.flagged() is not None else (grid.L + 1, grid.R)
