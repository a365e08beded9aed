"""Convert released codes to the outputs that models read, and drawn states back to codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import Matrix
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.private_column import PrivateColumn
from opboost.denoise import BitNoise, Outputs, Space, States, outputs_of
from opboost.denoise.mixture_kernel import UNSENT
from opboost.denoise.noise_matrix import (
    MAX_GRID_CELLS,
    MAX_RUNS,
    NoiseMatrix,
    run_length,
    runs_matrix_of,
)
from opboost.mechanisms import Mechanism, NominalMechanism
from opboost.randomness.splitmix64 import splitmix64
from opboost.training.column_screening import LEFT_OUT
from opboost.training.feature_matrix import Layout
from opboost.training.released_columns import ReleasedColumn

Cuts = tuple[FloatArray | None, ...]
"""For each own column, where its numbers are cut into bins; None for categories."""

RUN_ROWS = 2**16
"""If states are runs of cells, cells are drawn for this many rows at a time."""

CLEAR_ODDS = (1e-9, 1.0)
"""The odds of a category's bit, unset and set, if categories are known without noise."""

OWN_BINS = 16
OWN_COLUMNS = 64


@dataclass(frozen=True, slots=True, eq=False)
class StateCoding:
    """The conversion of released codes to outputs for models, and of drawn states to codes.

    Attributes:
        layout: Which columns are private and which are the label party's own.
        sent: The share of rows for which each private column is sent, in the layout's order.
        cuts: Where own numbers are cut into bins.
        space: The columns as the models see them.
        channels: Which private columns have a noise matrix.  The other columns, except unary bits,
            are used for training without denoising.
        absent: Whether rows may lack a column because its party does not know the person.
        largest: Columns on grids of more cells than this stay noisy.
        clear: Columns that are known without noise, in predictions.
    """

    layout: Layout
    sent: tuple[float, ...]
    cuts: Cuts
    space: Space
    channels: frozenset[int]
    absent: bool = False
    largest: int = MAX_GRID_CELLS
    clear: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        layout: Layout,
        sent: Sequence[float],
        cuts: Cuts,
        largest: int = MAX_GRID_CELLS,
        *,
        absent: bool = False,
        clear: frozenset[int] = frozenset(),
    ) -> StateCoding:
        """Build the coding of these columns; grids of more than ``largest`` cells stay noisy."""
        channels, lines, bits, known = [], [], [], []
        for place, (private, share) in enumerate(zip(layout.private, sent, strict=True)):
            if share == LEFT_OUT:
                continue
            if isinstance(private.mechanism, NominalMechanism):
                noise = BitNoise.of(private.mechanism)
                bits.append(replace(noise, odds=CLEAR_ODDS) if place in clear else noise)
                continue
            if not isinstance(private.mechanism, Mechanism):
                continue
            channel = runs_matrix_of(private.flagged() or private.mechanism, share, largest=largest)
            if channel is not None:
                if place in clear:
                    channel = NoiseMatrix(np.eye(channel.states))
                if absent and channel.unsent < 0:  # any share will do: it is equal in all states
                    channel = channel.sent_by(0.5)
                known.append(place)
                channels.append(channel)
                lines.append(_states(private.mechanism) if private.has_order else 0)
        sizes = [
            len(column.names()) + 1 if edges is None else len(edges) + 2
            for column, edges in zip(layout.own, cuts, strict=False)
        ]
        space = Space(tuple(channels), tuple(lines), tuple(bits), tuple(sizes))
        return cls(layout, tuple(sent), cuts, space, frozenset(known), absent, largest, clear)

    def with_absent(self, clear: frozenset[int] = frozenset()) -> StateCoding:
        """Return the coding for rows that may lack columns; columns in ``clear`` have no noise.

        A row lacks the columns of a party that does not know the person.
        """
        return StateCoding.of(
            self.layout, self.sent, self.cuts, self.largest, absent=True, clear=clear
        )

    @property
    def denoises(self) -> bool:
        """Whether there is a column to denoise."""
        return bool(self.space.channels or self.space.bits)

    @property
    def drawn(self) -> list[int]:
        """The places of the private columns that are drawn."""
        kept = [s != LEFT_OUT for s in self.sent]
        nominal = [isinstance(c.mechanism, NominalMechanism) for c in self.layout.private]
        return [k for k in range(len(kept)) if k in self.channels or (nominal[k] and kept[k])]

    def outputs(self, release: Sequence[ReleasedColumn], own: Matrix) -> Outputs:
        """Return what the rows sent, as the models read it: one lookup per column."""
        codes: list[IntArray] = []
        bits: list[IntArray] = []
        for place, column in enumerate(release):
            if self.sent[place] == LEFT_OUT:
                continue
            if isinstance(column.private.mechanism, NominalMechanism):
                bits.append(_sent_bits(column))
            elif place in self.channels:
                sent = _outputs(column.private.mechanism, column.parts[0])
                if place in self.clear:
                    sent = _clear_states(column.private, column.parts[0])
                if column.absent is not None:
                    unsent = self.space.channels[len(codes)].unsent
                    sent = np.where(column.absent, unsent, sent)
                codes.append(sent)
        for block, edges in zip(_own_blocks(self.layout, own), self.cuts, strict=True):
            if edges is None:
                codes.append(np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0))
            else:
                bins = np.searchsorted(edges, block[:, 0], side="right") + 1
                codes.append(np.where(np.isfinite(block[:, 0]), bins, 0))
        rows = len(release[0])
        sizes = [*(c.outputs for c in self.space.channels), *self.space.own]
        kind = np.uint8 if max(sizes, default=0) <= 256 else np.uint16
        return Outputs(
            np.column_stack(codes).astype(kind) if codes else np.zeros((rows, 0), np.uint8),
            np.hstack(bits) if bits else np.zeros((rows, 0), np.uint8),
        )

    def clean(
        self, release: Sequence[ReleasedColumn], draws: Sequence[States], each: int = 1
    ) -> list[ReleasedColumn]:
        """Return the release with drawn states instead of noisy codes, all draws stacked.

        A draw holds each row ``each`` times in succession.  The states of a column are its codes,
        so its codebook is the whole grid.  A column that is not drawn keeps what was released.
        """
        found = []
        cell = category = 0
        for place, column in enumerate(release):
            nominal = isinstance(column.private.mechanism, NominalMechanism)
            if place in self.clear:
                category, cell = category + nominal, cell + (place in self.channels)
                once = np.repeat(np.arange(len(column)), each)
                found.append(column.where(np.tile(once, len(draws))))
            elif nominal and self.sent[place] != LEFT_OUT:
                drawn = np.concatenate([d.categories[:, category] for d in draws])
                bits = _as_bits(drawn, len(column.parts))
                found.append(replace(column, parts=bits, absent=None))
                category += 1
            elif place in self.channels:
                drawn = np.concatenate([d.cells[:, cell] for d in draws])
                if run_length(_mechanism(column.private)) > 1:
                    drawn = _cells_of_runs(column, drawn, draws, each)
                cells = _as_cells(column.private, drawn)
                found.append(replace(column, parts=(cells,), absent=None))
                cell += 1
            else:
                once = np.repeat(np.arange(len(column)), each)
                found.append(column.where(np.tile(once, len(draws))))
        return found


