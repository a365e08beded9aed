"""Draws as the ledger stores them: a few bytes each, readable without the mechanism.

A number is stored as its distance from the lowest output, plus one; zero is the output "missing".
Outputs may lie beyond the grid.  A set of categories is stored as one bit per category.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.mechanisms import NominalMechanism

Draws = np.ndarray[Any, np.dtype[np.uint8]]
"""One row of bytes per draw."""


def width_of(column: PrivateColumn) -> int:
    """Return the number of bytes of one draw."""
    if isinstance(column.mechanism, NominalMechanism):
        return -(-len(column.mechanism.categories) // 8)
    return -(-(column.mechanism.outputs.size + 1).bit_length() // 8)


def to_bytes(column: PrivateColumn, out: list[OutColumn], width: int) -> Draws:
    """Return released columns as one row of bytes per draw."""
    if isinstance(column.mechanism, NominalMechanism):
        bits = np.column_stack([c.values for c in out]).astype(np.bool_)
        return np.packbits(bits, axis=1)
    below = column.mechanism.outputs.L - 1
    steps: IntArray
    if width == 1:  # modulo 256: the result fits a byte
        steps = out[0].values.astype(np.uint8) - np.uint8(below % 256)
    else:
        steps = out[0].values.astype(np.int64) - below
    if out[0].missing is not None:
        steps[out[0].missing] = 0
    if width == 1:
        return np.asarray(steps[:, None], dtype=np.uint8)
    whole = np.ascontiguousarray(steps, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(whole[:, :width])


def from_bytes(column: PrivateColumn, drawn: Draws) -> list[OutColumn]:
    """Return the released columns that rows of bytes encode."""
    if isinstance(column.mechanism, NominalMechanism):
        bits = np.unpackbits(drawn, axis=1, count=len(column.mechanism.categories))
        return [OutColumn(n, bits[:, k]) for k, n in enumerate(column.release_names())]
    outputs = column.mechanism.outputs
    kind = outputs.dtype()
    steps: IntArray
    if drawn.shape[1] == 1:
        steps = drawn[:, 0]
    else:
        whole = np.zeros((len(drawn), 8), dtype=np.uint8)
        whole[:, : drawn.shape[1]] = drawn
        steps = whole.view("<i8").reshape(-1)
    # A cell without a draw becomes the lowest output.
    if drawn.shape[1] == kind.itemsize == 1:  # modulo 256: the result fits a byte
        values = (np.maximum(steps, 1) + np.uint8((outputs.L - 1) % 256)).view(kind)
    else:
        values = (np.maximum(steps, 1).astype(np.int64) + (outputs.L - 1)).astype(kind)
    return [OutColumn(column.name, values, steps == 0 if column.flagged() else None)]
