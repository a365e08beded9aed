"""The targets of attacks: how to draw their values, and how to count outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from opboost._typing import IntArray
from opboost.budgets.budget import Budget
from opboost.errors import ParameterError
from opboost.mechanisms import GapMechanism, Mechanism, NominalMechanism
from opboost.promises import Joint
from opboost.promises.composition import plus

MAX_CODES = 4096
"""Up to this many outcomes are counted one by one; more are pooled in runs."""

_PILOT_SAMPLES = 4096
"""The number of samples per value from which the range of outputs is estimated."""

_MAX_RUNS = 1024
"""Roughly this many runs cover the pilot's outputs."""

_MAX_BITS = 8
"""The number of bits of a row that are compared."""


class Coding(Protocol):
    """A map from outcomes to numbers from 0 to ``size − 1``; it uses only the outcome."""

    @property
    def size(self) -> int:
        """The number of codes."""
        ...

    def codes(self, outcome: Any) -> IntArray:
        """Return the code of each outcome."""
        ...

    def words(self, codes: IntArray) -> str:
        """Return outcomes in words."""
        ...


class AuditTarget(Protocol):
    """A mechanism or record that can be attacked."""

    def draw(self, value: Any, count: int) -> Any:
        """Return the outcomes of ``count`` rows that all hold ``value``."""
        ...

    def coding(self, x: Any, y: Any) -> Coding:
        """Return the codes that count outcomes when x is distinguished from y."""
        ...

    def promised(self, x: Any, y: Any) -> float:
        """Return the bound of the guarantee."""
        ...

    def exact(self, x: Any, y: Any) -> float:
        """Return the exact loss of the distribution."""
        ...


@dataclass(frozen=True, slots=True)
class Cells:
    """Integers in runs of ``2**shift`` from ``first`` on, with one more run beyond either end."""

    first: int
    shift: int
    runs: int

    @property
    def size(self) -> int:
        """The number of runs, with the two ends."""
        return self.runs + 2

    def codes(self, outcome: Any) -> IntArray:
        """Return the number of each outcome's run, from 1 on."""
        steps: IntArray = np.subtract(outcome, self.first, dtype=np.int64)
        if self.shift:
            steps >>= self.shift
        steps += 1
        return np.clip(steps, 0, self.runs + 1, out=steps)

    def words(self, codes: IntArray) -> str:
        """Return the ranges of integers that the runs cover."""
        found = []
        for piece in np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1):
            low = self.first + ((int(piece[0]) - 1) << self.shift)
            high = self.first + (int(piece[-1]) << self.shift) - 1
            ends = "" if piece[0] == 0 else str(low), "" if piece[-1] > self.runs else str(high)
            found.append(ends[0] if ends[0] == ends[1] else f"{ends[0]}..{ends[1]}")
        return ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")


