"""Unary encoding: one randomised bit per category, for columns without an order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Literal

import numpy as np

from opboost._typing import FloatArray
from opboost.distributions.uniform_kernel import draw_bits
from opboost.errors import ParameterError
from opboost.grid.ordinal_mapping import category_positions, checked_categories
from opboost.mechanisms.nominal import NominalMechanism
from opboost.promises import checked_epsilon
from opboost.randomness.exact import SLACK, exp_bounds, float_above, log_ratio
from opboost.randomness.streams import Source


@dataclass(frozen=True, slots=True, init=False)
class UnaryEncoding(NominalMechanism):
    """One bit per category: set with probability p for the row's own category, q for any other.

    ``kind="oue"`` (optimised): p = 1/2, q = 1/(e**epsilon + 1).  ``kind="sue"`` (symmetric, basic
    RAPPOR): p = 1 − q, q = 1/(e**(epsilon/2) + 1).  Two bits change when the category changes;
    epsilon is the cost of the **whole** value.

    It is epsilon-LDP.  Proof: docs/proofs/unary-encoding.md.
    Reference: Wang et al., USENIX Security 2017.

    >>> city = UnaryEncoding(["north", "south", "east"], epsilon=1.0)
    >>> import opboost as op
    >>> city.sample(["south", "east"], rng=op.SeededRng(7)).shape
    (2, 3)
    """

    categories: tuple[Hashable, ...]
    epsilon: float
    kind: Literal["oue", "sue"]

    def __init__(
        self,
        categories: Iterable[Hashable],
        epsilon: float,
        kind: Literal["oue", "sue"] = "oue",
    ) -> None:
        if kind not in ("oue", "sue"):
            raise ParameterError(f"kind must be 'oue' or 'sue'; got {kind!r}.")
        object.__setattr__(self, "categories", checked_categories(categories))
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", epsilon))
        object.__setattr__(self, "kind", kind)

    def scaled(self, factor: float) -> UnaryEncoding:
        """Return the same mechanism with its level multiplied by ``factor``."""
        return UnaryEncoding(self.categories, self.epsilon * factor, self.kind)

    def integer_channel(self) -> tuple[int, int, int]:
        """Return ``(on, off, bits)``: the chances that a bit is set, over ``2**bits``."""
        level = Fraction(self.epsilon) if self.kind == "oue" else Fraction(self.epsilon) / 2
        bits = 128 + ceil(self.epsilon * 1.4427)
        one = 1 << bits
        odds = exp_bounds(level * (1 - SLACK), bits)[0]
        off = -(-one * one // (one + odds))  # rounded up, towards p, so never less private
        on = one >> 1 if self.kind == "oue" else one - off
        return on, off, bits

    def bit_channel(self) -> FloatArray:
        """Return the matrix whose ``[b, c]`` is the chance that a bit b is sent as c."""
        on, off, bits = self.integer_channel()
        q, p = off / (1 << bits), on / (1 << bits)
        return np.array([[1 - q, q], [1 - p, p]])

    def bit_rates(self) -> tuple[float, float]:
        """Return q and p."""
        on, off, bits = self.integer_channel()
        return off / (1 << bits), on / (1 << bits)

    def bit_odds(self) -> tuple[float, float]:
        """Return (1 − p) / (1 − q) and p / q: all other bits count the same for every category."""
        off, on = self.bit_rates()
        return (1 - on) / (1 - off), on / off

    def share_variance(self) -> float:
        """Return a bit's variance over (p − q)², reduced because shares sum to one."""
        (off, on), count = self.bit_rates(), len(self.categories)
        seen = off + (on - off) / count
        return (seen * (1 - seen) / (on - off) ** 2 + count**-2) * (1 - 1 / count)

    def _draw(self, position: Any, source: Source, start: int, out: Any) -> None:
        on, off, bits = self.integer_channel()
        rest = bits - 64
        words = source.words(len(self.categories), start, start + len(position))
        high = np.uint64(on >> rest), np.uint64(off >> rest)
        if not draw_bits(position, len(self.categories), *high, words, out):
            return
        own = np.arange(len(self.categories)) == position[:, None]
        for i, j in np.argwhere(np.where(own, *high) == words.T):
            threshold = on if own[i, j] else off
            out[i, j] = source.further(start + i).bits(rest) < threshold & ((1 << rest) - 1)

    def loss(self, a: Hashable, b: Hashable) -> float:
        """Return the exact worst log-ratio between two categories, rounded up."""
        category_positions(self.categories, [a, b])
        if a == b:
            return 0.0
        on, off, bits = self.integer_channel()
        one = 1 << bits
        return float_above(log_ratio(on * (one - off), off * (one - on)))
