"""The rows that a booster trains on if columns stay on disk: noisy rows, or posterior draws.

The steps are those of ``denoised_rows.py``.  EM passes over the rows in blocks; choices and
comparisons use random rows that fit into memory.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.boosting.booster import Booster
from opboost.denoise import Groups, Outputs, Verdict
from opboost.denoise.column_pairs import MAX_ROWS_READ, Pairing, pairing
from opboost.denoise.fit import fit_blocks
from opboost.denoise.row_blocks import StoredBlocks, block_draws, kept_here
from opboost.training.clean_states import StateCoding, own_cuts
from opboost.training.column_screening import LEFT_OUT, is_wide, screened
from opboost.training.denoised_rows import (
    Choice,
    ComparedRows,
    Denoised,
    Narration,
    TrainingRows,
    checked_choice,
    compared,
    draws_per_row,
    judges,
    label_groups,
    spread_of,
)
from opboost.training.drawn_columns import write_draws
from opboost.training.stored_rows import StoredRows
from opboost.training.targets import Target

SAMPLE_ROWS = 500_000
"""Columns are screened, and bins of own numbers found, on at most this many rows."""


def stored_training_rows(
    rows: StoredRows,
    target: Target,
    *,
    denoise: Choice,
    booster: Booster,
    seed: int = 0,
    verbose: int = 0,
) -> tuple[TrainingRows, list[StoredRows]]:
    """Return how the rows to train on were made, and the rows: one :class:`StoredRows` per draw.

    The arguments are those of ``training_rows``.  Memory: a block of rows, the sample, and a few
    bytes per row.
    """
    shares = list(rows.sent.values())
    denoise = checked_choice(denoise, shares, booster, rows.count)
    if denoise is False:
        return TrainingRows([]), [rows]
    sample = _sample(rows.count, seed)
    rows = rows.without(_useless(rows, target, sample))
    sent = [LEFT_OUT if n in rows.left_out else share for n, share in rows.sent.items()]
    coding = StateCoding.of(rows.layout, sent, own_cuts(rows.layout, rows.own(sample)))
    if not coding.denoises:
        return TrainingRows([]), [rows]
    groups, draws = label_groups(target), draws_per_row(rows.count)
    spread = spread_of(booster) or kept_here
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(dir=rows.folder, prefix="encoded-")
        )
        pairs, stored = _encoded(rows, coding, groups, Path(folder))
        blocks = stack.enter_context(spread(stored))
        with Narration(verbose) as progress:
            denoiser = fit_blocks(pairs, groups, blocks, seed, draws, progress)
        found = Denoised(coding, denoiser, seed)
        verdict: Verdict | None = None
        way: Any = "draws"
        if denoise == "auto":
            verdict, way = compared(found, _compared_rows(found, rows, target), booster, draws)
            if not verdict.denoise:
                return TrainingRows([], verdict=verdict), [rows]
        members = denoiser.members
        states = [
            block_draws(blocks, members[k % len(members)], pairs, k, seed) for k in range(draws)
        ]
        drawn = write_draws(rows, coding, states, blocks.slices)
    return TrainingRows([], draws, found, verdict, found.posterior(target, way)), drawn


def _sample(rows: int, seed: int) -> IntArray:
    """Return the places of random rows, in order; all rows if there are few."""
    if rows <= SAMPLE_ROWS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, SAMPLE_ROWS, replace=False))


def _useless(rows: StoredRows, target: Target, sample: IntArray) -> frozenset[Any]:
    """Return the useless columns of a table that is wide enough for them to do harm."""
    if not is_wide(list(rows.sent.values())):
        return frozenset()
    release, _ = rows.take(sample)
    found = screened(release, target.where(sample))
    return frozenset(c.private.name for c in found if c.sent == LEFT_OUT)


def _encoded(
    rows: StoredRows, coding: StateCoding, groups: Groups, folder: Path
) -> tuple[Pairing, StoredBlocks]:
    """Decide which columns are paired, and write the rows in the form that EM reads."""

    def outputs(here: slice) -> Outputs:
        return coding.outputs(rows.release(here), rows.own(here))

    first = outputs(slice(0, min(rows.count, MAX_ROWS_READ)))
    pairs = pairing(coding.space, groups, first.codes)
    return pairs, StoredBlocks.write(folder, outputs, pairs, groups)


def _compared_rows(found: Denoised, rows: StoredRows, target: Target) -> ComparedRows:
    """Read into memory the rows that decide whether to denoise."""
    seen, held = judges(found.denoiser.trial.part)
    places = np.union1d(seen, held)
    release, own = rows.take(places)
    return ComparedRows(
        release,
        own,
        found.coding.outputs(release, own),
        target.where(places),
        found.denoiser.groups.where(places),
        np.searchsorted(places, seen),
        np.searchsorted(places, held),
        rows.folder,
    )
