"""Estimate each whole column's distribution from all groups' outputs: every fit starts from it.

Where rows are few and noise is high, EM without smoothing ends in a few spikes.  All groups would
inherit them, and draws would say nothing about the cells in between.  So held-out outputs choose
how smooth each column is, before any group is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from opboost.denoise.category_shares import BitTally
from opboost.denoise.encoded_rows import Space, Table
from opboost.denoise.latent_classes import FLOOR, Mixture

KAPPA = 0.1
"""Every pmf is fitted as if this many more rows followed its parent distribution."""

COLUMN_STEPS = 200
"""The number of EM steps for a whole column."""

COLUMN_SMOOTHINGS = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6)
"""Candidate smoothings: how far each step pulls a cell of a whole column towards its neighbours."""

SLACK_ERRORS = 1.5
"""A smoother distribution, or more steps, is preferred while it lowers the log-likelihood of the
held-out outputs by at most this many standard errors."""


def column_smoothings(space: Space, folds: Sequence[Table]) -> tuple[float, ...]:
    """Return each column's smoothing: the largest that held-out outputs do not reject.

    ``folds`` are tallies of parts of the rows; each part is held out once.
    """
    index = space.index()
    held = np.stack([fold.sum(axis=0) for fold in folds], axis=1).astype(np.float64)
    ways, parts = len(COLUMN_SMOOTHINGS), held.shape[1]
    counts = np.tile(held.sum(axis=1, keepdims=True) - held, (1, ways)).astype(np.float32)
    smooth = np.repeat(COLUMN_SMOOTHINGS, parts).astype(np.float32)
    fitted = _uniform(space, held.sum(axis=1), smooth).fitted(
        counts[None], np.ones((1, len(smooth)), dtype=np.float32), COLUMN_STEPS, bits=False
    )
    chance = np.log(fitted.Q[0]).reshape(-1, ways, parts)
    top = int(index.bases[0]) if len(index.bases) else index.height
    found = []
    for first, last in pairwise([*map(int, index.offsets), top]):
        seen, told = held[first:last, None], chance[first:last]
        score = (seen * told).sum(axis=(0, 2))
        best = int(score.argmax())
        error = np.sqrt((seen * (told - told[:, best : best + 1]) ** 2).sum(axis=(0, 2)))
        stands = score[best] - score <= SLACK_ERRORS * error
        found.append(COLUMN_SMOOTHINGS[int(np.flatnonzero(stands).max())])
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnStart:
    """The start of every fit: each whole column's pmf, deconvolved from the rows of all groups.

    ``constant`` holds, for each output, the value by which its chances are divided.
    """

    fitted: Mixture
    column: Table
    constant: Table

    @classmethod
    def of(cls, space: Space, counts: Table, smooth: Sequence[float] = ()) -> ColumnStart:
        """Fit the columns; ``smooth`` holds each column's smoothing, and defaults to none."""
        index = space.index()
        smooth = smooth or (0.0,) * (len(index.starts) - 1)
        kinds = sorted({0.0, *smooth})
        whole = counts.sum(axis=0)
        start = _uniform(space, whole, np.array(kinds, dtype=np.float32))
        many = np.repeat(whole[None, :, None], len(kinds), axis=2)
        start = start.fitted(many, start.pi, COLUMN_STEPS, bits=False)
        column, output = start.P[0, :, 0].copy(), start.Q[0, :, 0].copy()
        top = int(index.bases[0]) if len(index.bases) else index.height
        ends = [*map(int, index.offsets), top]
        for j, value in enumerate(smooth):
            lane = kinds.index(value)
            states, seen = slice(index.starts[j], index.starts[j + 1]), slice(ends[j], ends[j + 1])
            column[states], output[seen] = start.P[0, states, lane], start.Q[0, seen, lane]
        constant = np.ones(index.height, dtype=np.float32)
        constant[:top] = np.maximum(output[:top], FLOOR)
        return cls(start, column, constant)

    def blank(self, groups: int, near: Table, lanes: int = 1) -> Mixture:
        """Return the start of each group and lane: every pmf is that of its whole column."""
        parent = np.repeat(self.column[None], groups, axis=0)
        return replace(
            self.fitted,
            constant=self.constant,
            models=np.array([0, lanes]),
            near=(near,),
            near_pi=near,
            parent=parent,
            smooth=np.zeros(lanes, dtype=np.float32),
            pi=np.full((groups, lanes), 1 / lanes, dtype=np.float32),
            P=np.ascontiguousarray(np.repeat(parent[:, :, None], lanes, axis=2)),
            Q=np.zeros((groups, len(self.constant), lanes), dtype=np.float32),
        )


def _uniform(space: Space, counts: Table, smooth: Table) -> Mixture:
    """Return the start of one group, with one class per smoothing.

    Columns with a noise matrix start uniform; the shares of categories are estimated from the bits.
    """
    index, lanes = space.index(), len(smooth)
    flat = [np.full(m.shape[0], 1 / m.shape[0]) for m in space.matrices]
    for b, bits in enumerate(space.bits):
        tally = BitTally.of(counts[None], index.bases[b], bits.states, bits.rates)
        flat.append(tally.column())
    column = np.concatenate(flat).astype(np.float32)
    alone = np.ones((1, 1), dtype=np.float32)
    return Mixture(
        index,
        np.ones(index.height, dtype=np.float32),
        np.array([0, lanes]),
        (alone,),
        alone,
        column[None],
        KAPPA,
        smooth,
        np.ones((1, lanes), dtype=np.float32),
        np.repeat(column[None, :, None], lanes, axis=2),
        np.zeros((1, index.height, lanes), dtype=np.float32),
    )
