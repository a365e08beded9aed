"""Mechanisms for columns with missing values, where the fact that one is missing is private too."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.distributions.uniform_kernel import draw_coins
from opboost.errors import ParameterError
from opboost.mechanisms.gap_mechanism import GapMechanism, checked_gaps, child_of
from opboost.mechanisms.mechanism import CHUNK_VALUES, Mechanism, distribution_of
from opboost.promises import Flagged, checked_epsilon
from opboost.randomness.exact import SLACK, exp_bounds, float_above, log_ratio
from opboost.randomness.streams import Rng, default_rng


@dataclass(frozen=True, slots=True)
class WithMissing(GapMechanism):
    """A mechanism for a column in which values may be missing.

    The flag "missing" goes through randomised response at ``eps_missing``.  Nothing else is sent
    for a row that is reported missing.  For a missing row that is reported present, a draw for
    ``constant``, a public cell, is sent.  So for a present x

        loss(None, x) <= eps_missing + bound(constant, x)

    Proof: docs/proofs/missing.md.

    >>> import opboost as op
    >>> m = WithMissing(op.ClampMap(op.Domain(1, 10), epsilon=0.5), eps_missing=1.0, constant=5)
    >>> round(m.loss(None, 7), 6), m.guarantee().bound(None, 7)
    (2.0, 2.0)
    """

    mechanism: Mechanism
    eps_missing: float
    constant: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_missing", checked_epsilon("eps_missing", self.eps_missing))
        if self.constant not in self.mechanism.domain:
            raise ParameterError(
                f"The constant for missing values must be a cell of "
                f"{self.mechanism.domain.L}..{self.mechanism.domain.R}; got {self.constant!r}."
            )

    def guarantee(self) -> Flagged:
        """Return the promise, plus the flag's share for a missing value against any other."""
        return Flagged(self.mechanism.guarantee(), self.eps_missing, self.constant)

    def scaled(self, factor: float) -> WithMissing:
        """Return the same mechanism with all levels multiplied by ``factor``."""
        return WithMissing(self.mechanism.scaled(factor), self.eps_missing * factor, self.constant)

    @property
    def stand_in(self) -> int:
        """The public constant."""
        return self.constant

    def report_chances(self) -> tuple[float, float]:
        """Return the chances that the flag is flipped, and that it is not."""
        lie, bits = self.integer_flag()
        return lie / (1 << bits), 1 - lie / (1 << bits)

    def gap_pmf(self) -> FloatArray:
        """Return the probabilities of all outputs from the public constant."""
        return self.mechanism.pmf(self.constant)

    def integer_flag(self) -> tuple[int, int]:
        """Return ``(lie, bits)``: the flag is flipped with chance ``lie / 2**bits``."""
        bits = 128 + ceil(self.eps_missing * 1.4427)
        one = 1 << bits
        odds = exp_bounds(Fraction(self.eps_missing) * (1 - SLACK), bits)[0]
        return -(-one * one // (one + odds)), bits

    def sample(
        self, x: IntArray, missing: BoolArray, rng: Rng | None = None
    ) -> tuple[IntArray, BoolArray]:
        """Return noisy values, and which rows are reported missing (their values mean nothing)."""
        values, gone = checked_gaps(x, missing)
        generator = default_rng(rng)
        reported = gone ^ self._lies(gone.size, generator)
        filled = np.where(gone, self.constant, values)
        drawn = self.mechanism.sample(filled, generator)
        # A row that is reported missing must not carry its draw, so the constant replaces it.
        return np.where(reported, np.asarray(self.constant, drawn.dtype), drawn), reported

    def _lies(self, n: int, rng: Rng) -> BoolArray:
        lie, bits = self.integer_flag()
        rest = bits - 64
        source = child_of(rng, "missing").open()
        out = np.empty(n, dtype=np.bool_)
        for start in range(0, n, CHUNK_VALUES):
            stop = min(start + CHUNK_VALUES, n)
            words = source.words(1, start, stop)[0]
            if draw_coins(np.uint64(lie >> rest), words, out[start:stop]):
                for i in np.flatnonzero(words == np.uint64(lie >> rest)).tolist():
                    out[start + i] = source.further(start + i).bits(rest) < lie & ((1 << rest) - 1)
        return out

    def loss(self, x: int | None, y: int | None) -> float:
        """Return the exact worst log-ratio of the pair, rounded up; ``None`` is a missing value."""
        if x is None and y is None:
            return 0.0
        if x is not None and y is not None:
            return self.mechanism.loss(x, y)
        present = self.mechanism.domain.clamp(x if x is not None else y)  # type: ignore[arg-type]
        lie, bits = self.integer_flag()
        flag = log_ratio((1 << bits) - lie, lie)
        distribution = distribution_of(self.mechanism)
        for_present = distribution.gain(present, self.constant)
        for_missing = distribution.gain(self.constant, present)
        if np.isinf(max(for_present, for_missing)):
            return float("inf")
        return float_above(max(flag, flag + Fraction(for_present), Fraction(for_missing) - flag))
