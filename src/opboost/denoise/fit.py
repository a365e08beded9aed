"""From noisy rows and their labels to models of clean rows, and to posterior draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from opboost.denoise.column_pairs import Pairing, pairing
from opboost.denoise.encoded_rows import Codes, EncodedRows, Space
from opboost.denoise.factor_start import Factors
from opboost.denoise.label_groups import Groups
from opboost.denoise.latent_classes import Mixture
from opboost.denoise.model_selection import (
    ChosenModel,
    best_base,
    best_mixture,
    kernels,
    one_class,
    seeded,
    tally,
)
from opboost.denoise.posterior_draws import JointDistribution, Outputs, States, drawn
from opboost.denoise.row_blocks import (
    CutRows,
    RowBlocks,
    RowsInMemory,
    Spread,
    block_slices,
    fold_tallies,
    sent_cells,
    stepped,
)

MIN_SELECTION_ROWS = 10_000
"""Of larger tables, at least so many rows take part in choosing, ..."""

SELECTION_CELLS = 200_000
"""... and at least as many as send so many cells: rows that send few columns tell little each."""

MANY_ROWS = 1_000_000
"""Of tables with more rows, those that take part are picked without numbering all of them."""

HELD_SHARE = 0.2
"""Of the rows that take part in choosing, this share is held out."""

IDLE = 2
"""The mark of a row that takes no part in choosing."""

FOLDS = 4
"""Parts of the rows, each held out once, when one class a group is chosen."""

REFINING_STEPS = 10
"""Steps on all rows that settle what was fitted to a part of them."""

INNER_STEPS = 6
"""Updates of the pmfs in each such step: they cost little beside the pass over the rows."""

FitProgress = Callable[[str, float], None]
"""Told what is going on and how much of it is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The model of the training part, and which rows it has seen (1), not seen (0), or neither (2).

    What is decided with it is decided about rows whose labels it does not know.
    """

    member: Mixture
    part: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Denoiser:
    """Fitted models of P(clean row | label); each draw comes from another of them."""

    pairing: Pairing
    groups: Groups
    members: tuple[Mixture, ...]
    chosen: ChosenModel
    trial: Trial

    def draw(self, outputs: Outputs, y: object, number: int, seed: int) -> States:
        """Clean rows given what was sent and the label: one draw, repeatable by seed and number."""
        member = self.members[number % len(self.members)]
        return drawn(member, self.pairing, outputs, self.groups.place(y), number, seed)

    def distribution(self) -> JointDistribution:
        """What rows without a label tell about themselves."""
        return JointDistribution.of(self.members[0], self.pairing, self.groups)


def fit(
    space: Space,
    groups: Groups,
    outputs: Outputs,
    seed: int = 0,
    members: int = 2,
    progress: FitProgress | None = None,
    spread: Spread | None = None,
) -> Denoiser:
    """Choose and fit: linear in rows × columns × classes a step, memory of a few bytes a cell.

    Smoothing over labels, steps and the number of classes are those under which held-out noisy rows
    are likeliest; then ``members`` models from different starts are fitted to all rows.  With
    ``spread``, workers of a cluster pass over the rows.
    """
    pairs = pairing(space, groups, outputs.codes)
    codes = pairs.paired(outputs.codes)
    if spread is not None:
        with spread(CutRows(codes, outputs.bits, groups)) as blocks:
            return fit_blocks(pairs, groups, blocks, seed, members, progress)
    rows = EncodedRows.of(codes, outputs.bits, groups.of, groups.count, groups.weight)
    return fit_blocks(pairs, groups, RowsInMemory(rows), seed, members, progress)


def fit_blocks(
    pairs: Pairing,
    groups: Groups,
    blocks: RowBlocks,
    seed: int = 0,
    members: int = 2,
    progress: FitProgress | None = None,
) -> Denoiser:
    """The same for rows in blocks: what is chosen is chosen on rows that are brought into memory.

    Passes over all rows: one that tallies outputs, one that collects these rows, and one per step.
    """
    say = progress or (lambda what, share: None)
    rng = np.random.default_rng(seed)
    space, size = pairs.paired_space(), blocks.slices[-1].stop
    index = space.index()
    part = _parts(size, _selection_rows(sent_cells(blocks, index), space), rng)
    sample = blocks.where(part < IDLE)
    train, held = sample.where(part == 1), sample.where(part == 0)
    say("choosing", 0.0)
    folds = fold_tallies(blocks, _folds(size, rng), FOLDS, index)
    whole = sum(folds[1:], folds[0])
    base = best_base(space, groups, folds)
    trained = one_class(space, tally(train, index), base, groups)
    chosen = best_mixture(trained, base, train, held, groups, rng)
    say("choosing", 1.0)
    one = one_class(space, whole, base, groups)
    if len(sample) < size:
        # Classes have taken shape on a part of the rows; all of them settle these.
        parts = [transferred(chosen.model, trained, one)]
        steps = REFINING_STEPS
    else:
        near = kernels(groups)[chosen.near]
        count = members if chosen.classes > 1 else 1
        factors = Factors.of(one.P[:, :, 0], index, sample, groups) if chosen.classes > 1 else None
        start = partial(seeded, one, sample, chosen.classes, near, groups, rng, factors)
        parts = [start() for _ in range(count)]
        steps = chosen.steps
    bank = Mixture.side_by_side([one] if chosen.classes == 1 else parts)
    for step in range(steps if chosen.classes > 1 or space.bits else 0):
        bank = stepped(bank, blocks, INNER_STEPS)
        say("fitting", (step + 1) / steps)
    fitted = tuple(bank[k] for k in range(len(bank.near)))
    return Denoiser(pairs, groups, fitted, chosen, Trial(chosen.model, part))


def transferred(model: Mixture, before: Mixture, after: Mixture) -> Mixture:
    """Classes that lean from one law of each group as they leaned from another.

    What a part of the rows told about each group's columns gives way to what all rows tell; what it
    told about classes stays.
    """
    P = (model.P * (after.P / np.maximum(before.P, 1e-9))).astype(np.float32)
    bounds = np.append(model.index.starts, model.index.bit_starts[1:])
    for first, last in pairwise(bounds):
        P[:, first:last] /= np.maximum(P[:, first:last].sum(axis=1, keepdims=True), 1e-30)
    parent = np.ascontiguousarray(after.P[:, :, 0])
    return replace(model, constant=after.constant, parent=parent, P=P).refreshed()


def _selection_rows(cells: float, space: Space) -> int:
    """How many rows take part in choosing, where a row sends so many cells."""
    return max(MIN_SELECTION_ROWS, int(SELECTION_CELLS / max(1.0, cells + len(space.bits))))


def _parts(size: int, choosing: int, rng: np.random.Generator) -> Codes:
    """1 for rows to train on, 0 for held-out rows, 2 for rows that sit out."""
    part = np.empty(size, dtype=np.uint8)
    for here in block_slices(size):
        part[here] = rng.random(here.stop - here.start) >= HELD_SHARE
    if size > MANY_ROWS:
        kept = np.sort(rng.choice(size, choosing, replace=False, shuffle=False))
        chosen = part[kept]
        part[:] = IDLE
        part[kept] = chosen
    elif size > 2 * choosing:
        part[rng.permutation(size)[choosing:]] = IDLE
    return part


def _folds(size: int, rng: np.random.Generator) -> Codes:
    """The fold of each row, one byte each."""
    fold = np.empty(size, dtype=np.uint8)
    for here in block_slices(size):
        fold[here] = rng.integers(0, FOLDS, here.stop - here.start)
    return fold