def own_cuts(layout: Layout, own: Matrix) -> Cuts:
    """Return where own numbers are cut into bins."""
    found: list[FloatArray | None] = []
    for block in _own_blocks(layout, own):
        known = block[np.isfinite(block)]
        steps = np.arange(1, OWN_BINS) / OWN_BINS
        edges = np.unique(np.quantile(known, steps)) if len(known) else np.empty(0)
        found.append(None if block.shape[1] > 1 else edges)
    return tuple(found)


def _own_blocks(layout: Layout, own: Matrix) -> list[Matrix]:
    blocks, place = [], 0
    for column in layout.own[:OWN_COLUMNS]:
        width = len(column.names())
        blocks.append(own[:, place : place + width])
        place += width
    return blocks


def _outputs(mechanism: Mechanism, part: CodedColumn) -> IntArray:
    """Return a column's codes as positions among the outputs of its matrix; gaps get the last."""
    assert part.book is not None
    length = run_length(mechanism)
    found = (outputs_of(mechanism, part.book.values) // length)[part.codes]
    if part.missing is not None:
        found[part.missing] = -(-mechanism.outputs.size // length)
    return np.asarray(found)


def _clear_states(private: PrivateColumn, part: CodedColumn) -> IntArray:
    """Return the states of cells known without noise; a reported gap is the last state."""
    mechanism = _mechanism(private)
    found = (part.values.astype(np.int64) - mechanism.domain.L) // run_length(mechanism)
    return found if part.missing is None else np.where(part.missing, _states(mechanism), found)


def _sent_bits(column: ReleasedColumn) -> IntArray:
    block = np.column_stack([part.values for part in column.parts]).astype(np.uint8)
    missing = column.parts[0].missing
    if missing is not None:
        block[missing] = 0
        block[missing, 0] = UNSENT
    return block


def _as_bits(categories: IntArray, count: int) -> tuple[CodedColumn, ...]:
    """Return drawn categories as the bits that a release without noise would contain."""
    book = Codebook(np.array([0, 1]))
    return tuple(CodedColumn((categories == a).astype(np.uint8), book) for a in range(count))


def _as_cells(private: PrivateColumn, states: IntArray) -> CodedColumn:
    """Return drawn states as codes; if gaps are flagged, the last state is a gap."""
    assert isinstance(private.mechanism, Mechanism)
    domain = private.mechanism.domain
    book = Codebook(np.arange(domain.L, domain.R + 1))
    if private.flagged() is None:
        return CodedColumn(states, book)
    return CodedColumn(np.minimum(states, domain.size - 1), book, states >= domain.size)


def _mechanism(private: PrivateColumn) -> Mechanism:
    assert isinstance(private.mechanism, Mechanism)
    return private.mechanism


def _states(mechanism: Mechanism) -> int:
    """Return the number of a column's states, without the gap."""
    return -(-mechanism.domain.size // run_length(mechanism))


def _cells_of_runs(
    column: ReleasedColumn, runs: IntArray, draws: Sequence[States], each: int
) -> IntArray:
    """Draw a cell within each drawn run, by its chance given what the row sent; gaps stay gaps.

    The cell depends on what the row sent and on its drawn states, not on the row's position.
    """
    mechanism, part = _mechanism(column.private), column.parts[0]
    assert part.book is not None
    sent = outputs_of(mechanism, part.book.values).astype(np.int64)[part.codes]
    if part.missing is not None:
        sent[part.missing] = -1
    sent = np.tile(np.repeat(sent, each), len(draws))
    tokens = np.concatenate([_tokens(d) for d in draws]) ^ sent.astype(np.uint64)
    number = np.tile(np.arange(each, dtype=np.uint64), len(runs) // each)
    want = splitmix64(tokens ^ splitmix64(number)).astype(np.float64) / 2.0**64
    length, gap = run_length(mechanism), _states(mechanism)
    cells = np.full(len(runs), mechanism.domain.size, dtype=np.uint16)
    order = np.argsort(runs, kind="stable")
    ends = np.searchsorted(runs[order], np.arange(gap + 1))
    for run in range(gap):
        for begin in range(int(ends[run]), int(ends[run + 1]), RUN_ROWS):
            rows = order[begin : min(begin + RUN_ROWS, int(ends[run + 1]))]
            ladder = _chances(mechanism, run)[:, sent[rows]].cumsum(axis=0)
            place = (ladder < want[rows] * ladder[-1]).sum(axis=0)
            cells[rows] = run * length + np.minimum(place, len(ladder) - 1)
    return cells


@lru_cache(maxsize=MAX_RUNS)
def _chances(mechanism: Mechanism, run: int) -> FloatArray:
    """Return ``[cell, output]`` chances for the cells of a run; the last output is "not sent"."""
    length, first = run_length(mechanism), mechanism.domain.L
    cells = range(run * length, min((run + 1) * length, mechanism.domain.size))
    rows = np.array([mechanism.pmf(first + cell) for cell in cells])
    return np.asarray(np.maximum(np.column_stack([rows, np.ones(len(rows))]), 1e-300))


def _tokens(draw: States) -> IntArray:
    found = np.zeros(len(draw.cells), dtype=np.uint64)
    for j in range(draw.cells.shape[1]):
        found = splitmix64(found ^ draw.cells[:, j].astype(np.uint64))
    return found
