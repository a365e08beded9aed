"""Choose smoothing, steps and classes without clean rows, by the likelihood of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.denoise.category_shares import BitTally
from opboost.denoise.column_pmfs import SLACK_ERRORS, ColumnStart, column_smoothings
from opboost.denoise.encoded_rows import EncodedRows, Index, Space, Table
from opboost.denoise.factor_start import Factors
from opboost.denoise.label_groups import Groups
from opboost.denoise.latent_classes import Mixture
from opboost.denoise.mixture_kernel import UNSENT

WIDTHS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Widths of the kernel over ordered groups, in 32nds of the rows."""

SHARES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""The weights of a row in the fit of each other class, if groups have no order."""

SMOOTHINGS = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6)
"""How far each step pulls a cell's ratio (to the whole column) towards those of its neighbours."""

PATH = (1, 1, 2, 4, 8, 16, 32, 64, 128)
"""The number of steps before each evaluation on held-out rows, for one class per group."""

LADDER = ((1, 0), (4, 0), (8, 1), (16, 1), (16, 2), (32, 3))
"""Candidates: classes per group, and how much wider the kernel is than the base's."""

MIN_ROWS_PER_CLASS = 64
"""The fewest rows per class, if groups do not share rows."""

CHECKS = ((0, 6), (1, 4), (2, 3), (4, 3), (8, 2), (16, 1), (32, 1), (48, 1))
"""Pairs: evaluate on the held-out rows after this many steps, and keep this many candidates."""


MIN_PATH_GAIN = 0.5
"""Steps continue while held-out outputs gain this many nats between two evaluations."""

MIN_PATH_STEPS = 32
"""The fewest steps that are tried in any case."""

MAX_ROWS_LOOKED_AT = 20_000
"""At most this many rows are read to find out whether rows send more than one column."""

