"""Window-map for columns with missing values: "missing" is one more symbol, at no extra cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.distributions import IntegerTable, Window
from opboost.distributions.lazy_uniform import LazyUniform
from opboost.distributions.uniform_kernel import draw_bits, draw_uniform
from opboost.errors import ParameterError
from opboost.grid import Domain
from opboost.mechanisms.gap_mechanism import GapMechanism, checked_gaps, child_of
from opboost.mechanisms.mechanism import CHUNK_VALUES, distribution_of
from opboost.mechanisms.window_map import WindowMap, table_bits
from opboost.promises import LDP, CappedDLDP
from opboost.randomness.exact import float_above, log_ratio
from opboost.randomness.streams import Rng, default_rng


@dataclass(frozen=True, slots=True)
class WindowWithMissing(GapMechanism):
    """A Window-map with one more symbol, "missing".

    Let Z be the sum of the window's weights and m the number of its outputs before clipping.  A
    cell gives the symbol the floor ``e**−total``.  A missing value gives it 1, and
    ``(Z + e**−total − 1) / m`` to every other output.  All rows sum to ``Z + e**−total``.  So the
    loss between a missing value and a cell is at most ``total``; that of two cells is unchanged.

    Cost: two more words per value than the Window-map.
    Proof: docs/proofs/missing.md.

    >>> m = WindowWithMissing(WindowMap(Domain(0, 15), total=1.0))
    >>> m.guarantee().total, m.loss(None, 3) <= 1.0
    (1.0, True)
    """

    mechanism: WindowMap

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, WindowMap):
            raise ParameterError(
                f"Only a Window-map has a symbol for missing values; got {self.mechanism!r}. "
                "Use op.WindowMap(domain, total=...), or op.WithMissing with a flag."
            )

    @property
    def stand_in(self) -> int:
        """The lowest cell, which affects no draw."""
        return self.mechanism.domain.L

    def guarantee(self) -> LDP | CappedDLDP:
        """Return the window's promise; a missing value is at most ``total`` from every cell."""
        promise = self.mechanism.guarantee()
        return promise if isinstance(promise, LDP) else replace(promise, gaps=True)

    def scaled(self, factor: float) -> WindowWithMissing:
        """Return the same mechanism with all levels multiplied by ``factor``."""
        return WindowWithMissing(self.mechanism.scaled(factor))

    def integer_symbol(self) -> tuple[int, int, int]:
        """Return ``(gap, cell, bits)``: the symbol's chances given a gap or cell, over ``2**bits``.

        The first is rounded down and the second up: their ratio never exceeds that of the weights.
        """
        return _integer_symbol(self.mechanism)

    def report_chances(self) -> tuple[float, float]:
        """Return the chances of the symbol from a cell and from a missing value."""
        gap, cell, bits = self.integer_symbol()
        return cell / (1 << bits), gap / (1 << bits)

    def gap_pmf(self) -> FloatArray:
        """Return the uniform distribution over all outputs before clipping."""
        m = self.mechanism
        counts = np.ones(m.outputs.size)
        if m.clipped:
            counts[0] += m.reach
            counts[-1] += m.reach
        return np.asarray(counts / counts.sum())

    def sample(
        self, x: IntArray, missing: BoolArray, rng: Rng | None = None
    ) -> tuple[IntArray, BoolArray]:
        """Return noisy values, and which rows are reported missing (their values mean nothing)."""
        values, gone = checked_gaps(x, missing)
        generator = default_rng(rng)
        reported = self._reports(gone, child_of(generator, "missing"))
        drawn = self.mechanism.sample(np.where(gone, self.stand_in, values), generator)
        of_gaps = self._uniform(len(gone), child_of(generator, "gaps")).astype(drawn.dtype)
        drawn = np.where(gone, of_gaps, drawn)
        # A row that is reported missing must not carry its draw, so a public cell replaces it.
        return np.where(reported, np.asarray(self.stand_in, drawn.dtype), drawn), reported

    def _reports(self, gone: BoolArray, rng: Rng) -> BoolArray:
        gap, cell, bits = self.integer_symbol()
        rest = bits - 64
        low = (1 << rest) - 1
        high = np.uint64(gap >> rest), np.uint64(cell >> rest)
        source = rng.open()
        out = np.empty((len(gone), 1), dtype=np.bool_)
        for start in range(0, len(gone), CHUNK_VALUES):
            here = gone[start : start + CHUNK_VALUES]
            words = source.words(1, start, start + len(here))
            place = np.where(here, 0, 1)  # the kernel's own bit has the chance of a missing value
            if draw_bits(place, 1, *high, words, out[start : start + len(here)]):
                for i in np.flatnonzero(np.where(here, *high) == words[0]).tolist():
                    chance = (gap if here[i] else cell) & low
                    out[start + i] = source.further(start + i).bits(rest) < chance
        return out[:, 0]

    def _uniform(self, rows: int, rng: Rng) -> IntArray:
        """Return a uniform output for every row, so words and time do not reveal missing rows."""
        m = self.mechanism
        wide = _before_clipping(m)
        place = np.int64(wide.L), np.uint64(wide.size)
        source = rng.open()
        out = np.empty(rows, dtype=np.int64)
        undecided = np.empty(min(rows, CHUNK_VALUES), dtype=np.bool_)
        for start in range(0, rows, CHUNK_VALUES):
            here = out[start : start + CHUNK_VALUES]
            words = source.words(1, start, start + len(here))[0]
            if draw_uniform(*place, words, here, undecided):
                for i in np.flatnonzero(undecided[: len(here)]).tolist():
                    lazy = LazyUniform(int(words[i]), source.further(start + i))
                    here[i] = wide.L + lazy.index(wide.size)
        return np.clip(out, m.outputs.L, m.outputs.R, out=out)

    def loss(self, x: int | None, y: int | None) -> float:
        """Return the exact worst log-ratio of the pair, rounded up; ``None`` is a missing value."""
        if x is None and y is None:
            return 0.0
        if x is not None and y is not None:
            return self.mechanism.loss(x, y)
        m = self.mechanism
        present = m.domain.clamp(x if x is not None else y)  # type: ignore[arg-type]
        if m.reach + 1 < present - m.domain.L and m.reach + 1 < m.domain.R - present:
            present = m.domain.L + m.reach + 2  # away from the ends, all cells are alike
        return _gap_loss(m, present)


