"""Chosen without clean rows: smoothing, steps and classes, by likelihood of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.denoise.category_shares import BitTally
from opboost.denoise.encoded_rows import EncodedRows, Index, Space, Table
from opboost.denoise.label_groups import Groups
from opboost.denoise.latent_classes import FLOOR, Mixture

KAPPA = 0.1
"""Rows of the parent's law that are added to every pmf."""

WIDTHS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Widths of the kernel over ordered groups, in thirty-seconds of the rows."""

SHARES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""What a row counts for each other class, where groups have no order."""

SMOOTHINGS = (0.0, 0.01, 0.03, 0.06, 0.12, 0.3)
"""How far a step draws a cell's ratio to its column's law towards those of its neighbours."""

SLACK_ERRORS = 1.5
"""A smoother law stands while held-out outputs are less likely by at most so many errors."""

PATH = (4, 4, 8, 16, 32, 64, 128, 256, 512)
"""Steps between two looks at the held-out rows, for one class a group."""

LADDER = ((1, 0), (4, 0), (8, 1), (16, 1), (16, 2), (32, 3))
"""Candidates: classes in each group, and how much wider than the base's the kernel is."""

MIN_ROWS_PER_CLASS = 64
"""Where groups do not lend each other rows, a class has at least so many of them."""

CHECKS = ((6, 3), (12, 2), (24, 1), (48, 1))
"""After so many steps the held-out rows are looked at, and so many candidates stay."""


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """One class a group: cheap, because sums of outputs are all that it needs."""

    near: int
    steps: int
    smooth: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ChosenModel:
    """A candidate, its steps, the model that the training part gave, and its held-out gain.

    ``gain`` is in nats a row over one class a group.
    """

    classes: int
    near: int
    steps: int
    model: Mixture
    gain: float


def kernels(groups: Groups) -> list[Table]:
    """Ways to let a row count for other groups, from not at all to much."""
    if groups.ordered:
        found = [groups.kernel(width * groups.count / 32) for width in WIDTHS]
    else:
        eye = np.eye(groups.count)
        found = [eye + share * (1 - eye) for share in SHARES]
    return [k.astype(np.float32) for k in found]


def tally(rows: EncodedRows, index: Index) -> Table:
    """``[g, t]``: how many rows of group g have output t; of bits, how many sent, how many set."""
    counts = np.zeros((rows.groups, index.height), dtype=np.float32)
    top = index.bases[0] if len(index.bases) else index.height
    ends = [*index.offsets[1:], top][: len(index.offsets)]
    for g, begin, end in rows.units:
        for j, (at, after) in enumerate(zip(index.offsets, ends, strict=True)):
            counts[g, at:after] += np.bincount(rows.codes[begin:end, j], minlength=after - at)
        for b, base in enumerate(index.bases):
            bits = rows.bits[begin:end, index.firsts[b] : index.firsts[b + 1]]
            sent = bits[bits[:, 0] != 2]
            counts[g, base] += len(sent)
            counts[g, base + 1 : base + 1 + bits.shape[1]] += sent.sum(axis=0)
    return counts


def blank(space: Space, counts: Table, near: Table, lanes: int = 1) -> Mixture:
    """The start: every pmf that of its whole column, deconvolved from the rows of all groups."""
    index, groups = space.index(), len(counts)
    flat = [np.full(m.shape[0], 1 / m.shape[0]) for m in space.matrices]
    for b, bits in enumerate(space.bits):
        flat.append(BitTally.of(counts, index.bases[b], bits.states, bits.odds).column())
    column = np.concatenate(flat).astype(np.float32)
    start = Mixture(
        index,
        np.ones(index.height, dtype=np.float32),
        np.array([0, 1]),
        (np.ones((1, 1), dtype=np.float32),),
        np.ones((1, 1), dtype=np.float32),
        column[None],
        KAPPA,
        np.zeros(1, dtype=np.float32),
        np.ones((1, 1), dtype=np.float32),
        column[None, :, None].copy(),
        np.zeros((1, index.height, 1), dtype=np.float32),
    )
    start = start.fitted(counts.sum(axis=0)[None, :, None], start.pi, 200, bits=False)
    constant = np.ones(index.height, dtype=np.float32)
    top = index.bases[0] if len(index.bases) else index.height
    constant[:top] = np.maximum(start.Q[0, :top, 0], FLOOR)
    parent = np.repeat(start.P[:, :, 0], groups, axis=0)
    return replace(
        start,
        constant=constant,
        models=np.array([0, lanes]),
        near=(near,),
        near_pi=near,
        parent=parent,
        smooth=np.zeros(lanes, dtype=np.float32),
        pi=np.full((groups, lanes), 1 / lanes, dtype=np.float32),
        P=np.ascontiguousarray(np.repeat(parent[:, :, None], lanes, axis=2)),
        Q=np.zeros((groups, index.height, lanes), dtype=np.float32),
    )


def best_base(space: Space, groups: Groups, train: Table, held: Table) -> Base:
    """The kernel over groups, the steps and the smoothing that suit one class a group.

    The kernel is that under which held-out outputs are likeliest; then the smoothing is the largest
    that they do not speak against.
    """
    widths = [Base(near, 0) for near in range(len(kernels(groups)))]
    wide = max(_paths(space, groups, train, held, widths), key=lambda way: way.score)
    smoothings = [replace(wide.base, smooth=smooth) for smooth in SMOOTHINGS]
    ways = _paths(space, groups, train, held, smoothings)
    best = max(ways, key=lambda way: way.score)
    return max((way.base for way in ways if way.stands(best, held)), key=lambda base: base.smooth)


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """One way to fit, stopped where held-out outputs are likeliest: ``chance`` are their logs."""

    base: Base
    score: float
    chance: Table

    def stands(self, best: _Path, held: Table) -> bool:
        """Whether it is worse than the best by no more than the error of the difference allows."""
        seen = held[:, : self.chance.shape[1]]
        error = float(np.sqrt((seen * (self.chance - best.chance) ** 2).sum()))
        return best.score - self.score <= SLACK_ERRORS * error