MIN_STEPS = 16
"""Classes that have gained nothing after this many steps are given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """The fit with one class per group: cheap, because it needs only sums of outputs.

    ``steps`` and ``smooth`` hold one value per column: a column of two values converges long before
    one of many.  ``whole`` is the smoothing of each whole column, over all groups; ``start`` is the
    fit of whole columns to all rows.
    """

    near: int
    steps: tuple[int, ...]
    smooth: tuple[float, ...]
    whole: tuple[float, ...] = ()
    start: ColumnStart | None = None

    @classmethod
    def alike(cls, columns: int, near: int, steps: int, smooth: float = 0.0) -> Base:
        """Use the same steps and smoothing for every column."""
        return cls(near, (steps,) * columns, (smooth,) * columns)

    @property
    def usual_smooth(self) -> float:
        """The smoothing of classes, which is the same for all columns."""
        return float(np.median(self.smooth)) if self.smooth else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ChosenModel:
    """A candidate, its steps, the model fitted to the training part, and its held-out gain.

    ``gain`` is in nats per row, relative to one class per group.
    """

    classes: int
    near: int
    steps: int
    model: Mixture
    gain: float


def kernels(groups: Groups) -> list[Table]:
    """Return candidate kernels, from no weight for rows of other groups to a large one."""
    if groups.ordered:
        found = [groups.kernel(width * groups.count / 32) for width in WIDTHS]
    else:
        eye = np.eye(groups.count)
        found = [eye + share * (1 - eye) for share in SHARES]
    return [k.astype(np.float32) for k in found]


def tally(rows: EncodedRows, index: Index) -> Table:
    """Return ``[g, t]``: how many rows of group g have output t.

    For bits, it holds how many rows sent the column and how many set each bit.  A row of weight w
    counts as w rows.
    """
    counts = np.zeros((rows.groups, index.height), dtype=np.float32)
    top = index.bases[0] if len(index.bases) else index.height
    ends = [*index.offsets[1:], top][: len(index.offsets)]
    for g, begin, end in rows.units:
        weight = rows.weight[begin:end] if len(rows.weight) else None
        for j, (at, after) in enumerate(zip(index.offsets, ends, strict=True)):
            seen = rows.codes[begin:end, j]
            counts[g, at:after] += np.bincount(seen, weight, minlength=after - at)
            if index.unsent[j] >= 0:
                counts[g, at + index.unsent[j]] = 0.0  # carries no information
        for b, base in enumerate(index.bases):
            bits = rows.bits[begin:end, index.firsts[b] : index.firsts[b + 1]]
            sent = (bits[:, 0] != 2) * (np.float64(1) if weight is None else weight)
            counts[g, base] += sent.sum()
            counts[g, base + 1 : base + 1 + bits.shape[1]] += sent @ bits
    return counts


def best_base(space: Space, groups: Groups, folds: Sequence[Table]) -> Base:
    """Choose the kernel over groups and each column's steps and smoothing, for one class per group.

    ``folds`` are tallies of parts of the rows; each part is held out once.  The kernel is the one
    under which held-out outputs are likeliest.  Then a column's smoothing is the largest that
    held-out outputs do not reject.
    """
    whole = column_smoothings(space, folds)
    start = ColumnStart.of(space, sum(folds[1:], folds[0]), whole)
    tried = [(near, 0.0) for near in range(len(kernels(groups)))]
    widths = _looks(start, groups, folds, tried)
    near = int(np.argmax(widths.score.max(axis=0).sum(axis=1)))
    ways = _looks(start, groups, folds, [(near, smooth) for smooth in SMOOTHINGS])
    chosen = [ways.smoothest(j, folds) for j in range(ways.score.shape[2])]
    steps = tuple(ways.steps[look] for look, _ in chosen)
    return Base(near, steps, tuple(SMOOTHINGS[way] for _, way in chosen), whole, start)


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """Candidate fits ("ways"), evaluated after growing numbers of steps ("looks").

    ``score[look, way, column]`` is the log-likelihood of held-out outputs, in nats.
    ``chances[look]`` holds log-chances of outputs, with a lane for each way and fold.
    """

    spans: list[tuple[int, int]]
    """Where each column's outputs begin and end."""
    steps: list[int]
    score: FloatArray
    chances: list[Table]

    def smoothest(self, j: int, folds: Sequence[Table]) -> tuple[int, int]:
        """Return a column's look and way: the largest acceptable smoothing, then the most steps.

        A candidate is acceptable if its score is at most ``SLACK_ERRORS`` standard errors below
        the best.  Too few steps leave groups more alike than they are.  This bias has the
        same direction in every column, so it does not cancel over columns.
        """
        looks = self.score[:, :, j].argmax(axis=0)
        score = self.score[looks, np.arange(len(looks)), j]
        best = int(looks[score.argmax()]), int(score.argmax())
        way = max(w for w, look in enumerate(looks) if self._stands(j, (look, w), best, folds))
        rising = range(int(looks[way]), len(self.steps))
        return max(k for k in rising if self._stands(j, (k, way), best, folds)), way

    def _stands(
        self,
        j: int,
        this: tuple[int, int],
        best: tuple[int, int],
        folds: Sequence[Table],
    ) -> bool:
        variance = 0.0
        for f, held in enumerate(folds):
            gap = self._chance(*this, j, f, len(folds)) - self._chance(*best, j, f, len(folds))
            variance += float((held[:, slice(*self.spans[j])] * gap**2).sum())
        lost = float(self.score[(*best, j)] - self.score[(*this, j)])
        return lost <= SLACK_ERRORS * float(np.sqrt(variance)) or this == best

    def _chance(self, look: int, way: int, j: int, fold: int, folds: int) -> Table:
        first, last = self.spans[j]
        return self.chances[look][:, first:last, way * folds + fold]


