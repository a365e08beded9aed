"""Trees in a model file, looked at before a library walks them.

The libraries follow a node's children and features wherever the numbers point, so a file that was
made up could lead them out of their memory.  A tree is sound if every node but the root is the
child of one node, and every feature that it asks for is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opboost.errors import DataError


def unsound(what: str) -> DataError:
    """The refusal of a model file."""
    return DataError(
        f"The model file is damaged: {what}", hint="Bring back a copy of it, or train again."
    )


def check_tree(left: Any, right: Any, features: Any, count: int, *, leaf: int = -1) -> None:
    """Refuse a binary tree whose nodes are not each reached once from the first.

    ``left`` and ``right`` are the children of each node (``leaf`` where it has none), ``features``
    what it asks for, of which there are ``count``.
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
        raise unsound("a node has a child that is not there")
    if len(np.unique(children)) != len(children):
        raise unsound("two nodes share a child")
    if inner.any() and not 0 <= int(features[inner].min()) <= int(features[inner].max()) < count:
        raise unsound("a tree asks for a feature that is not there")
    _check_reached(left, right, inner)


def _check_reached(left: Any, right: Any, inner: Any) -> None:
    """Each node has at most one parent, so whatever the root does not reach goes in circles."""
    level, seen = np.array([0]), 0
    while len(level):
        seen += len(level)
        below = level[inner[level]]
        level = np.concatenate([left[below], right[below]])
    if seen < 1 + 2 * int(inner.sum()):
        raise unsound("a tree goes in circles")


def whole_numbers(words: Sequence[str], count: int, name: str) -> list[int]:
    """So many whole numbers of a text."""
    try:
        found = [int(word) for word in words]
    except ValueError:
        raise unsound(f"{name} holds something else than whole numbers") from None
    if len(found) != count or any(abs(n) >= 2**31 for n in found):
        raise unsound(f"{name} has another length than its tree")
    return found


def real_numbers(words: Sequence[str], count: int, name: str) -> None:
    """Refuse a text that does not hold so many numbers."""
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise unsound(f"{name} holds something else than numbers") from None
    if len(found) != count or any(n != n for n in found):
        raise unsound(f"{name} has another length than its tree")
