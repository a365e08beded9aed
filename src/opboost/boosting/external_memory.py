"""XGBoost's external memory: read rows from disk in blocks, and keep only their bins, on disk.

XGBoost still holds some 40 bytes per row, whatever the number of columns: labels (4), predictions
(4), gradients (8), and the node that a row is in (24, of which 16 only while rows are split).  If
that is too much, ``rows_a_tree`` lets each tree see only a share of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import xgboost as xgb

from opboost._typing import FloatArray
from opboost.boosting.booster import Blocks, Problem
from opboost.errors import OpBoostError, ParameterError

ROWS_A_TREE = "rows_a_tree"
"""The parameter that limits the rows that a tree is grown on; all rows by default."""


class _Rows(xgb.DataIter):
    """An iterator over blocks with labels and weights, which XGBoost can restart."""

    def __init__(self, blocks: Blocks, y: Any, weight: FloatArray | None, cache: Path) -> None:
        self._blocks, self._y, self._weight = blocks, y, weight
        self._left: Iterator[slice] = iter(blocks)
        super().__init__(cache_prefix=str(cache))

    def reset(self) -> None:
        """Start again with the first block."""
        self._left = iter(self._blocks)

    def next(self, input_data: Callable[..., None]) -> bool:
        """Give XGBoost the next block; return whether there was one."""
        rows = next(self._left, None)
        if rows is None:
            return False
        weight = None if self._weight is None else self._weight[rows]
        input_data(data=self._blocks.read(rows), label=self._y[rows], weight=weight)
        return True


def external_matrix(blocks: Blocks, y: Any, weight: FloatArray | None, bins: int) -> xgb.DMatrix:
    """Return the bins of all rows, kept in files of the blocks' folder.

    Columns with at most ``bins`` distinct codes are binned exactly as in memory, whatever the
    blocks.  For other columns, the edges of the bins are estimated block by block.

    >>> import tempfile
    >>> import numpy as np
    >>> codes = np.tile(np.arange(5, dtype=np.uint8), 200)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blocks = Blocks(codes.shape, lambda rows: codes[rows], Path(folder))
    ...     matrix = external_matrix(blocks, (codes[:, 0] > 2).astype(np.uint8), None, 256)
    ...     matrix.num_row(), matrix.num_col()
    ...     del matrix
    (1000, 1)
    """
    if not hasattr(xgb, "ExtMemQuantileDMatrix"):
        raise OpBoostError(
            f"memory='external' needs XGBoost 3; this is {xgb.__version__}. "
            "Install it: pip install 'xgboost-cpu>=3'."
        )
    rows = _Rows(blocks, y, weight, blocks.folder / "bins")
    return xgb.ExtMemQuantileDMatrix(rows, max_bin=bins)


def train_external(
    problem: Problem, blocks: Blocks, params: Mapping[str, Any], rounds: int
) -> xgb.Booster:
    """Train on rows that stay on disk.

    With ``rows_a_tree`` the blocks are divided into shares of at most this many rows (more, if
    there are fewer rounds than such shares).  Each share grows its part of the trees on top of the
    earlier ones, so it is binned once, and memory holds one share at a time.
    """
    plain = dict(params)
    most = int(plain.pop(ROWS_A_TREE, blocks.shape[0]))
    if most < 1:
        raise ParameterError(f"{ROWS_A_TREE} must be 1 or more; got {most}.")
    if plain.get("tree_method", "hist") not in ("hist", "auto"):
        raise ParameterError("memory='external' needs XGBoost's tree_method='hist'.")
    if problem.eval_set is not None:
        raise ParameterError("Training from disk takes no eval_set.")
    shares = min(rounds, -(-blocks.shape[0] // most)) or 1
    bins, grown = int(plain.get("max_bin", 256)), 0
    booster: xgb.Booster | None = None
    for k in range(shares):
        due = rounds * (k + 1) // shares - grown
        part = replace(blocks, share=(k, shares))
        data = external_matrix(part, problem.y, problem.weight, bins)
        booster = xgb.train(plain, data, due, xgb_model=booster, verbose_eval=False)
        booster.reset()  # let go of the rows on disk
        del data
        grown += due
    assert booster is not None
    return booster
