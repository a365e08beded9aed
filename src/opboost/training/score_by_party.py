"""Split a by-party model into a score for each party, and add up the parties' answers.

Each party's trees are pruned until every leaf has enough people, and leaf values are rounded.  The
training rows then give the cells of the trees' sum: equal-frequency cells of one number, or a
codebook of the margins of several classes.  In a prediction, a noisy cell gives the chance of each
true cell, which stands for the mean of the party's part of the sum there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import Additive, Matrix, Problem, Trained
from opboost.columns.private_column import PrivateColumn
from opboost.denoise import noise_matrix_of
from opboost.errors import DataError, ParameterError
from opboost.mechanisms import Mechanism, NominalMechanism
from opboost.scores.clean_features import edges
from opboost.scores.flat_trees import LEAF, AdditiveModel, FlatTrees, Tree, by_group, predicted
from opboost.scores.score_model import MAX_CELLS, MAX_LEAF, ScoreModel, nearest
from opboost.training.feature_matrix import Books, Layout
from opboost.training.released_columns import ReleasedColumn

SMALLEST_LEAF = 20
"""The fewest people in any leaf of the trees that a feature party receives."""

BOOK_ROWS = 20_000
"""The most rows that codebooks are fitted to."""

ROWS = 1 << 16
"""The number of rows read at a time."""

MakeCodebook = Callable[[FloatArray], IntArray]
"""A function that makes the codebook of several classes from the scores of training rows."""


@dataclass(frozen=True, slots=True, eq=False)
class PartyScore:
    """The score that one party is asked for, and the meaning of its cells.

    ``step`` is the value of one unit of a leaf.  ``shares`` holds the share of training rows in
    each cell or entry of the codebook, and ``means`` the mean of the party's part there.
    """

    model: ScoreModel
    step: float
    shares: FloatArray
    means: FloatArray

    def posterior(self, released: ReleasedColumn) -> tuple[FloatArray, FloatArray]:
        """Return each row's chance of each cell given its noisy one, and each cell's mean part."""
        shares, mechanism = self.shares, released.private.mechanism
        if isinstance(mechanism, NominalMechanism):
            bits = np.column_stack([part.values for part in released.parts]).astype(np.int64)
            chances = np.array(mechanism.bit_odds())[bits] * shares
            chances /= chances.sum(axis=1, keepdims=True)
        else:
            assert isinstance(mechanism, Mechanism)
            channel = noise_matrix_of(mechanism)
            assert channel is not None, "32 cells are few"
            outputs = released.parts[0].values.astype(np.int64) - mechanism.outputs.L
            chances = channel.posterior(shares)[outputs]
        return chances, self.means

    def to_plain(self) -> dict[str, Any]:
        """Return the score as plain data for JSON."""
        return {
            "model": self.model.to_plain(),
            "step": self.step,
            "shares": self.shares.tolist(),
            "means": self.means.tolist(),
        }

    @classmethod
    def of_plain(cls, plain: Any) -> PartyScore:
        """Read what :meth:`to_plain` wrote; refuse anything else."""
        model = ScoreModel.of_plain(plain["model"])
        shares = np.array(plain["shares"], dtype=np.float64)
        means = np.array(plain["means"], dtype=np.float64)
        size = len(model.cuts) + 1 if model.book is None else len(model.book)
        fits = shares.shape == (size,) and means.shape == (size, model.trees.groups)
        fits = fits and bool((shares > 0).all() and np.isfinite([*shares, *means.ravel()]).all())
        if not fits or not isinstance(plain["step"], float):
            raise DataError("The scores of the saved estimator do not fit its parties")
        return cls(model, plain["step"], shares, means)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreParts:
    """The parties' parts of a model's sum, saved with the model for predictions by score."""

    smallest_leaf: int
    parties: Mapping[str, PartyScore] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return the parts as plain data for JSON."""
        parts = {name: part.to_plain() for name, part in self.parties.items()}
        return {"smallest_leaf": self.smallest_leaf, "parties": parts}

    @classmethod
    def of_plain(cls, plain: Any) -> ScoreParts:
        """Read what :meth:`to_plain` wrote."""
        parts = {name: PartyScore.of_plain(part) for name, part in plain["parties"].items()}
        return cls(int(plain["smallest_leaf"]), parts)


def additive(trained: Trained) -> AdditiveModel:
    """Return the trees of a trained model; refuse a user's own booster, which exposes none."""
    if not isinstance(trained, Additive):
        raise ParameterError(f"A model of {type(trained).__name__} does not show its trees.")
    return trained.additive()


