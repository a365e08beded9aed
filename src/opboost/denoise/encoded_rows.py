"""Rows in the form that the compiled loops read: all outputs, sorted by group, cut into units."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.denoise.noise_matrix import BitNoise, NoiseMatrix
from opboost.runtime.threads import most_threads, threads_for

UNIT_ROWS = 8192

CLASSES_PER_CELL = 8
"""Weighing a cell under this many classes takes as long as all other work on it."""

WAVE_CELLS = 2**22
"""Sums of units are added up before they occupy more than this many cells of memory."""

Codes = np.ndarray[Any, Any]
Table = np.ndarray[Any, np.dtype[np.float32]]


Line = int | tuple[tuple[int, int], tuple[int, int]]
"""How many of a column's states are ordered, counted from the first.  For a pair of columns: for
each of the two, this number and the number of its states."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The columns of a table: private ones with noise matrices, unary bits, and own ones.

    ``lines`` says which states are neighbours.  ``own`` holds how many values each of the label
    party's discretised columns has.
    """

    channels: tuple[NoiseMatrix, ...]
    lines: tuple[Line, ...]
    bits: tuple[BitNoise, ...] = ()
    own: tuple[int, ...] = ()

    @property
    def matrices(self) -> list[FloatArray]:
        """One matrix for each column that is stored as a code."""
        return [*(c.matrix for c in self.channels), *(np.eye(k) for k in self.own)]

    def index(self) -> Index:
        """Return where each column's lines start in the tables of the compiled loops."""
        matrices = self.matrices
        states = [m.shape[0] for m in matrices]
        outputs = [m.shape[1] for m in matrices]
        sizes = [b.states for b in self.bits]
        bases = sum(outputs) + _starts([k + 1 for k in sizes])
        flat = [m.ravel() for m in matrices] or [np.empty(0)]
        return Index(
            _starts(outputs)[:-1],
            np.array([*(c.unsent for c in self.channels), *(-1 for _ in self.own)], dtype=np.int64),
            _starts(states),
            np.concatenate(flat).astype(np.float32),
            _starts([m.size for m in matrices]),
            np.array([0] * len(self.channels) + [1] * len(self.own), dtype=np.uint8),
            np.array(
                [_ways(line) for line in (*self.lines, *(0 for _ in self.own))], dtype=np.int64
            ).reshape(-1, 2, 4),
            bases[:-1],
            sum(states) + _starts(sizes),
            _starts(sizes),
            np.array([b.odds for b in self.bits], dtype=np.float32).reshape(-1, 2),
            int(bases[-1]),
            sum(states) + sum(sizes),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """See :meth:`Space.index`; the names are those of :mod:`opboost.denoise.mixture_kernel`."""

    offsets: IntArray
    unsent: IntArray
    starts: IntArray
    matrix: Table
    places: IntArray
    exact: Codes
    lines: IntArray
    bases: IntArray
    bit_starts: IntArray
    firsts: IntArray
    odds: Table
    height: int
    states: int


def _ways(line: Line) -> list[list[int]]:
    """Return the lines along which states are neighbours: length, step, count, distance."""
    if isinstance(line, int):
        return [[line, 1, 1, 0], [0, 0, 0, 0]]
    (first, states), (second, width) = line
    return [[first, width, width, 1], [second, 1, states, width]]


def _starts(sizes: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Outputs of all columns, rows sorted by group; ``order`` holds each row's place in the table.

    ``units`` are (group, begin, end): pieces of at most 8,192 rows of one group.  ``weight`` says
    how many rows each row counts for; it is empty if every row counts once.
    """

    codes: Codes
    bits: Codes
    order: IntArray
    units: IntArray
    groups: int
    weight: Table

    @classmethod
    def of(
        cls,
        codes: Codes,
        bits: Codes,
        group: IntArray,
        groups: int,
        weight: FloatArray | None = None,
    ) -> EncodedRows:
        """Sort a table by group."""
        order = np.argsort(group, kind="stable")
        codes, bits = np.ascontiguousarray(codes[order]), np.ascontiguousarray(bits[order])
        return cls.in_order(codes, bits, order, group, groups, weight)

    @classmethod
    def in_order(
        cls,
        codes: Codes,
        bits: Codes,
        order: IntArray,
        group: IntArray,
        groups: int,
        weight: FloatArray | None = None,
    ) -> EncodedRows:
        """Take outputs already sorted by group; ``group`` and ``weight`` are in table order."""
        ends = np.searchsorted(group[order], np.arange(groups + 1))
        units = [
            (g, begin, min(begin + UNIT_ROWS, int(ends[g + 1])))
            for g in range(groups)
            for begin in range(int(ends[g]), int(ends[g + 1]), UNIT_ROWS)
        ]
        return cls(
            codes,
            bits,
            order,
            np.array(units, dtype=np.int64).reshape(-1, 3),
            groups,
            (np.empty(0) if weight is None else weight[order]).astype(np.float32),
        )

    def __len__(self) -> int:
        return len(self.order)

    @property
    def sizes(self) -> IntArray:
        """The number of rows in each group."""
        return np.bincount(
            self.units[:, 0], self.units[:, 2] - self.units[:, 1], minlength=self.groups
        ).astype(np.int64)

    def where(self, keep: BoolArray) -> EncodedRows:
        """Select the marked rows of the table; ``order`` still refers to the whole table."""
        inside = keep[self.order]
        before = np.concatenate([[0], np.cumsum(inside)])
        units = self.units.copy()
        units[:, 1], units[:, 2] = before[units[:, 1]], before[units[:, 2]]
        units = units[units[:, 1] < units[:, 2]]
        weight = self.weight[inside] if len(self.weight) else self.weight
        return EncodedRows(
            self.codes[inside], self.bits[inside], self.order[inside], units, self.groups, weight
        )

    def as_group(self, g: int) -> EncodedRows:
        """Return the same rows as if all belonged to group ``g``."""
        units = self.units.copy()
        units[:, 0] = g
        return replace(self, units=units)

    def each(
        self, work: Callable[[int, int], None], units: int | None = None, classes: int = 1
    ) -> None:
        """Call ``work`` on ranges of units (all by default), in threads if there is much to do.

        Every cell is weighed under ``classes`` classes.
        """
        count = len(self.units) if units is None else units
        cells = self.codes.size + self.bits.size
        threads = threads_for(cells * max(1, classes // CLASSES_PER_CELL))
        in_threads(work, count, min(threads, count))

    def waves(self, cells: int) -> Iterator[IntArray]:
        """Yield ranges of units whose sums (``cells`` cells per unit) fit into little memory."""
        step = max(2 * (os.cpu_count() or 1), WAVE_CELLS // max(1, cells))
        return (self.units[k : k + step] for k in range(0, len(self.units), step))


def in_threads(work: Callable[[int, int], None], size: int, threads: int) -> None:
    """Split 0..size into one range per thread, and call ``work`` on each."""
    if threads <= 1:
        work(0, size)
        return
    cuts = np.linspace(0, size, threads + 1).astype(int)
    list(_pool(os.getpid()).map(work, cuts[:-1].tolist(), cuts[1:].tolist()))


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Return threads that are kept for the next step; a forked process makes its own."""
    return ThreadPoolExecutor(most_threads())
