"""Trees as flat arrays: the nodes of all trees, one tree after another, and a compiled loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.errors import DataError
from opboost.scores.tree_kernel import add_leaves, count_rows

LEAF = -1
"""What a node without children holds in place of a child's number."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatTrees:
    """Trees whose leaf values add up to one sum per group (a class, or the predicted number).

    Attributes:
        roots: The first node of each tree; its nodes end before the next tree's root.
        group: The group of each tree.
        groups: The number of groups.
        feature, cut: The test of each node: a row goes left if the feature's value is below the
            cut.
        left, right: Each node's children; a leaf has ``LEAF`` instead.
        gap_left: Whether a row goes left if its value is missing.
        value: The value of each leaf.
    """

    roots: IntArray
    group: IntArray
    groups: int
    feature: IntArray
    cut: FloatArray
    left: IntArray
    right: IntArray
    gap_left: BoolArray
    value: FloatArray

    @classmethod
    def of(cls, trees: Iterable[Tree], groups: int) -> FlatTrees:
        """Return these trees as flat arrays, in the given order."""
        parts = list(trees)
        sizes = np.array([len(t.left) for t in parts], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[: len(parts)]

        def joined(name: str, kind: Any) -> Any:
            found = [np.asarray(getattr(t, name), dtype=kind) for t in parts]
            return np.concatenate([np.empty(0, dtype=kind), *found])

        def moved(name: str) -> IntArray:
            offsets = np.repeat(starts, sizes)
            children = joined(name, np.int64)
            return np.where(children == LEAF, LEAF, children + offsets)

        return cls(
            starts,
            np.array([t.group for t in parts], dtype=np.int64),
            groups,
            joined("feature", np.int64),
            joined("cut", np.float64),
            moved("left"),
            moved("right"),
            joined("gap_left", np.bool_),
            joined("value", np.float64),
        )

    def __len__(self) -> int:
        return len(self.roots)

    def trees(self) -> list[Tree]:
        """Return the trees separately, with children counted from each tree's first node."""
        ends = [*self.roots[1:].tolist(), len(self.left)]
        return [
            self._tree(t, start, end)
            for t, (start, end) in enumerate(zip(self.roots.tolist(), ends, strict=True))
        ]

    def _tree(self, place: int, start: int, end: int) -> Tree:
        here = slice(start, end)
        left, right = (np.where(c == LEAF, LEAF, c - start) for c in (self.left, self.right))
        return Tree(
            int(self.group[place]),
            self.feature[here],
            self.cut[here],
            left[here],
            right[here],
            self.gap_left[here],
            self.value[here],
        )

    def sums(self, rows: Any) -> FloatArray:
        """Return the sum of each group (a column of the result) for every row.

        >>> stump = Tree(0, [0, 0, 0], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0] * 3, [0, 2, 3])
        >>> FlatTrees.of([stump, stump], groups=1).sums([[0.0], [1.0], [np.nan]]).tolist()
        [[4.0], [6.0], [6.0]]
        """
        plain = _matrix(rows)
        found = np.zeros((len(plain), self.groups), dtype=np.float64)
        if len(self):
            add_leaves(plain, self.roots, self.group, *self._nodes(), self.value, found)
        return found

    def counts(self, rows: Any) -> IntArray:
        """Return how many rows pass through each node."""
        found = np.zeros(len(self.left), dtype=np.int64)
        if len(self):
            count_rows(_matrix(rows), self.roots, *self._nodes(), found)
        return found

    def _nodes(self) -> tuple[Any, ...]:
        return self.feature, self.cut, self.left, self.right, self.gap_left


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree; its first node is the root, and children are numbers of its own nodes."""

    group: int
    feature: Any
    cut: Any
    left: Any
    right: Any
    gap_left: Any
    value: Any

    def asked(self) -> set[int]:
        """Return the features that the tree tests."""
        inner = np.asarray(self.left) != LEAF
        return set(np.asarray(self.feature)[inner].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveModel:
    """A boosted model: its trees, the base to which their sums are added, and a link function.

    ``link`` is "identity", "exp", "logistic" or "softmax".
    """

    trees: FlatTrees
    base: FloatArray
    link: str

    def predict(self, rows: Any) -> FloatArray:
        """Return what the model's own library predicts, up to the rounding of its sums."""
        return predicted(self.base + self.trees.sums(rows), self.link)


def predicted(margins: FloatArray, link: str) -> FloatArray:
    """Convert sums of leaves to predictions: values, or one probability per class.

    >>> predicted(np.array([[0.0]]), "logistic").tolist(), predicted(np.array([[2.0]]), "identity")
    ([[0.5, 0.5]], array([2.]))
    """
    if link == "identity":
        return np.asarray(margins[..., 0])
    if link == "exp":
        return np.asarray(np.exp(margins[..., 0]))
    if link == "logistic":
        chance = 1 / (1 + np.exp(-margins[..., 0]))
        return np.stack([1 - chance, chance], axis=-1)
    raised = np.exp(margins - margins.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def by_group(trees: FlatTrees, groups: Sequence[Sequence[int]]) -> list[FlatTrees]:
    """Return, for each group of features, the trees that test no other features.

    Their features are renumbered within the group.  Trees of a single leaf belong to the first
    group.  A tree that tests features of two groups is refused, because its value is not a sum over
    the groups.
    """
    owner = {feature: place for place, group in enumerate(groups) for feature in group}
    number = {feature: k for group in groups for k, feature in enumerate(group)}
    found: list[list[Tree]] = [[] for _ in groups]
    for tree in trees.trees():
        owners = {owner[feature] for feature in tree.asked()}
        if len(owners) > 1:
            raise DataError(
                "A tree of the model uses columns of two parties",
                hint='Train with structure = "by-party", which keeps each tree to one party.',
            )
        feature = np.array([number.get(int(f), 0) for f in tree.feature], dtype=np.int64)
        moved = Tree(
            tree.group, feature, tree.cut, tree.left, tree.right, tree.gap_left, tree.value
        )
        found[min(owners, default=0)].append(moved)
    return [FlatTrees.of(part, trees.groups) for part in found]


def _matrix(rows: Any) -> FloatArray:
    return np.ascontiguousarray(rows, dtype=np.float64)