def score_parts(
    layout: Layout,
    trained: Trained,
    problem: Problem,
    books: Books,
    draws: int,
    smallest_leaf: int,
    make_codebook: MakeCodebook | None = None,
) -> ScoreParts:
    """Split a by-party model; ``problem`` holds its training rows, in codes of ``books``.

    ``problem`` has every row ``draws`` times, so a leaf of m people has m × ``draws`` rows.
    ``make_codebook`` is used for several classes; None means :func:`class_codebook`.
    """
    make = make_codebook or class_codebook
    groups = layout.groups()
    parts = by_group(additive(trained).trees, list(groups.values()))
    found: dict[str, PartyScore] = {}
    for (party, features), trees in zip(groups.items(), parts, strict=True):
        if party is None or not len(trees):
            continue
        private = [
            c for c, owner in zip(layout.private, layout.parties, strict=True) if owner == party
        ]
        rows = _Rows(problem, features, books, private)
        scored = _part(trees, private, rows, draws * smallest_leaf, make)
        if scored is not None:
            found[party] = scored
    return ScoreParts(smallest_leaf, found)


def _part(
    trees: FlatTrees,
    private: Sequence[PrivateColumn],
    rows: _Rows,
    least: int,
    make_codebook: MakeCodebook,
) -> PartyScore | None:
    """Return the score of a party; None if its part is the same for everybody."""
    counts = np.sum([trees.counts(block) for block in rows.blocks()], axis=0)
    limits = [edges(c) for c in private for _ in c.feature_names()]
    whole = FlatTrees.of(_shared(trees, counts, limits, least), trees.groups)
    largest = float(np.abs(whole.value).max(initial=0.0))
    if not largest:
        return None
    step = largest / MAX_LEAF
    rounded = [
        Tree(t.group, t.feature, t.cut, t.left, t.right, t.gap_left, np.rint(t.value / step))
        for t in whole.trees()
    ]
    shared = FlatTrees.of(rounded, trees.groups)
    scores = np.concatenate([shared.sums(block) for block in rows.blocks()])
    if trees.groups == 1:
        return _of_number(shared, step, scores)
    if not (scores != scores[0]).any():
        return None
    book = make_codebook(scores)
    tables = _tables(nearest(scores, book), len(book), scores, step)
    return PartyScore(ScoreModel(shared, book=book), step, *tables)


def _of_number(trees: FlatTrees, step: float, scores: FloatArray) -> PartyScore | None:
    """Build cells of about equal frequency, as far as scores differ."""
    inner = np.quantile(scores[:, 0], np.arange(1, MAX_CELLS) / MAX_CELLS, method="higher")
    cuts = [int(c) for c in np.unique(inner) if c > scores.min()]
    if not cuts:
        return None
    cells = np.searchsorted(cuts, scores[:, 0], side="right")
    tables = _tables(cells, len(cuts) + 1, scores, step)
    return PartyScore(ScoreModel(trees, tuple(cuts)), step, *tables)


def class_codebook(scores: FloatArray) -> IntArray:
    """Return the codebook of the margins of all classes together.

    It has an entry for each class, placed so that the entry nearest to a row's margins is that of
    the largest margin.  For more than 32 classes it has 32 entries.  Larger codebooks predict worse
    (docs/score-release.md).
    """
    classes = scores.shape[1]
    if classes <= MAX_CELLS:
        return np.eye(classes, dtype=np.int64)
    return fitted_codebook(scores, MAX_CELLS)


