"""Subset selection: a random set that holds the row's own category more often than others."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from opboost.distributions.lazy_uniform import LazyUniform
from opboost.distributions.uniform_kernel import draw_subset
from opboost.errors import ParameterError
from opboost.grid.ordinal_mapping import category_positions, checked_categories
from opboost.mechanisms.nominal import NominalMechanism
from opboost.promises import checked_epsilon
from opboost.randomness.exact import SLACK, exp_bounds, float_above, log_ratio
from opboost.randomness.streams import Source


@dataclass(frozen=True, slots=True, init=False)
class SubsetSelection(NominalMechanism):
    """A mechanism that sends a random set of ``size`` categories as bits.

    A set that contains the row's own category is ``e**epsilon`` times as likely as one that does
    not.  ``size=None`` is the size with the smallest variance of estimated shares; it depends only
    on the number of categories and epsilon.  With size 1 this is randomised response.

    It is epsilon-LDP.  Cost: one word per category, as in unary encoding, but never more noise.
    Proof: docs/proofs/subset-selection.md.
    Reference: Ye and Barg, arXiv 1702.00610.

    >>> city = SubsetSelection(["north", "south", "east", "west", "centre"], epsilon=0.7)
    >>> import opboost as op
    >>> city.subset_size, city.sample(["south", "east"], rng=op.SeededRng(7)).sum(axis=1).tolist()
    (2, [2, 2])
    """

    categories: tuple[Hashable, ...]
    epsilon: float
    size: int | None

    def __init__(
        self, categories: Iterable[Hashable], epsilon: float, size: int | None = None
    ) -> None:
        object.__setattr__(self, "categories", checked_categories(categories))
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", epsilon))
        most = len(self.categories) - 1
        if size is not None and not (
            isinstance(size, int | np.integer) and not isinstance(size, bool) and 1 <= size <= most
        ):
            raise ParameterError(
                f"size must be a whole number of categories from 1 to {most}; got {size!r}. "
                "Leave it out to let OpBoost choose it."
            )
        object.__setattr__(self, "size", None if size is None else int(size))

    @property
    def subset_size(self) -> int:
        """The number of categories in each set."""
        return self.size or best_subset_size(len(self.categories), self.epsilon)

    def scaled(self, factor: float) -> SubsetSelection:
        """Return the mechanism with its level times ``factor``; a size not given is chosen anew."""
        return SubsetSelection(self.categories, self.epsilon * factor, self.size)

    def integer_inclusion(self) -> tuple[int, int]:
        """Return ``(on, bits)``: a row's own category is in its set with chance ``on / 2**bits``.

        It is rounded down, towards the chance of any other category, so it is never less private.
        """
        bits = 128 + math.ceil(self.epsilon * 1.4427)
        ratio = exp_bounds(Fraction(self.epsilon) * (1 - SLACK), bits)[0]
        inside = self.subset_size * ratio
        outside = (len(self.categories) - self.subset_size) << bits
        return (inside << bits) // (inside + outside), bits

    def bit_rates(self) -> tuple[float, float]:
        """Return the chances that another category is in the set, and that the row's own one is."""
        on, bits = self.integer_inclusion()
        own = Fraction(on, 1 << bits)
        return float((self.subset_size - own) / (len(self.categories) - 1)), float(own)

    def bit_odds(self) -> tuple[float, float]:
        """Return the chance of a set without and with the category, relative to a uniform set."""
        on, bits = self.integer_inclusion()
        own, share = Fraction(on, 1 << bits), Fraction(self.subset_size, len(self.categories))
        return float((1 - own) / (1 - share)), float(own / share)

    def share_variance(self) -> float:
        """Return a bit's variance over the squared difference of rates; sets have equal sizes."""
        off, on = self.bit_rates()
        share = self.subset_size / len(self.categories)
        return share * (1 - share) / (on - off) ** 2

    def _draw(self, position: Any, source: Source, start: int, out: Any) -> None:
        on, bits = self.integer_inclusion()
        count, size = len(self.categories), self.subset_size
        words = source.words(count, start, start + len(position))
        undecided = np.empty(len(position), dtype=np.bool_)
        if draw_subset(position, count, size, np.uint64(on >> (bits - 64)), words, out, undecided):
            for i in np.flatnonzero(undecided).tolist():
                out[i] = self._exact(int(position[i]), words[:, i].tolist(), start + i, source)

    def _exact(self, own: int, words: list[int], row: int, source: Source) -> list[int]:
        """Return the row that starts with these words, taking as many more bits as it needs."""
        on, bits = self.integer_inclusion()
        further = source.further(row)
        chosen = [0] * len(words)
        chosen[own] = int(LazyUniform(words[own], further).to(bits) < on)
        needed, left = self.subset_size - chosen[own], len(words) - 1
        for j, word in enumerate(words):
            if j != own:
                chosen[j] = int(LazyUniform(word, further).index(left) < needed)
                needed, left = needed - chosen[j], left - 1
        return chosen

    def loss(self, a: Hashable, b: Hashable) -> float:
        """Return the exact worst log-ratio between two categories, rounded up."""
        category_positions(self.categories, [a, b])
        if a == b:
            return 0.0
        on, bits = self.integer_inclusion()
        size = self.subset_size
        outside = len(self.categories) - size
        return float_above(log_ratio(on * outside, ((1 << bits) - on) * size))


def best_subset_size(categories: int, epsilon: float) -> int:
    """Return the size with the smallest variance, next to ``categories / (e**epsilon + 1)``.

    >>> [best_subset_size(10, epsilon) for epsilon in (0.1, 0.72, 1.0, 4.0)]
    [5, 3, 3, 1]
    """
    near = int(categories / (math.exp(min(epsilon, 700.0)) + 1))
    candidates = [size for size in (near, near + 1) if 1 <= size < categories]
    spare = categories / math.expm1(min(epsilon, 700.0))
    return min(candidates, key=lambda size: (size + spare) ** 2 / (size * (categories - size)))
