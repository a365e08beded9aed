"""XGBoost's external memory: rows come from disk in blocks, and only their bins are kept, on disk.

XGBoost still holds some 40 bytes a row, whatever the number of columns: labels (4), predictions
(4), gradients (8), and which node a row is in (24, of which 16 only while rows are parted).  Where
that is too much, ``rows_a_tree`` lets each tree see another share of the rows.
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
"""The parameter that says how many rows a tree is grown on, at most; all of them by default."""


class _Rows(xgb.DataIter):
    """Blocks with their labels and weights, as often as XGBoost wants to see them."""

    def __init__(self, blocks: Blocks, y: Any, weight: FloatArray | None, cache: Path) -> None:
        self._blocks, self._y, self._weight = blocks, y, weight
        self._left: Iterator[slice] = iter(blocks)
        super().__init__(cache_prefix=str(cache))

    def reset(self) -> None:
        """Begin again."""
        self._left = iter(self._blocks)

    def next(self, input_data: Callable[..., None]) -> bool:
        """Hand over the next block, if there is one."""
        rows = next(self._left, None)
        if rows is None:
            return False
        weight = None if self._weight is None else self._weight[rows]
        input_data(data=self._blocks.read(rows), label=self._y[rows], weight=weight)
        return True


def external_matrix(blocks: Blocks, y: Any, weight: FloatArray | None, bins: int) -> xgb.DMatrix:
    """The bins of all rows, in files of the blocks' folder.

    Columns with at most ``bins`` different codes are binned exactly as in memory, whatever the
    blocks; of others the edges of bins are estimated block by block.

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

    With ``rows_a_tree`` the blocks are dealt into shares of at most so many rows, and each share
    grows its part of the trees on top of those before: so a share is binned once, and memory is
    that of one share.
    """
    plain = dict(params)
    most = int(plain.pop(ROWS_A_TREE, blocks.shape[0]))
    if most < 1:
        raise ParameterError(f"{ROWS_A_TREE} must be 1 or more; got {most}.")
    if plain.get("tree_method", "hist") not in ("hist", "auto"):
        raise ParameterError("memory='external' needs XGBoost's tree_method='hist'.")
    if problem.eval_set is not None:
        raise ParameterError("Rows on disk are trained on without an eval_set.")
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
