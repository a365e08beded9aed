"""The score asked of a feature party: trees over its cells, and the public cells of their sum.

Leaves are whole numbers of few bits, so a score is a whole number, and the same on every machine.
The trees carry no row counts and no gains.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.errors import PeerError, WireError
from opboost.grid import Domain, Ordered, OrdinalMapping
from opboost.mechanisms import NominalMechanism, WindowMap
from opboost.mechanisms.best_nominal import best_nominal
from opboost.scores.clean_features import edges, feature_block
from opboost.scores.flat_trees import LEAF, FlatTrees, Tree

SCORE = "score"
"""The name of the released column."""

MAX_CELLS = 32
"""The most cells of a score."""

MAX_TREES, MAX_NODES, MAX_DEPTH = 16_384, 2**17, 16
MAX_LEAF = 127
"""The largest absolute value of a leaf."""

MAX_CLASSES = 256


@dataclass(frozen=True, slots=True, eq=False)
class ScoreModel:
    """Trees over the features of one party, and how their sums become cells.

    Attributes:
        trees: The trees; their cuts are edges of cells, and their leaves are whole numbers.
        cuts: The cut points between cells if the score is one number: a score below the first cut
            lies in cell 1, and so on.
        book: A codebook of margins if there are several classes.  A score is sent as its nearest
            entry.
    """

    trees: FlatTrees
    cuts: tuple[int, ...] = ()
    book: IntArray | None = None

    def to_plain(self) -> list[Any]:
        """Return the model as plain JSON data."""
        nodes = [
            [
                t.group,
                *(np.asarray(a).astype(int).tolist() for a in (t.feature, t.cut, t.left, t.right)),
                *(np.asarray(a).astype(int).tolist() for a in (t.gap_left, t.value)),
            ]
            for t in self.trees.trees()
        ]
        book = [] if self.book is None else self.book.tolist()
        return [self.trees.groups, list(self.cuts), book, nodes]

    @classmethod
    def of_plain(cls, plain: Any) -> ScoreModel:
        """Return the model that :meth:`to_plain` wrote; refuse anything else."""
        _check(isinstance(plain, list) and len(plain) == 4, "its parts are not those of a score")
        groups, cuts, book, nodes = plain
        _check(type(groups) is int and 1 <= groups <= MAX_CLASSES, "it has a wrong number of sums")
        _check(
            _whole(cuts) and len(cuts) < MAX_CELLS, "it has too many cut points, or fractional ones"
        )
        _check(all(a < b for a, b in pairwise(cuts)), "its cut points do not increase")
        _check(bool(cuts) != bool(book) and bool(cuts) == (groups == 1), "it has no cells")
        made = None if cuts else _book(book, groups)
        _check(isinstance(nodes, list) and 0 < len(nodes) <= MAX_TREES, "it has too many trees")
        trees = [_tree(tree, groups) for tree in nodes]
        _check(sum(len(t.left) for t in trees) <= MAX_NODES, "it has too many nodes")
        return cls(FlatTrees.of(trees, groups), tuple(cuts), made)

    def check(self, private: Sequence[PrivateColumn]) -> None:
        """Refuse trees that test anything but declared cell edges of these columns."""
        limits = [edges(c) for c in private for _ in c.feature_names()]
        for tree in self.trees.trees():
            inner = np.flatnonzero(np.asarray(tree.left) != LEAF)
            for node in inner.tolist():
                feature, edge = int(tree.feature[node]), tree.cut[node]
                if not 0 <= feature < len(limits):
                    raise PeerError(
                        "A tree of the score uses a column that is not in the training plan. "
                        "Nothing was drawn. Let the label party train with this file's columns."
                    )
                low, high = limits[feature]
                if not low <= edge <= high:
                    raise PeerError(
                        f"A tree of the score cuts column {_owner(private, feature)!r} where no "
                        "cell of its declaration ends. Nothing was drawn. Restore the "
                        "declarations that were used in training."
                    )

    def reads(self, private: Sequence[PrivateColumn]) -> list[int]:
        """Return the positions of the columns that the trees read."""
        owner = [place for place, c in enumerate(private) for _ in c.feature_names()]
        return sorted({owner[f] for tree in self.trees.trees() for f in tree.asked()})

    def column(self, level: float) -> PrivateColumn:
        """Return the score as a private column: plain LDP at a level, the same for all cells.

        >>> stump = Tree(0, [0, 0, 0], [3, 0, 0], [1, -1, -1], [2, -1, -1], [0] * 3, [0, -5, 9])
        >>> ScoreModel(FlatTrees.of([stump], 1), cuts=(0,)).column(4.0).guarantee()
        LDP(epsilon=4.0)
        """
        if self.cuts:
            grid = Domain(1, len(self.cuts) + 1)
            return _on_grid(WindowMap(grid, total=level, clipped=False))
        assert self.book is not None
        mechanism = best_nominal(range(1, len(self.book) + 1), level)
        if isinstance(mechanism, NominalMechanism):
            return PrivateColumn(SCORE, None, mechanism)
        return _on_grid(mechanism)

    def cells(
        self, private: Sequence[PrivateColumn], prepared: Sequence[Prepared], level: float
    ) -> Prepared:
        """Return the cell of each row's score, without noise; it never leaves the party."""
        blocks = [feature_block(c, p) for c, p in zip(private, prepared, strict=True)]
        return self.cells_of(np.hstack(blocks), level)

    def cells_of(self, rows: Any, level: float) -> Prepared:
        """Return the same as :meth:`cells`, from rows of features."""
        scores = self.trees.sums(rows)
        if self.cuts:
            cells: IntArray = np.searchsorted(self.cuts, scores[:, 0], side="right") + 1
        else:
            cells = nearest(scores, self.book)
            cells = cells + (self.column(level).mapping is not None)  # cells are numbered from one
        return Prepared(cells, np.zeros(len(cells), dtype=np.bool_), 0, cells)

    def digest(self, column: PrivateColumn) -> str:
        """Return the SHA-256 of trees, cut points, codebook and mechanism: the model's identity."""
        spec = column_to_dict(column)
        whole = [self.to_plain(), spec["mapping"], spec["mechanism"]]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def nearest(scores: Any, book: Any) -> IntArray:
    """Return the position of the nearest entry, the first if several are equally near; exact."""
    entries = np.asarray(book, dtype=np.float64)
    away = (entries**2).sum(axis=1) - 2 * np.asarray(scores, dtype=np.float64) @ entries.T
    return np.asarray(away.argmin(axis=1), dtype=np.int64)


