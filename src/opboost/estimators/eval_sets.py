"""The held-out rows that ``fit`` takes: a pair, or XGBoost's list of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.errors import ParameterError


def one_pair(eval_set: Any) -> tuple[Any, Any] | None:
    """Return the one pair of table and labels; refuse several pairs.

    >>> [part.shape for part in one_pair([(np.ones((3, 2)), np.ones(3))])]
    [(3, 2), (3,)]
    """
    if eval_set is None:
        return None
    given = eval_set if isinstance(eval_set, tuple | list) else ()
    if _is_pair(given):
        return given[0], given[1]
    if not given or not all(map(_is_pair, given)):
        raise ParameterError(
            "eval_set must be (X, y), or a list with one such pair: a table and its labels."
        )
    if len(given) > 1:
        raise ParameterError(
            f"eval_set holds {len(given)} pairs, and training watches one. "
            "Write eval_set=[(X_valid, y_valid)]."
        )
    return given[0][0], given[0][1]


def _is_pair(item: object) -> bool:
    """Return whether this is a table and its labels, rather than two such pairs."""
    if not isinstance(item, tuple | list) or len(item) != 2 or _is_pair(item[0]):
        return False
    return hasattr(item[0], "shape") or hasattr(item[0], "collect") or np.ndim(item[0]) == 2