def _paths(
    space: Space, groups: Groups, train: Table, held: Table, tried: Sequence[Base]
) -> list[_Path]:
    """All ways side by side, as if they were classes: their counts differ, not the code."""
    ways = kernels(groups)
    spread = np.stack([ways[base.near] @ train for base in tried], axis=2).astype(np.float32)
    state = blank(space, train, np.eye(groups.count, dtype=np.float32), len(tried))
    state = replace(state, smooth=np.array([base.smooth for base in tried], dtype=np.float32))
    top = state.index.bases[0] if len(state.index.bases) else state.index.height
    found = [_Path(base, -np.inf, np.empty((0, 0), np.float32)) for base in tried]
    steps = 0
    for more in PATH:
        state, steps = state.fitted(spread, np.ones_like(state.pi), more, bits=False), steps + more
        chance = np.log(state.Q[:, :top])
        score = np.einsum("gt,gtc->c", held[:, :top].astype(np.float64), chance)
        for k, way in enumerate(found):
            if score[k] > way.score:
                base = replace(way.base, steps=steps)
                found[k] = _Path(base, float(score[k]), chance[:, :, k])
        if steps >= 4 * max(found, key=lambda way: way.score).base.steps:
            break
    return found


def one_class(space: Space, counts: Table, base: Base, groups: Groups) -> Mixture:
    """The model with one class a group, fitted to counts."""
    near = kernels(groups)[base.near]
    made = blank(space, counts, near)
    made = replace(made, smooth=np.full_like(made.smooth, base.smooth))
    made = made.fitted(counts[:, :, None], np.ones_like(made.pi), base.steps, bits=False)
    for b, bits in enumerate(space.bits):
        first, line = made.index.bit_starts[b], made.index.bases[b]
        shares = BitTally.of(counts, line, bits.states, bits.odds).groups(near)
        made.P[:, first : first + bits.states, 0] = shares
    return made.refreshed()


def seeded(
    one: Mixture,
    rows: EncodedRows,
    classes: int,
    near: Table,
    groups: Groups,
    rng: np.random.Generator,
    lean: float = 0.7,
) -> Mixture:
    """A start with many classes: each leans towards what a row drawn at random sent.

    A class begins as the posterior of its centre's outputs.  Ordered groups share the centres, so
    that a class means the same in neighbouring groups.
    """
    index, count = one.index, groups.count
    P = np.repeat(one.P, classes, axis=2)
    if classes > 1:
        for g in range(count):
            own = rows.units[rows.units[:, 0] == g]
            if groups.ordered and g:
                pass  # the first group's centres
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
    """The candidate of the ladder under which held-out rows are likeliest; the worse half of those
    that are left goes at each look.

    One class a group it stays, unless more gain more than twice the gain's standard error.
    """
    ways = kernels(groups)
    ladder = [(c, min(base.near + wider, len(ways) - 1)) for c, wider in LADDER]
    if not groups.ordered:  # class 3 of one label is not class 3 of another
        most = max(1, int(np.median(train.sizes)) // MIN_ROWS_PER_CLASS)
        ladder = [(c, base.near if c == 1 else 0) for c, _ in LADDER if c <= most]
    ladder = [pair for i, pair in enumerate(ladder) if pair not in ladder[:i]]
    bank = Mixture.side_by_side([seeded(one, train, c, ways[w], groups, rng) for c, w in ladder])
    judge = _told if groups.ordered else _told_apart
    before = judge(one, held)
    best = ChosenModel(1, base.near, 0, bank[0], 0.0)
    steps = 0
    for until, stay in CHECKS:
        for _ in range(until - steps):
            bank, _ = bank.stepped(train)
        steps = until
        gains = judge(bank, held) - before
        score, error = gains.mean(axis=0), gains.std(axis=0) / np.sqrt(max(len(held), 1))
        top = int(np.argmax(score))
        if score[top] > max(best.gain, 2 * error[top]):
            best = ChosenModel(*ladder[top], steps, bank[top], float(score[top]))
        elif steps >= 2 * max(best.steps, CHECKS[1][0]):
            break
        kept = sorted(np.argsort(-score)[:stay].tolist())
        ladder = [ladder[k] for k in kept]
        bank = Mixture.side_by_side([bank[k] for k in kept])
    return best


def _told(bank: Mixture, held: EncodedRows) -> FloatArray:
    """``[row, model]``: how likely held-out outputs are given their group, in nats."""
    return bank.likelihoods(held)


def _told_apart(bank: Mixture, held: EncodedRows) -> FloatArray:
    """``[row, model]``: how likely held-out groups are given the outputs, in nats.

    What a booster learns is what tells groups apart, so of two models that describe outputs this
    asks for the one that does that.
    """
    size = np.maximum(held.sizes, 1e-9)
    whole = np.full((len(held), len(bank.near)), -np.inf)
    for g, share in enumerate(size / size.sum()):
        whole = np.logaddexp(whole, bank.likelihoods(held.as_group(g)) + np.log(share))
    return np.asarray(bank.likelihoods(held) - whole)