def _on_grid(mechanism: Any) -> PrivateColumn:
    grid = mechanism.domain
    order = Ordered(list(range(grid.L, grid.R + 1)))
    return PrivateColumn(SCORE, OrdinalMapping(grid, order), mechanism)


def _owner(private: Sequence[PrivateColumn], feature: int) -> Any:
    return [c.name for c in private for _ in c.feature_names()][feature]


def _book(plain: Any, groups: int) -> IntArray:
    sized = isinstance(plain, list) and 2 <= len(plain) <= MAX_CELLS
    _check(sized and all(_whole(row) and len(row) == groups for row in plain), "a bad codebook")
    return np.array(plain, dtype=np.int64)


def _tree(plain: Any, groups: int) -> Tree:
    _check(isinstance(plain, list) and len(plain) == 7, "the parts of a tree are not valid")
    group, *arrays = plain
    _check(type(group) is int and 0 <= group < groups, "a tree does not belong to any sum")
    _check(all(_whole(a) for a in arrays), "a tree is not made of whole numbers")
    sizes = {len(a) for a in arrays}
    _check(len(sizes) == 1 and min(sizes) > 0, "the lists of a tree differ in length, or are empty")
    feature, cut, left, right, gap_left, value = (np.array(a, dtype=np.int64) for a in arrays)
    _check_children(left, right)
    _check(bool((np.abs(value) <= MAX_LEAF).all()), "a leaf has too many bits")
    return Tree(group, feature, cut, left, right, gap_left > 0, value)


def _check_children(left: IntArray, right: IntArray) -> None:
    """Refuse a tree unless every node but the root has one parent and no node is too deep."""
    inner = left != LEAF
    _check(bool((inner == (right != LEAF)).all()), "a node has only one child")
    children = np.concatenate([left[inner], right[inner]])
    expected = np.arange(1, len(left))
    _check(bool(np.array_equal(np.sort(children), expected)), "a node is reached twice or never")
    level, depth = np.array([0]), 0
    while len(below := level[inner[level]]):
        depth += 1
        _check(depth <= MAX_DEPTH, "a tree is too deep")
        level = np.concatenate([left[below], right[below]])


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and abs(v) < 2**31 for v in values)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise WireError(
            f"The score that the label party asks for cannot be used: {what}. Nothing was drawn. "
            "Let both parties run the same release."
        )
