"""From noisy rows and their labels to models of clean rows, and to posterior draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.denoise.choose import (
    Chosen,
    best_base,
    best_mixture,
    kernels,
    one_class,
    seeded,
    tally,
)
from opboost.denoise.labels import Groups
from opboost.denoise.mixture import Mixture
from opboost.denoise.pairs import Pairing, pairing
from opboost.denoise.rows import Codes, Rows, Space

LOOK = 10_000
"""Of tables with more than twice so many rows, so many take part in choosing."""

REFINE = 16
"""Steps on all rows that settle what was fitted to a part of them."""

INNER = 6
"""Updates of the pmfs in each such step: they cost little beside the pass over the rows."""

Progress = Callable[[str, float], None]
"""Told what is going on and how much of it is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What rows sent: codes of channel columns and own ones, and bits of unary columns."""

    codes: Codes
    bits: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: BoolArray | IntArray) -> Outputs:
        return Outputs(self.codes[rows], self.bits[rows])


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Clean rows, drawn: states of channel columns, categories of unary columns."""

    cells: Codes
    categories: Codes


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
    chosen: Chosen
    trial: Trial

    def draw(self, outputs: Outputs, y: object, number: int, seed: int) -> States:
        """Clean rows given what was sent and the label: one draw, repeatable by seed and number."""
        member = self.members[number % len(self.members)]
        return drawn(member, self.pairing, outputs, self.groups.place(y), number, seed)

    def draw_unlabelled(self, outputs: Outputs, times: int, seed: int) -> States:
        """Clean rows given what was sent alone: each row so many times, one below the other."""
        chance = group_chances(self.members[0], self.pairing, self.groups, outputs)
        return drawn_unlabelled(self.members[0], self.pairing, chance, outputs, times, seed)


def fit(
    space: Space,
    groups: Groups,
    outputs: Outputs,
    seed: int = 0,
    members: int = 2,
    progress: Progress | None = None,
) -> Denoiser:
    """Choose and fit: linear in rows × columns × classes a step, memory of a few bytes a cell.

    Smoothing over labels, steps and the number of classes are those under which held-out noisy rows
    are likeliest; then ``members`` models from different starts are fitted to all rows.
    """
    say = progress or (lambda what, share: None)
    rng = np.random.default_rng(seed)
    pairs = pairing(space, groups, outputs.codes)
    space = pairs.paired_space()
    rows = Rows.of(pairs.paired(outputs.codes), outputs.bits, groups.of, groups.count)
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
        steps = REFINE
    else:
        near = kernels(groups)[chosen.near]
        count = members if chosen.classes > 1 else 1
        parts = [seeded(one, rows, chosen.classes, near, groups, rng) for _ in range(count)]
        steps = chosen.steps
    bank = Mixture.side_by_side([one] if chosen.classes == 1 else parts)
    for step in range(steps if chosen.classes > 1 or space.bits else 0):
        bank, _ = bank.stepped(rows, INNER)
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
    if size > 2 * LOOK:
        part[rng.permutation(size)[LOOK:]] = 2
    return part


def drawn(
    member: Mixture, pairs: Pairing, outputs: Outputs, group: IntArray, number: int, seed: int
) -> States:
    """One draw from one model, for rows of these groups."""
    space = pairs.paired_space()
    rows = Rows.of(pairs.paired(outputs.codes), outputs.bits, group, len(member.pi))
    key = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
    most = max((c.states for c in space.channels), default=1)
    cells = np.zeros((len(outputs), len(space.channels)), np.min_scalar_type(most))
    largest = max((b.states for b in space.bits), default=1)
    categories = np.zeros((len(outputs), len(space.bits)), np.min_scalar_type(largest))
    member.draw(rows, len(space.channels), key, cells, categories)
    return States(pairs.parted(cells), categories)


def drawn_unlabelled(
    member: Mixture, pairs: Pairing, chance: FloatArray, outputs: Outputs, times: int, seed: int
) -> States:
    """First a group by its chance, then a clean row given both; row 0 stands first, ``times``
    times.
    """
    ladder = chance.cumsum(axis=1)
    want = np.random.default_rng([seed, 1]).random((len(outputs), times))
    group = np.array([np.searchsorted(rise, at) for rise, at in zip(ladder, want, strict=True)])
    group = group.reshape(-1).clip(0, chance.shape[1] - 1)
    many = outputs[np.repeat(np.arange(len(outputs)), times)]
    return drawn(member, pairs, many, group, 0, seed)


def group_chances(member: Mixture, pairs: Pairing, groups: Groups, outputs: Outputs) -> FloatArray:
    """``[row, group]``: P(group | outputs).  Cost: a pass over the rows for each group."""
    share = np.bincount(groups.of, minlength=groups.count) + 1e-9
    score = np.tile(np.log(share / share.sum()), (len(outputs), 1))
    codes = pairs.paired(outputs.codes)
    for g in range(groups.count):
        rows = Rows.of(codes, outputs.bits, np.full(len(outputs), g), groups.count)
        score[:, g] += member.likelihoods(rows)[:, 0]
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))
