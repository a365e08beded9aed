"""The base class of mechanisms for columns with missing values, whatever their policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.errors import DataError
from opboost.mechanisms.mechanism import Mechanism
from opboost.promises import Guarantee
from opboost.randomness.streams import Rng


class GapMechanism(ABC):
    """A mechanism on a grid, with one more input and one more output: "missing".

    First a coin, whose odds depend on whether the row is missing, reports the row as missing or
    present.  Nothing else is sent for a row that is reported missing.
    """

    __slots__ = ()

    mechanism: Mechanism

    @property
    @abstractmethod
    def stand_in(self) -> int:
        """The public cell that replaces a value that is not sent."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return the promise; it also bounds ``None``, a missing value."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with all levels multiplied by ``factor``."""

    @abstractmethod
    def sample(
        self, x: IntArray, missing: BoolArray, rng: Rng | None = None
    ) -> tuple[IntArray, BoolArray]:
        """Return noisy values, and which rows are reported missing (their values mean nothing)."""

    @abstractmethod
    def loss(self, x: int | None, y: int | None) -> float:
        """Return the exact worst log-ratio of the pair, rounded up; ``None`` is a missing value."""

    @abstractmethod
    def report_chances(self) -> tuple[float, float]:
        """Return the chances that a present and that a missing row is reported missing."""

    @abstractmethod
    def gap_pmf(self) -> FloatArray:
        """Return the probabilities of all outputs from a missing row that is reported present."""


def checked_gaps(x: IntArray, missing: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return values and missing flags as arrays of equal length; refuse anything else."""
    values = np.asarray(x)
    gone = np.asarray(missing, dtype=np.bool_)
    if values.shape != gone.shape or values.ndim != 1:
        raise DataError(
            "values and missing must be columns of the same length",
            detail=f"got shapes {values.shape} and {gone.shape}",
        )
    return values, gone


def child_of(rng: Rng, name: str) -> Rng:
    """Return the generator's stream for a purpose; a cryptographic generator has only one."""
    child = getattr(rng, "child", None)
    stream: Rng = child(name) if child else rng
    return stream
