"""XGBoost's external memory: rows come from disk in blocks, and only their bins are kept, on disk.

XGBoost still holds some 40 bytes a row, whatever the number of columns: labels (4), predictions
(4), gradients (8), and which node a row is in (24, of which 16 only while rows are parted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import xgboost as xgb

from opboost._typing import FloatArray
from opboost.boosting.protocol import Blocks
from opboost.errors import OpBoostError


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