def fitted_codebook(scores: FloatArray, entries: int) -> IntArray:
    """Return the centres of this many clusters of scores, as whole numbers.

    One thread fits them: with several, the order of sums, and so the result, would vary.
    """
    from sklearn.cluster import KMeans

    sample = scores[:: -(-len(scores) // BOOK_ROWS)]
    size = max(2, min(entries, len(np.unique(sample, axis=0))))
    with threadpool_limits(1):
        fitted = KMeans(size, n_init=2, random_state=0).fit(sample)
    return np.unique(np.rint(fitted.cluster_centers_).astype(np.int64), axis=0)


def _tables(
    cells: IntArray, size: int, scores: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Return the share and the mean part of each cell; an empty cell counts as half a row."""
    counts = np.bincount(cells, minlength=size).astype(np.float64)
    sums = np.column_stack(
        [np.bincount(cells, column, minlength=size) for column in scores.T * step]
    )
    everywhere = scores.mean(axis=0) * step
    known = counts[:, None] > 0
    means = np.where(known, sums / np.maximum(counts, 1)[:, None], everywhere)
    shares = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    return shares, means


def _shared(
    trees: FlatTrees, counts: IntArray, limits: Sequence[tuple[int, int]], least: int
) -> list[Tree]:
    """Return the trees with cuts at declared edges and enough rows in every leaf."""
    found = []
    for tree, start in zip(trees.trees(), trees.roots.tolist(), strict=True):
        made = _Pruned(tree, counts[start : start + len(tree.left)], limits, least)
        found.append(made.tree())
    return found


class _Pruned:
    """A tree without leaves of few rows; such rows go to the other side of the split instead."""

    def __init__(
        self, tree: Tree, counts: IntArray, limits: Sequence[tuple[int, int]], least: int
    ) -> None:
        self._tree, self._counts, self._limits, self._least = tree, counts, limits, least

    def tree(self) -> Tree:
        """Return the tree with its nodes renumbered."""
        nodes: list[list[float]] = []

        def placed(part: Any) -> int:
            place = len(nodes)
            if part[0] == "leaf":
                nodes.append([0, 0, LEAF, LEAF, 0, part[1]])
                return place
            _, feature, edge, gap_left, left, right = part
            nodes.append([feature, edge, LEAF, LEAF, gap_left, 0.0])
            nodes[place][2] = placed(left)
            nodes[place][3] = placed(right)
            return place

        placed(self._part(0))
        feature, cut, left, right, gap_left, value = zip(*nodes, strict=True)
        return Tree(self._tree.group, feature, cut, left, right, gap_left, value)

    def _part(self, node: int) -> Any:
        tree = self._tree
        if tree.left[node] == LEAF:
            return "leaf", float(tree.value[node]), int(self._counts[node])
        left, right = self._part(int(tree.left[node])), self._part(int(tree.right[node]))
        feature = int(tree.feature[node])
        low, high = self._limits[feature]
        edge = np.ceil(tree.cut[node])
        if edge < low:  # all rows are at or above it
            return right
        if edge > high:
            return left
        few_left, few_right = self._few(left), self._few(right)
        if few_left and few_right:
            rows = max(left[2] + right[2], 1)
            return "leaf", (left[1] * left[2] + right[1] * right[2]) / rows, left[2] + right[2]
        if few_left or few_right:
            return right if few_left else left
        return "split", feature, int(edge), bool(tree.gap_left[node]), left, right

    def _few(self, part: Any) -> bool:
        return bool(part[0] == "leaf" and part[2] < self._least)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The training rows of one party's features in grid values, a block at a time."""

    problem: Problem
    features: tuple[int, ...]
    books: Books
    private: Sequence[PrivateColumn]

    def blocks(self) -> list[Matrix]:
        """Return grid values; those beyond the grid move to its end, as clean values do."""
        return [
            self._block(slice(start, start + ROWS)) for start in range(0, len(self.problem.y), ROWS)
        ]

    def _block(self, here: slice) -> Matrix:
        rows = self.problem.rows(here)[:, list(self.features)].astype(np.float64)
        grids = [c.mapping.domain if c.has_order and c.mapping else None for c in self.private]
        limits = [g for c, g in zip(self.private, grids, strict=True) for _ in c.feature_names()]
        for place, (feature, grid) in enumerate(zip(self.features, limits, strict=True)):
            book = self.books.get(feature)
            if book is not None and grid is not None:
                known = np.isfinite(rows[:, place])
                values = book.values[rows[known, place].astype(np.int64)]
                rows[known, place] = np.clip(values, grid.L, grid.R)
        return rows


def predicted_by_score(
    layout: Layout,
    trained: Trained,
    parts: ScoreParts,
    own: Matrix,
    answers: Mapping[str, ReleasedColumn],
) -> FloatArray:
    """Return probabilities or values, from the label party's own part and each noisy cell's part.

    With one or two parties, the prediction is the mean over all possible cells, weighted by their
    chances.  With more, it is the prediction at the posterior means; if the link is the identity,
    this is the same.
    """
    model = additive(trained)
    groups = layout.groups()
    own_trees = by_group(model.trees, list(groups.values()))[0]
    known = model.base + own_trees.sums(own)
    posteriors = [parts.parties[party].posterior(answer) for party, answer in answers.items()]
    if model.link == "identity" or len(posteriors) > 2:
        return predicted(known + sum(chances @ means for chances, means in posteriors), model.link)
    found: Any = 0.0
    for places in product(*(range(len(means)) for _, means in posteriors)):
        weight = np.prod(
            [chances[:, k] for (chances, _), k in zip(posteriors, places, strict=True)], axis=0
        )
        there = known + sum(m[k] for (_, m), k in zip(posteriors, places, strict=True))
        answer = predicted(there, model.link)
        found = found + (weight if answer.ndim == 1 else weight[:, None]) * answer
    return np.asarray(found)
