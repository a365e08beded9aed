"""Fit models of clean rows to noisy rows and their labels, and draw from the posterior."""

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
"""In larger tables, model selection uses at least this many rows."""

SELECTION_CELLS = 200_000
"""If few cells are sent per row, model selection uses enough rows to have about this many."""

MANY_ROWS = 1_000_000
"""Above this many rows, the rows for model selection are picked without permuting all of them."""

HELD_SHARE = 0.2
"""The share of the rows for model selection that is held out."""

IDLE = 2
"""The mark of a row that takes no part in model selection."""

FOLDS = 4
"""The number of folds that are held out in turn to choose the fit with one class per group."""

REFINING_STEPS = 10
"""The number of EM steps on all rows that refine a model fitted to some of them."""

INNER_STEPS = 6
"""The number of pmf updates per EM step; they cost little compared with the pass over the rows."""

FitProgress = Callable[[str, float], None]
"""A callback that receives the name of the current stage and how much of it is done."""

Parted = Callable[[Codes], object]
"""A callback that receives each row's part (see :class:`Trial`) as soon as parts are drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The model fitted to the training part of model selection, and the part of each row.

    The parts are 1 (training), 0 (held out) and 2 (neither).  Decisions made with this model use
    rows whose labels it has not seen.
    """

    member: Mixture
    part: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Denoiser:
    """Fitted models of P(clean row | label), which successive draws use in turn."""

    pairing: Pairing
    groups: Groups
    members: tuple[Mixture, ...]
    chosen: ChosenModel
    trial: Trial

    def draw(self, outputs: Outputs, y: object, number: int, seed: int) -> States:
        """Draw clean rows given outputs and labels: one draw, repeatable by seed and number."""
        member = self.members[number % len(self.members)]
        return drawn(member, self.pairing, outputs, self.groups.place(y), number, seed)

    def distribution(self) -> JointDistribution:
        """Return the joint distribution, for rows without a label."""
        return JointDistribution.of(self.members[0], self.pairing, self.groups)


def fit(
    space: Space,
    groups: Groups,
    outputs: Outputs,
    seed: int = 0,
    members: int = 2,
    progress: FitProgress | None = None,
    spread: Spread | None = None,
    parted: Parted | None = None,
) -> Denoiser:
    """Choose a model and fit it.

    The smoothing over labels, the number of steps and the number of classes are those under which
    held-out noisy rows are likeliest.  If model selection used all rows and chose
    several classes, ``members`` models are then fitted to them from different starts.  In larger
    tables, a few steps on all rows refine the chosen model instead.  With ``spread``, the workers
    of a cluster process the rows.  A step costs time linear in rows × columns × classes, and memory
    of a few bytes per cell.
    """
    pairs = pairing(space, groups, outputs.codes)
    codes = pairs.paired(outputs.codes)
    if spread is not None:
        with spread(CutRows(codes, outputs.bits, groups)) as blocks:
            return fit_blocks(pairs, groups, blocks, seed, members, progress, parted)
    rows = EncodedRows.of(codes, outputs.bits, groups.of, groups.count, groups.weight)
    return fit_blocks(pairs, groups, RowsInMemory(rows), seed, members, progress, parted)


def fit_blocks(
    pairs: Pairing,
    groups: Groups,
    blocks: RowBlocks,
    seed: int = 0,
    members: int = 2,
    progress: FitProgress | None = None,
    parted: Parted | None = None,
) -> Denoiser:
    """Fit as :func:`fit` does, to rows in blocks; model selection brings its rows into memory.

    It passes over all rows once to count sent cells (if some rows do not send every column), once
    to collect the rows for model selection, once to tally outputs, and once per step.
    """
    say = progress or (lambda what, share: None)
    rng = np.random.default_rng(seed)
    space, size = pairs.paired_space(), blocks.slices[-1].stop
    index = space.index()
    part = _parts(size, _selection_rows(sent_cells(blocks, index), space), rng)
    if parted is not None:
        parted(part)
    sample = blocks.where(part < IDLE)
    train, held = sample.where(part == 1), sample.where(part == 0)
    say("choosing", 0.0)
    folds = fold_tallies(blocks, _folds(size, rng), FOLDS, index)
    whole = sum(folds[1:], folds[0])
    base = best_base(space, groups, folds)
    trained = one_class(space, tally(train, index), base, groups)
    chosen = best_mixture(trained, base, train, held, groups, rng)
    say("choosing", 1.0)
    one = one_class(space, whole, base, groups, base.start)
    if len(sample) < size:
        # The classes were found on a part of the rows; the steps below refine them on all rows.
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
    """Transfer the class-specific deviations from one set of group distributions to another.

    The distributions of each group's columns then come from all rows; only the deviations of the
    classes come from a part of them.
    """
    P = (model.P * (after.P / np.maximum(before.P, 1e-9))).astype(np.float32)
    bounds = np.append(model.index.starts, model.index.bit_starts[1:])
    for first, last in pairwise(bounds):
        P[:, first:last] /= np.maximum(P[:, first:last].sum(axis=1, keepdims=True), 1e-30)
    parent = np.ascontiguousarray(after.P[:, :, 0])
    return replace(model, constant=after.constant, parent=parent, P=P).refreshed()


def _selection_rows(cells: float, space: Space) -> int:
    """Return how many rows model selection uses if ``cells`` cells are sent per row."""
    return max(MIN_SELECTION_ROWS, int(SELECTION_CELLS / max(1.0, cells + len(space.bits))))


def _parts(size: int, choosing: int, rng: np.random.Generator) -> Codes:
    """Return 1 for rows to train on, 0 for held-out rows, 2 for rows that take no part."""
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
    """Return the fold of each row, one byte each."""
    fold = np.empty(size, dtype=np.uint8)
    for here in block_slices(size):
        fold[here] = rng.integers(0, FOLDS, here.stop - here.start)
    return fold