def _looks(
    start: ColumnStart,
    groups: Groups,
    folds: Sequence[Table],
    tried: Sequence[tuple[int, float]],
) -> _Looks:
    """Fit all ways and folds side by side, as if they were classes: only their counts differ.

    A way is a kernel and a smoothing.  The fits start from the distribution of the whole column,
    which includes held-out rows.
    """
    ways, whole = kernels(groups), sum(folds[1:], folds[0])
    spread = np.stack([ways[near] @ (whole - held) for near, _ in tried for held in folds], axis=2)
    count, lanes = len(folds), len(folds) * len(tried)
    state = start.blank(groups.count, np.eye(groups.count, dtype=np.float32), lanes)
    smooth = np.repeat([smooth for _, smooth in tried], count).astype(np.float32)
    state, spread = replace(state, smooth=smooth), spread.astype(np.float32)
    index = state.index
    top = int(index.bases[0]) if len(index.bases) else index.height
    edges = [*map(int, index.offsets), top]
    seen = np.stack(folds, axis=2)[:, :top].astype(np.float64)
    found = _Looks(list(pairwise(edges)), [], np.empty((0, len(tried), len(edges) - 1)), [])
    steps, before = 0, -np.inf
    for more in PATH:
        state, steps = state.fitted(spread, np.ones_like(state.pi), more, bits=False), steps + more
        chance = np.log(state.Q[:, :top])
        told = chance.reshape(*seen.shape[:2], len(tried), count)
        by_output = np.einsum("gtf,gtwf->twf", seen, told).reshape(top, lanes)
        by_column = np.add.reduceat(by_output, edges[:-1], axis=0) if len(edges) > 1 else by_output
        score = by_column.T.reshape(len(tried), count, -1).sum(axis=1)
        found = replace(
            found,
            steps=[*found.steps, steps],
            score=np.concatenate([found.score, score[None, :, : len(edges) - 1]]),
            chances=[*found.chances, chance],
        )
        after = float(found.score.max(axis=0).sum(axis=1).max())
        if after - before < MIN_PATH_GAIN and steps >= MIN_PATH_STEPS:
            break
        before = after
    return found


def one_class(
    space: Space, counts: Table, base: Base, groups: Groups, start: ColumnStart | None = None
) -> Mixture:
    """Return the model with one class per group, fitted to counts.

    ``start`` is the fit of whole columns to the same counts, if it is known.
    """
    near = kernels(groups)[base.near]
    smooths = sorted({*base.smooth, base.usual_smooth})
    start = start or ColumnStart.of(space, counts, base.whole)
    state = start.blank(len(counts), near, len(smooths))
    state = replace(state, smooth=np.array(smooths, dtype=np.float32))
    lanes = np.repeat(counts[:, :, None], len(smooths), axis=2)
    made = start.blank(len(counts), near)
    index, P, done = made.index, made.P.copy(), 0
    for steps in sorted(set(base.steps)):
        state = state.fitted(lanes, np.ones_like(state.pi), steps - done, bits=False)
        done = steps
        for j in np.flatnonzero(np.array(base.steps) == steps):
            column = slice(index.starts[j], index.starts[j + 1])
            P[:, column, 0] = state.P[:, column, smooths.index(base.smooth[j])]
    for b, bits in enumerate(space.bits):
        first, line = index.bit_starts[b], index.bases[b]
        shares = BitTally.of(counts, line, bits.states, bits.rates).groups(near)
        P[:, first : first + bits.states, 0] = shares
    return replace(made, P=P, smooth=np.full_like(made.smooth, base.usual_smooth)).refreshed()


def seeded(
    one: Mixture,
    rows: EncodedRows,
    classes: int,
    near: Table,
    groups: Groups,
    rng: np.random.Generator,
    factors: Factors | None = None,
    lean: float = 0.7,
) -> Mixture:
    """Return a start with many classes: points on the factors, if there are any.

    Without factors, a class starts as the posterior given the outputs of a random row.  Ordered
    groups share these centres, so that a class means the same in neighbouring groups.
    """
    index, count = one.index, groups.count
    P = np.repeat(one.P, classes, axis=2)
    if classes > 1 and factors is not None:
        factors.write_classes(one.P[:, :, 0], index, P, rng)
    elif classes > 1:
        for g in range(count):
            own = rows.units[rows.units[:, 0] == g]
            if groups.ordered and g:
                pass  # use the first group's centres
            elif groups.ordered or not len(own):
                centres = rng.integers(0, len(rows), classes)
            else:
                centres = rng.integers(own[0, 1], own[-1, 2], classes)
            _lean(P[g], one.P[g], index, rows, centres, lean)
    made = replace(
        one,
        models=np.array([0, classes]),
        near=(near,),
        near_pi=groups.kernel(groups.count / 32).astype(np.float32),
        parent=np.ascontiguousarray(one.P[:, :, 0]),
        smooth=np.full(classes, one.smooth[0], dtype=np.float32),
        pi=np.full((count, classes), 1 / classes, dtype=np.float32),
        P=np.ascontiguousarray(P),
        Q=np.zeros((count, index.height, classes), dtype=np.float32),
    )
    return made.refreshed()


