"""Array types that the whole package shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Words = NDArray[np.uint64]
ObjectArray = NDArray[np.object_]

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray", "ObjectArray", "Words"]