@dataclass(frozen=True, slots=True)
class OnGrid:
    """A mechanism on a grid or on all integers."""

    mechanism: Mechanism

    def draw(self, value: int, count: int) -> IntArray:
        """Return the noisy column of rows that all hold one value."""
        return self.mechanism.sample(np.full(count, value, dtype=self.mechanism.domain.dtype()))

    def coding(self, x: int, y: int) -> Cells:
        """Return a code per output; on wide grids, a code per run near the outputs."""
        outputs = self.mechanism.outputs
        if outputs.size <= MAX_CODES:
            return Cells(outputs.L, 0, outputs.size)
        pilot = [self.draw(v, _PILOT_SAMPLES) for v in (x, y)]
        low = min(int(p.min()) for p in pilot)
        high = max(int(p.max()) for p in pilot)
        shift = ((high - low) // _MAX_RUNS).bit_length()
        border = min(x, y) + 1  # outputs below it favour the smaller of the two
        before = -((low - border) >> shift)
        return Cells(border - (before << shift), shift, before + ((high - border) >> shift) + 1)

    def promised(self, x: int, y: int) -> float:
        """Return the bound of the guarantee."""
        return self.mechanism.guarantee().bound(x, y)

    def exact(self, x: int, y: int) -> float:
        """Return the exact loss of the distribution."""
        return self.mechanism.loss(x, y)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Some bits of a row as one number."""

    places: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of patterns of these bits."""
        return 1 << len(self.places)

    def codes(self, outcome: Any) -> IntArray:
        """Return the bits as one binary number, the first bit lowest."""
        packed = np.packbits(outcome[:, self.places], axis=1, bitorder="little")
        return np.asarray(packed[:, 0], dtype=np.int64)

    def words(self, codes: IntArray) -> str:
        """Return the patterns, with the first bit at the left."""
        width = len(self.places)
        found = [format(int(c), f"0{width}b")[::-1] for c in codes[:4]]
        return (
            f"bits {', '.join(map(str, self.places))}: "
            + ", ".join(found)
            + (", ..." if len(codes) > 4 else "")
        )


@dataclass(frozen=True, slots=True)
class InBits:
    """A mechanism for categories, whose outcomes are rows of bits."""

    mechanism: NominalMechanism

    def draw(self, value: Any, count: int) -> Any:
        """Return the noisy bits of rows that all hold one category."""
        position = self.mechanism.categories.index(value)
        return self.mechanism.sample_positions(np.full(count, position, dtype=np.int64))

    def coding(self, x: Any, y: Any) -> Pattern:
        """Return the two categories' own bits, and a few others in case they leak something."""
        own = [self.mechanism.categories.index(v) for v in (x, y)]
        others = [i for i in range(len(self.mechanism.categories)) if i not in own]
        return Pattern(tuple(sorted({*own, *others[: _MAX_BITS - len(set(own))]})))

    def promised(self, x: Any, y: Any) -> float:
        """Return the bound of the guarantee."""
        return self.mechanism.guarantee().bound(x, y)

    def exact(self, x: Any, y: Any) -> float:
        """Return the exact loss of the distribution."""
        return self.mechanism.loss(x, y)


@dataclass(frozen=True, slots=True)
class CellsOrMissing:
    """A cell that is reported present or missing; the cell of a missing row is counted too."""

    cells: Cells

    @property
    def size(self) -> int:
        """Twice the number of cells."""
        return 2 * self.cells.size

    def codes(self, outcome: Any) -> IntArray:
        """Return the cell's code, shifted up if the row is reported missing."""
        drawn, reported = outcome
        return np.asarray(self.cells.codes(drawn) + self.cells.size * reported, dtype=np.int64)

    def words(self, codes: IntArray) -> str:
        """Return the cells, and the word "missing"."""
        cells = codes[codes < self.cells.size]
        shown = [self.cells.words(cells)] if len(cells) else []
        return ", ".join([*shown, "missing"] if len(cells) < len(codes) else shown)


@dataclass(frozen=True, slots=True)
class WithGaps:
    """A mechanism for a column with missing values, which are ``None``."""

    mechanism: GapMechanism

    @property
    def _inner(self) -> OnGrid:
        return OnGrid(self.mechanism.mechanism)

    def draw(self, value: int | None, count: int) -> Any:
        """Return the noisy column of rows that all hold the value, or are all missing."""
        inner, gone = self.mechanism, value is None
        cell = inner.mechanism.domain.L if value is None else value
        values = np.full(count, cell, dtype=inner.mechanism.domain.dtype())
        return inner.sample(values, np.full(count, gone))

    def coding(self, x: int | None, y: int | None) -> CellsOrMissing:
        """Return a code per cell, and whether the value is reported missing."""
        known = [self.mechanism.stand_in if v is None else v for v in (x, y)]
        return CellsOrMissing(self._inner.coding(*known))

    def promised(self, x: int | None, y: int | None) -> float:
        """Return the bound of the guarantee."""
        return self.mechanism.guarantee().bound(x, y)

    def exact(self, x: int | None, y: int | None) -> float:
        """Return the exact loss of the distribution."""
        return self.mechanism.loss(x, y)


@dataclass(frozen=True)
class Record:
    """Several columns of one person; a budget may release only some of them.

    ``columns`` are mechanisms by name, at the actual level of each column.  Values are tuples of
    cells in the order of the columns.

    >>> import opboost as op
    >>> m = op.ClampMap(op.Domain(1, 4), epsilon=0.5)
    >>> record = Record({"age": m, "pay": m}, op.Budget.sampled(1))
    >>> record.exact((1, 1), (2, 3)) <= record.promised((1, 1), (2, 3))
    True
    """

    columns: Mapping[str, Mechanism]
    budget: Budget

    def __post_init__(self) -> None:
        if not self.columns or not all(isinstance(m, Mechanism) for m in self.columns.values()):
            raise ParameterError(
                "A record needs mechanisms on grids, by column: "
                "Record({'age': op.ClampMap(...)}, op.Budget.sampled(1))."
            )

    @cached_property
    def _shown(self) -> int:
        return self.budget.columns_per_row or len(self.columns)

    def draw(self, value: tuple[int, ...], count: int) -> Any:
        """Return the columns' draws, and which columns are released for each row."""
        chosen = self.budget.drawn(count, len(self.columns))
        drawn = [
            OnGrid(m).draw(v, count) for m, v in zip(self.columns.values(), value, strict=True)
        ]
        return drawn, chosen

    def coding(self, x: tuple[int, ...], y: tuple[int, ...]) -> Joined:
        """Return the joint codes of as many columns as fit."""
        parts: list[Cells] = []
        size = 1
        for m, a, b in zip(self.columns.values(), x, y, strict=True):
            cells = OnGrid(m).coding(a, b)
            size *= cells.size + 1
            if parts and size > MAX_CODES * 16:
                break
            parts.append(cells)
        return Joined(tuple(parts))

    def promised(self, x: tuple[int, ...], y: tuple[int, ...]) -> float:
        """Return the bound of the record's guarantee."""
        joint = Joint({n: m.guarantee() for n, m in self.columns.items()}, self._shown)
        return joint.bound(
            dict(zip(self.columns, x, strict=True)), dict(zip(self.columns, y, strict=True))
        )

    def exact(self, x: tuple[int, ...], y: tuple[int, ...]) -> float:
        """Return the sum of the k largest losses, if k columns are released for each row."""
        losses = [m.loss(a, b) for m, a, b in zip(self.columns.values(), x, y, strict=True)]
        return plus(*sorted(losses, reverse=True)[: self._shown])


@dataclass(frozen=True, slots=True)
class Joined:
    """The codes of several columns as the digits of one number; 0 is a column that is not sent."""

    parts: tuple[Cells, ...]

    @property
    def size(self) -> int:
        """The number of combinations."""
        size = 1
        for part in self.parts:
            size *= part.size + 1
        return size

    def codes(self, outcome: Any) -> IntArray:
        """Return one number per row."""
        drawn, chosen = outcome
        total = np.zeros(len(chosen), dtype=np.int64)
        for j, part in enumerate(self.parts):
            total *= part.size + 1
            total += np.where(chosen[:, j], part.codes(drawn[j]) + 1, 0)
        return total

    def words(self, codes: IntArray) -> str:
        """Return how many combinations there are."""
        return f"{len(codes)} combinations"


def target_of(mechanism: object) -> AuditTarget:
    """Return the target for a mechanism or record; refuse anything else."""
    if isinstance(mechanism, Mechanism):
        return OnGrid(mechanism)
    if isinstance(mechanism, NominalMechanism):
        return InBits(mechanism)
    if isinstance(mechanism, GapMechanism):
        return WithGaps(mechanism)
    if isinstance(mechanism, Record):
        return mechanism
    raise ParameterError(
        f"An audit takes a mechanism with a promise; got {mechanism!r}. "
        "Write op.audit(op.ClampMap(op.Domain(1, 10), epsilon=0.64))."
    )
