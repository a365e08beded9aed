"""Private columns without noise as the features of trees: cells, or one bit a category."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.columns.private_column import Prepared, PrivateColumn

Matrix = np.ndarray[Any, Any]


def feature_block(private: PrivateColumn, prepared: Prepared) -> Matrix:
    """The features of one column: its cells with NaN for a gap that is reported, or bits."""
    if private.has_order:
        cells = prepared.cells
        if private.flagged() is None or not prepared.missing.any():
            return cells[:, None]
        return np.where(prepared.missing, np.nan, cells).astype(np.float32)[:, None]
    first = 0 if private.mapping is None else private.mapping.domain.L
    positions = prepared.cells.astype(np.int64) - first
    return one_hot(positions, len(private.feature_names()))


def one_hot(positions: Any, width: int) -> Matrix:
    """One bit a category; no bit where a position is negative."""
    bits = np.zeros((len(positions), width), dtype=np.uint8)
    known = positions >= 0
    bits[np.flatnonzero(known), positions[known]] = 1
    return bits


def edges(private: PrivateColumn) -> tuple[int, int]:
    """The lowest and the highest declared edge at which a feature of the column may be cut.

    A row goes left where its cell is below the edge.  Where gaps are reported, an edge may also
    part them from all cells.
    """
    if not private.has_order or private.mapping is None:
        return 1, 1
    grid = private.mapping.domain
    return (grid.L, grid.R + 1) if private.flagged() is not None else (grid.L + 1, grid.R)
