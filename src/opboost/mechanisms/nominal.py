"""The base class of mechanisms for categories without an order, which send a bit per category."""

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
    """A mechanism over declared categories that protects every pair of them alike.

    A row becomes one bit per category, drawn from one word per category.
    """

    __slots__ = ()

    categories: tuple[Hashable, ...]
    epsilon: float

    def guarantee(self) -> LDP:
        """Return epsilon-LDP for the whole category."""
        return LDP(self.epsilon)

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with its level multiplied by ``factor``."""

    @abstractmethod
    def loss(self, a: Hashable, b: Hashable) -> float:
        """Return the exact worst log-ratio between two categories, rounded up."""

    @abstractmethod
    def bit_rates(self) -> tuple[float, float]:
        """Return the chances that a bit is set in rows of other categories, and of its own."""

    @abstractmethod
    def bit_odds(self) -> tuple[float, float]:
        """Return the weights of an unset and of a set bit as evidence for its category.

        The chance of a row of bits, given a category, is proportional to the weight of that
        category's bit.
        """

    @abstractmethod
    def share_variance(self) -> float:
        """Return an estimated share's variance times the row count, for equally common categories.

        The estimate is the unbiased one from the counts of bits, shifted so that shares sum to one.
        """

    @abstractmethod
    def _draw(self, position: IntArray, source: Source, start: int, out: Bits) -> None:
        """Write the bits of the rows from ``start`` on to ``out``."""

    def exact_epsilon(self) -> float:
        """Return the loss of any two categories, which is the same for all pairs."""
        return self.loss(*self.categories[:2])

    def sample(self, values: Sequence[Any], rng: Rng | None = None) -> Bits:
        """Return noisy bits of shape ``(len(values), number of categories)``."""
        return self.sample_positions(category_positions(self.categories, values), rng)

    def sample_positions(self, position: IntArray, rng: Rng | None = None) -> Bits:
        """Return noisy bits for rows that are given as positions in ``categories``."""
        width = len(self.categories)
        source = default_rng(rng).open()
        out = np.empty((len(position), width), dtype=np.uint8)
        rows = max(1, _CHUNK_WORDS // width)
        for start in range(0, len(position), rows):
            self._draw(position[start : start + rows], source, start, out[start : start + rows])
        return out