def _before_clipping(m: WindowMap) -> Domain:
    return Domain(m.domain.L - m.reach, m.domain.R + m.reach)


@lru_cache(maxsize=256)
def _integer_symbol(m: WindowMap) -> tuple[int, int, int]:
    profile, floor = m.profile()
    excess = 2 * sum(weight - floor for weight in profile[1:]) + profile[0] - floor
    whole = (_before_clipping(m).size + 1) * floor + excess
    guard, _ = table_bits(m)
    bits = -(-(guard + whole.bit_length() - floor.bit_length() + 1) // 64) * 64
    return (profile[0] << bits) // whole, -(-(floor << bits) // whole), bits


@lru_cache(maxsize=4096)
def _gap_loss(m: WindowMap, x: int) -> float:
    """Return the largest log-ratio of the symbol and all outputs, computed with integers."""
    gap, cell, bits = _integer_symbol(m)
    one, outputs = 1 << bits, _before_clipping(m).size
    worst = Fraction(gap, cell)
    for weight, whole, count in _weights(m, x):
        ratio = Fraction((one - gap) * count * whole, (one - cell) * weight * outputs)
        worst = max(worst, ratio, 1 / ratio)
    return float_above(log_ratio(worst.numerator, worst.denominator))


def _weights(m: WindowMap, x: int) -> Iterator[tuple[int, int, int]]:
    """Yield the extreme masses of a cell's row as ``weight, whole, count``; ends come first.

    ``count`` is the number of outputs before clipping that the mass covers.
    """
    distribution = distribution_of(m)
    flank = m.reach if m.clipped else 0
    if isinstance(distribution, IntegerTable):
        row = distribution.weights[x - m.domain.L]
        ends, inside, whole = (row[0], row[-1]), row[1:-1], 1 << distribution.bits
    elif isinstance(distribution, Window):
        ends, inside = _window_row(distribution, x, flank)
        whole = distribution.whole()
    else:  # a window of one cell is randomised response
        profile, floor = m.profile()
        ends, inside, whole = (profile[0], floor), (), profile[0] + m.domain.span * floor
    for weight in ends:
        yield weight, whole, flank + 1
    for weight in {min(inside), max(inside)} if inside else ():
        yield weight, whole, 1


def _window_row(
    distribution: Window, x: int, flank: int
) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return the weights of both ends, and the window's weights and the floor between them."""
    window, floor = _window_weights(distribution)
    wide, reach = distribution.beyond, distribution.reach
    first, last = wide.L + flank + 1, wide.R - flank - 1
    begin, end = max(x - reach, first), min(x + reach, last)
    inside = window[begin - x + reach : end - x + reach + 1] if begin <= end else ()
    if last - first + 1 > len(inside):
        inside = (*inside, floor)

    def sum_of(low: int, high: int) -> int:
        part = window[max(low - x + reach, 0) : max(high - x + reach + 1, 0)]
        return sum(part) + (high - low + 1 - len(part)) * floor

    return (sum_of(wide.L, first - 1), sum_of(last + 1, wide.R)), tuple(inside)


@lru_cache(maxsize=16)
def _window_weights(distribution: Window) -> tuple[tuple[int, ...], int]:
    reach = distribution.reach
    inside = tuple(distribution.weight(d) for d in range(-reach, reach + 1))
    return inside, distribution.weight(reach + 1)
