"""Distributions on small grids: a table of integers whose rows sum to a power of two.

The table itself is published, sampled and certified.  It is wide enough that the smallest entry
keeps more than a hundred significant bits; 64-bit tables would have zero entries and thus infinite
losses (Mironov 2012 for the attack, docs/proofs/table.md for the width).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from opboost._typing import FloatArray, IntArray, Words
from opboost.distributions.alias_kernel import THRESHOLD_BITS, draw_alias, flagged_rows
from opboost.distributions.distribution import loss
from opboost.grid import Domain
from opboost.randomness.exact import float_above, log_ratio
from opboost.randomness.streams import Bits, Source


def rounded_rows(
    rows: Sequence[Sequence[int]], guard: int, at_least: int = 0
) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Return integer rows proportional to ``rows``, each summing to ``2**bits``, and ``bits``.

    ``bits`` is the smallest multiple of 64 that leaves every positive weight ``guard`` bits and
    is not below ``at_least``.  Weights are rounded down, and the rest of a row (less than one unit
    per cell) goes to its largest weight.  A weight changes by a factor within
    ``1 ± cells · 2**(1−guard)``, and zeros stay zero.
    """
    smallest = max(
        sum(row).bit_length() - min(w for w in row if w > 0).bit_length() + 1 for row in rows
    )
    bits = -(-max(smallest + guard, at_least) // 64) * 64
    table = []
    for row in rows:
        total = sum(row)
        weights = [(w << bits) // total for w in row]
        weights[max(range(len(row)), key=row.__getitem__)] += (1 << bits) - sum(weights)
        table.append(tuple(weights))
    return tuple(table), bits


@dataclass(frozen=True, slots=True, eq=False)
class IntegerTable:
    """``P[y | x] = weights[x − inputs.L][y − outputs.L] / 2**bits``."""

    inputs: Domain
    outputs: Domain
    weights: tuple[tuple[int, ...], ...]
    bits: int
    alias: _AliasTable = field(init=False, repr=False)
    _logs: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alias", _AliasTable.of(self.weights, self.bits))
        logs = [[math.log2(w) if w else -math.inf for w in row] for row in self.weights]
        object.__setattr__(self, "_logs", np.array(logs))

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value from one word; a tie with a threshold takes more bits."""
        words = source.words(1, start, start + len(x))[0]
        out = np.empty(len(x), dtype=self.outputs.dtype())
        alias = self.alias
        lower = self.inputs.L
        if draw_alias(x, lower, self.outputs.L, alias.packed, alias.column_bits, words, out):
            for i in flagged_rows(x, lower, alias.packed, alias.column_bits, words):
                out[i] = self.exact(int(x[i]), int(words[i]), source.further(start + i))
        return out

    def exact(self, x: int, word: int, source: Bits) -> int:
        """Return the draw that starts with this word, decided with all bits of the table."""
        alias = self.alias
        column = word >> (64 - alias.column_bits)
        coin = (word >> (64 - alias.column_bits - THRESHOLD_BITS)) & ((1 << THRESHOLD_BITS) - 1)
        more = self.bits - alias.column_bits - THRESHOLD_BITS
        coin = (coin << more) | source.bits(more)
        row = x - self.inputs.L
        keep = coin < alias.thresholds[row][column]
        return self.outputs.L + (column if keep else alias.aliases[row][column])

    def draw_inverse(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return draws by inversion: look up uniform integers among the cumulative weights."""
        cumulative = [list(accumulate(row)) for row in self.weights]
        draws = (
            bisect_right(
                cumulative[int(v) - self.inputs.L], source.further(start + i).bits(self.bits)
            )
            for i, v in enumerate(x)
        )
        offsets = np.fromiter(draws, dtype=np.int64, count=len(x))
        return np.asarray(self.outputs.L + offsets, dtype=self.outputs.dtype())

    def mass(self, x: int) -> FloatArray:
        """Return the row of ``x``, each weight rounded to the nearest float."""
        total = 1 << self.bits
        return np.array([w / total for w in self.weights[x - self.inputs.L]])

    def gain(self, x: int, y: int) -> float:
        """Return the largest log-ratio of all outputs; infinity if only x can give one of them."""
        i, j = x - self.inputs.L, y - self.inputs.L
        with np.errstate(invalid="ignore"):
            gaps = self._logs[i] - self._logs[j]
        top = np.nanmax(gaps)  # NaN: neither input can give this output
        if math.isinf(top):
            return math.inf
        # Floats narrow down the outputs; integers find the worst of those left.
        high, low = 0, 1
        for k in np.flatnonzero(gaps >= top - 1e-6):
            a, b = self.weights[i][k], self.weights[j][k]
            if a * low > high * b:
                high, low = a, b
        return float_above(log_ratio(high, low))

    def step_loss(self) -> float:
        """Return the largest loss over all neighbours."""
        return max(loss(self, x, x + 1) for x in range(self.inputs.L, self.inputs.R))


@dataclass(frozen=True, slots=True, eq=False)
class _AliasTable:
    """Walker's table for every row, in exact integers and packed for the compiled loop.

    Each of ``2**column_bits`` columns holds an equal share of the row.  Its first ``thresholds``
    units belong to the output with the column's number, the others to ``aliases``.
    """

    column_bits: int
    thresholds: tuple[tuple[int, ...], ...]
    aliases: tuple[tuple[int, ...], ...]
    packed: Words

    @classmethod
    def of(cls, weights: tuple[tuple[int, ...], ...], bits: int) -> _AliasTable:
        column_bits = max(1, (len(weights[0]) - 1).bit_length())
        made = [_alias_row(row, column_bits, bits) for row in weights]
        drop = bits - column_bits - THRESHOLD_BITS
        largest = (1 << THRESHOLD_BITS) - 1
        packed = [
            (min(threshold >> drop, largest) << (64 - THRESHOLD_BITS)) | alias
            for thresholds, aliases in made
            for threshold, alias in zip(thresholds, aliases, strict=True)
        ]
        return cls(
            column_bits,
            tuple(thresholds for thresholds, _ in made),
            tuple(aliases for _, aliases in made),
            np.array(packed, dtype=np.uint64),
        )


def _alias_row(
    row: tuple[int, ...], column_bits: int, bits: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    columns = 1 << column_bits
    share = 1 << (bits - column_bits)
    left = [*row, *([0] * (columns - len(row)))]
    thresholds = [share] * columns
    aliases = list(range(columns))
    small = [j for j, w in enumerate(left) if w < share]
    large = [j for j, w in enumerate(left) if w > share]
    while small:
        j, giver = small.pop(), large[-1]
        thresholds[j], aliases[j] = left[j], giver
        left[giver] -= share - left[j]
        if left[giver] <= share:
            large.pop()
            if left[giver] < share:
                small.append(giver)
    return tuple(thresholds), tuple(aliases)