def _lean(
    P: Table, one: Table, index: Index, rows: EncodedRows, centres: IntArray, lean: float
) -> None:
    for j in range(len(index.offsets)):
        first, last = index.starts[j], index.starts[j + 1]
        M = index.matrix[index.places[j] : index.places[j + 1]].reshape(last - first, -1)
        likely: Table = one[first:last] * M[:, rows.codes[centres, j]]
        likely /= np.maximum(likely.sum(axis=0), 1e-30)
        P[first:last] += lean * (likely - P[first:last])
    for b in range(len(index.bases)):
        first, last = index.bit_starts[b], index.bit_starts[b + 1]
        bits = rows.bits[centres, index.firsts[b] : index.firsts[b + 1]].T
        likely = one[first:last] * np.where(bits == 1, index.odds[b, 1], index.odds[b, 0])
        likely /= np.maximum(likely.sum(axis=0), 1e-30)
        P[first:last] += lean * (likely - P[first:last])


def best_mixture(
    one: Mixture,
    base: Base,
    train: EncodedRows,
    held: EncodedRows,
    groups: Groups,
    rng: np.random.Generator,
) -> ChosenModel:
    """Return the candidate of the ladder under which held-out rows are likeliest.

    Each evaluation drops the worst of the remaining candidates.  The result has one class per group
    if rows send one column each, or if more classes gain nothing.  Without factors, more classes
    must gain more than twice the gain's standard error.
    """
    ways = kernels(groups)
    ladder = [(c, min(base.near + wider, len(ways) - 1)) for c, wider in LADDER]
    if not groups.ordered:  # class 3 of one label is not class 3 of another
        most = max(1, int(np.median(train.sizes)) // MIN_ROWS_PER_CLASS)
        ladder = [(c, base.near if c == 1 else 0) for c, _ in LADDER if c <= most]
    if not _pairs_told(train, one.index):
        ladder = ladder[:1]
    ladder = [pair for i, pair in enumerate(ladder) if pair not in ladder[:i]]
    factors = Factors.of(one.P[:, :, 0], one.index, train, groups) if len(ladder) > 1 else None
    starts = [seeded(one, train, c, ways[w], groups, rng, factors) for c, w in ladder]
    bank = Mixture.side_by_side(starts)
    judge = _told if groups.ordered else _told_apart
    before = judge(one, held)
    best = ChosenModel(1, base.near, 0, bank[0], 0.0)
    steps = 0
    for until, stay in CHECKS:
        for _ in range(until - steps):
            bank = bank.stepped(train)
        steps = until
        gains = judge(bank, held) - before
        score, error = gains.mean(axis=0), gains.std(axis=0) / np.sqrt(max(len(held), 1))
        top = int(np.argmax(score))
        slack = 0.0 if factors is not None else 2 * error[top]
        if ladder[top][0] > 1 and score[top] > max(best.gain, slack):
            best = ChosenModel(*ladder[top], steps, bank[top], float(score[top]))
        elif steps >= max(2 * best.steps, MIN_STEPS):
            break
        kept = sorted(np.argsort(-score)[:stay].tolist())
        ladder = [ladder[k] for k in kept]
        bank = Mixture.side_by_side([bank[k] for k in kept])
    return best


def _pairs_told(rows: EncodedRows, index: Index) -> bool:
    """Return whether any row sends two columns; only such rows show how columns vary together."""
    some = rows.codes[:MAX_ROWS_LOOKED_AT] != index.unsent.astype(np.int64)
    told = some.sum(axis=1)
    for b in range(len(index.bases)):
        told = told + (rows.bits[: len(told), index.firsts[b]] != UNSENT)
    return bool((told > 1).any())


def _told(bank: Mixture, held: EncodedRows) -> FloatArray:
    """Return ``[row, model]``: log-likelihoods of held-out outputs given their group, in nats."""
    return bank.likelihoods(held)


def _told_apart(bank: Mixture, held: EncodedRows) -> FloatArray:
    """Return ``[row, model]``: log-likelihoods of held-out groups given the outputs, in nats.

    A booster learns what distinguishes groups.  So of two models that describe outputs equally
    well, this prefers the one that distinguishes groups better.
    """
    size = np.maximum(held.sizes, 1e-9)
    whole = np.full((len(held), len(bank.near)), -np.inf)
    for g, share in enumerate(size / size.sum()):
        whole = np.logaddexp(whole, bank.likelihoods(held.as_group(g)) + np.log(share))
    return np.asarray(bank.likelihoods(held) - whole)
