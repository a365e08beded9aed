"""Estimate the shares of categories from noisy bits, and shrink differences that noise explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray
from opboost.denoise.encoded_rows import Table

MIN_SHARE = 0.1
"""The smallest share of a category, as a fraction of an equal share."""


@dataclass(frozen=True, slots=True, eq=False)
class BitTally:
    """For each group, how many rows sent a column of bits, and how many of these set each bit.

    Inverting the noise gives unbiased shares, but each carries the noise of all rows.  With many
    categories and few rows, they are nothing but noise.  So the groups are shrunk towards the
    column, and the column towards equal shares, by the part of their spread that noise explains
    (James and Stein's rule).
    """

    sent: FloatArray
    set: FloatArray
    rates: tuple[float, float]
    """The chances that a category's bit is set: in rows of other categories, and in its own."""

    @classmethod
    def of(cls, counts: Table, base: int, states: int, rates: tuple[float, float]) -> BitTally:
        """Read a tally: at ``base``, how many rows sent the column; then how many set each bit."""
        table = counts.astype(np.float64)
        return cls(table[:, base], table[:, base + 1 : base + 1 + states], rates)

    def column(self) -> FloatArray:
        """Return the shares among all rows.

        >>> rows = BitTally(np.array([100.0]), np.array([[90.0, 10.0]]), (0.1, 0.9))
        >>> rows.column().round(2)
        array([0.95, 0.05])
        """
        return _as_pmf(self._column())

    def groups(self, near: Table) -> FloatArray:
        """Return ``[group, category]`` shares; ``near`` weights the rows of other groups."""
        kernel = near.astype(np.float64)
        rows = np.maximum(kernel @ self.sent, 1.0)
        gap = self._inverted(kernel @ self.set / rows[:, None]) - self._raw()
        alone = kernel**2 @ self.sent / rows**2 - 1 / max(self.sent.sum(), 1.0)
        noise = self._noise() * np.maximum(alone, 0.0)
        return _as_pmf(self._column() + _kept(gap, noise.sum()) * gap)

    def _column(self) -> FloatArray:
        equal = 1 / self.set.shape[1]
        gap = self._raw() - equal
        kept = _kept(gap, self._noise() / max(float(self.sent.sum()), 1.0))
        return np.asarray(equal + kept * gap)

    def _raw(self) -> FloatArray:
        return self._inverted(self.set.sum(axis=0) / max(self.sent.sum(), 1.0))

    def _inverted(self, share: FloatArray) -> FloatArray:
        off, on = self.rates
        return np.asarray((share - off) / (on - off))

    def _noise(self) -> float:
        """Return the variance of one row's inverted bits, summed over categories."""
        off, on = self.rates
        seen = self.set.sum(axis=0) / max(self.sent.sum(), 1.0)
        return float((seen * (1 - seen)).sum() / (on - off) ** 2)


def _kept(gap: FloatArray, noise: float) -> float:
    """Return the fraction of a gap that exceeds noise: zero if the gap is no larger than noise.

    Two pmfs differ by at most about one, which bounds the part beyond noise.  Without this bound, a
    small excess by chance over very large noise would be taken for a real difference.
    """
    pmfs = gap.size / gap.shape[-1]
    more = 1 - noise / max(float((gap**2).sum()), 1e-12)
    return float(max(0.0, min(more, pmfs / (pmfs + noise))))


def _as_pmf(shares: FloatArray) -> FloatArray:
    """Return the nearest pmf, floored: an excess is subtracted evenly, not in proportion.

    >>> _as_pmf(np.array([0.7, 0.5, -0.2])).round(2)
    array([0.58, 0.39, 0.03])
    """
    size = shares.shape[-1]
    falling = -np.sort(-shares, axis=-1)
    excess = (falling.cumsum(axis=-1) - 1) / np.arange(1, size + 1)
    last = (falling > excess).sum(axis=-1, keepdims=True) - 1
    near = shares - np.take_along_axis(excess, last, axis=-1)
    floored = np.maximum(near, MIN_SHARE / size)
    return np.asarray(floored / floored.sum(axis=-1, keepdims=True))
