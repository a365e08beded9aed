"""What mechanisms for categories without an order share: one bit a category comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from opboost._typing import IntArray
from opboost.grid.ordinal_mapping import category_positions
from opboost.promises import LDP
from opboost.randomness.streams import Rng, Source, default_rng

_CHUNK_WORDS = 32_768

Bits = np.ndarray[Any, np.dtype[np.uint8]]


class NominalMechanism(ABC):
    """A mechanism over declared categories; every pair of them is protected alike.

    A row comes out as one bit a category, drawn from one word a category.
    """

    __slots__ = ()

    categories: tuple[Hashable, ...]
    epsilon: float

    def guarantee(self) -> LDP:
        """epsilon-LDP for the whole category."""
        return LDP(self.epsilon)

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The same mechanism with its level multiplied."""

    @abstractmethod
    def loss(self, a: Hashable, b: Hashable) -> float:
        """The exact worst log-ratio between two categories, rounded up."""

    @abstractmethod
    def bit_rates(self) -> tuple[float, float]:
        """The chances that a bit is set for another category, and for its own."""

    @abstractmethod
    def bit_odds(self) -> tuple[float, float]:
        """What an unset and a set bit say for its category.

        The chance of a row of bits from a category is proportional to the number of its bit.
        """

    @abstractmethod
    def share_variance(self) -> float:
        """Rows times the variance of one estimated share, where all categories are as frequent.

        The estimate is the unbiased one from the counts of bits, moved to add up to one.
        """

    @abstractmethod
    def _draw(self, position: IntArray, source: Source, start: int, out: Bits) -> None:
        """Draw the bits of the rows from ``start`` on into ``out``."""

    def exact_epsilon(self) -> float:
        """The loss of any two categories: they are all alike."""
        return self.loss(*self.categories[:2])

    def sample(self, values: Sequence[Any], rng: Rng | None = None) -> Bits:
        """Bits of shape ``(len(values), number of categories)``."""
        return self.sample_positions(category_positions(self.categories, values), rng)

    def sample_positions(self, position: IntArray, rng: Rng | None = None) -> Bits:
        """The same for rows that are given as positions in ``categories``."""
        width = len(self.categories)
        source = default_rng(rng).open()
        out = np.empty((len(position), width), dtype=np.uint8)
        rows = max(1, _CHUNK_WORDS // width)
        for start in range(0, len(position), rows):
            self._draw(position[start : start + rows], source, start, out[start : start + rows])
        return out
