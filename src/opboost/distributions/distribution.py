"""The protocol that all distributions share."""

from __future__ import annotations

from typing import Protocol

from opboost._typing import FloatArray, IntArray
from opboost.grid import Domain
from opboost.randomness.streams import Source


class Distribution(Protocol):
    """A conditional distribution on integers, known exactly."""

    @property
    def outputs(self) -> Domain:
        """The range that holds every output."""
        ...

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per grid value; these are rows ``start..start + len(x)`` of a table."""
        ...

    def mass(self, x: int) -> FloatArray:
        """Return the probabilities of all outputs from ``x``, each rounded to a float."""
        ...

    def gain(self, x: int, y: int) -> float:
        """Return the largest ``ln P[out | x] − ln P[out | y]`` over all outputs, rounded up."""
        ...

    def step_loss(self) -> float:
        """Return the largest gain between two neighbouring inputs, either way, rounded up."""
        ...


def loss(distribution: Distribution, x: int, y: int) -> float:
    """Return the worst log-ratio of the pair, either way, rounded up."""
    return max(distribution.gain(x, y), distribution.gain(y, x))
