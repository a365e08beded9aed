"""From noisy rows and their labels to models of clean rows, and to posterior draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from opboost.denoise.column_pairs import Pairing, pairing
from opboost.denoise.encoded_rows import Codes, EncodedRows, Space
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

SELECTION_ROWS = 10_000
"""Of tables with more than twice so many rows, so many take part in choosing."""

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
) -> Denoiser:
    """Choose and fit: linear in rows × columns × classes a step, memory of a few bytes a cell.

    Smoothing over labels, steps and the number of classes are those under which held-out noisy rows
    are likeliest; then ``members`` models from different starts are fitted to all rows.
    """
    say = progress or (lambda what, share: None)
    rng = np.random.default_rng(seed)
    pairs = pairing(space, groups, outputs.codes)
    space = pairs.paired_space()
    rows = EncodedRows.of(pairs.paired(outputs.codes), outputs.bits, groups.of, groups.count)
    part = _parts(len(outputs), rng)
    train, held = rows.where(part == 1), rows.where(part == 0)
    say("choosing", 0.0)
    index = space.index()
    whole, fifth = tally(rows, index), tally(rows.where(rng.random(len(outputs)) < 0.2), index)
    base = best_base(space, groups, whole - fifth, fifth)
    trained = one_class(space, tally(train, index), base, groups)
    chosen = best_mixture(trained, base, train, held, groups, rng)
    say("choosing", 1.0)
    one = one_class(space, whole, base, groups)
    if len(train) + len(held) < len(rows):
        # Classes have taken shape on a part of the rows; all of them settle these.
        parts = [transferred(chosen.model, trained, one)]
        steps = REFINING_STEPS
    else:
        near = kernels(groups)[chosen.near]
        count = members if chosen.classes > 1 else 1
        parts = [seeded(one, rows, chosen.classes, near, groups, rng) for _ in range(count)]
        steps = chosen.steps
    bank = Mixture.side_by_side([one] if chosen.classes == 1 else parts)
    for step in range(steps if chosen.classes > 1 or space.bits else 0):
        bank, _ = bank.stepped(rows, INNER_STEPS)
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


def _parts(size: int, rng: np.random.Generator) -> Codes:
    """1 for rows to train on, 0 for held-out rows, 2 for rows that sit out."""
    part = np.where(rng.random(size) < 0.2, 0, 1).astype(np.uint8)
    if size > 2 * SELECTION_ROWS:
        part[rng.permutation(size)[SELECTION_ROWS:]] = 2
    return part
