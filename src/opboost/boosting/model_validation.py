"""Check the trees of a model file before a library walks them.

The libraries follow the numbers of children and features without checking them, so a forged file
could make them read outside their memory.  A tree is sound iff every node but the root is the
child of one node, the root reaches every node, and every feature that it splits on exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opboost.errors import DataError


def unsound(what: str) -> DataError:
    """Return the error for a model file that is refused."""
    return DataError(
        f"The model file is damaged: {what}", hint="Restore a copy of it, or train again."
    )


def check_tree(left: Any, right: Any, features: Any, count: int, *, leaf: int = -1) -> None:
    """Refuse a binary tree unless each node is reached exactly once from the first.

    ``left`` and ``right`` are the children of each node (``leaf`` if it has none).  ``features``
    are the features that the nodes split on, numbered from 0 to ``count`` − 1.
    """
    left, right = np.asarray(left), np.asarray(right)
    features = np.asarray(features)
    if any(a.ndim != 1 or a.dtype.kind not in "iu" or not a.size for a in (left, right, features)):
        raise unsound("a tree is not made of whole numbers")
    if not len(left) == len(right) == len(features):
        raise unsound("a tree has more children than nodes")
    inner = left != leaf
    if (inner != (right != leaf)).any():
        raise unsound("a node has one child")
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    if len(children) and (children.min() < 1 or children.max() >= len(left)):
        raise unsound("a node has a child that does not exist")
    if len(np.unique(children)) != len(children):
        raise unsound("two nodes share a child")
    if inner.any() and not 0 <= int(features[inner].min()) <= int(features[inner].max()) < count:
        raise unsound("a tree splits on a feature that does not exist")
    _check_reached(left, right, inner)


def _check_reached(left: Any, right: Any, inner: Any) -> None:
    """Refuse a cycle.  No node has two parents, so nodes that the root does not reach form one."""
    level, seen = np.array([0]), 0
    while len(level):
        seen += len(level)
        below = level[inner[level]]
        level = np.concatenate([left[below], right[below]])
    if seen < 1 + 2 * int(inner.sum()):
        raise unsound("a tree contains a cycle")


def whole_numbers(words: Sequence[str], count: int, name: str) -> list[int]:
    """Return the ``count`` whole numbers of a text; refuse a text with more or fewer."""
    try:
        found = [int(word) for word in words]
    except ValueError:
        raise unsound(f"{name} has entries other than whole numbers") from None
    if len(found) != count or any(abs(n) >= 2**31 for n in found):
        raise unsound(f"{name} does not have the length of its tree")
    return found


def real_numbers(words: Sequence[str], count: int, name: str) -> None:
    """Refuse a text that does not hold exactly ``count`` numbers."""
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise unsound(f"{name} has entries other than numbers") from None
    if len(found) != count or any(n != n for n in found):
        raise unsound(f"{name} does not have the length of its tree")
