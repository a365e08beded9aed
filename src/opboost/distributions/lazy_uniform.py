"""Uniform reals that draw as many bits as a decision needs."""

from __future__ import annotations

from collections.abc import Callable

from opboost.randomness.streams import Bits

Bounds = Callable[[int], tuple[int, int]]
"""A real number r, given by bounds ``low <= r * 2**bits <= high`` for any ``bits``."""


def word_floor(real: Bounds) -> int:
    """Return the first 64 bits of a real in [0, 1]; a word equal to them leaves the draw open."""
    top, bits = 2**64 - 1, 96
    while True:
        low, high = real(bits)
        first, last = min(low >> (bits - 64), top), min(high >> (bits - 64), top)
        if first == last:
            return first
        bits *= 2


class LazyUniform:
    """A uniform real in [0, 1) whose first 64 bits are given; more are drawn when needed."""

    def __init__(self, word: int, source: Bits) -> None:
        self._value, self._bits, self._source = int(word), 64, source

    def to(self, bits: int) -> int:
        """Return the first ``bits`` binary digits; draw those that are not known yet."""
        if bits > self._bits:
            more = bits - self._bits
            self._value = (self._value << more) | self._source.bits(more)
            self._bits = bits
        return self._value >> (self._bits - bits)

    def below(self, threshold: Bounds) -> bool:
        """Return whether this real is below ``threshold``, exactly (with probability one)."""
        bits = self._bits
        while True:
            value = self.to(bits)
            low, high = threshold(bits)
            if value < low:
                return True
            if value >= high:
                return False
            bits *= 2

    def index(self, count: int) -> int:
        """Return ``floor(self * count)``, which is uniform on 0..count−1."""
        bits = self._bits
        while True:
            value = self.to(bits)
            low, high = (value * count) >> bits, ((value + 1) * count - 1) >> bits
            if low == high:
                return low
            bits *= 2

    def rank(self, cumulative: Callable[[int, int], tuple[int, int]], count: int) -> int:
        """Return the first d below ``count`` with ``self < cumulative(d)``, else ``count``."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self.below(lambda bits, d=middle: cumulative(d, bits)):  # type: ignore[misc]
                high = middle
            else:
                low = middle + 1
        return low
