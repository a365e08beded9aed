"""The forms that a promise about one attribute can take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from opboost.errors import ParameterError
from opboost.grid import Domain, Partition
from opboost.promises.composition import Guarantee, plus
from opboost.randomness.exact import float_below


def checked_epsilon(name: str, value: float) -> float:
    """Return a level that can be promised and sampled: a real number from 1e-9 to 1000."""
    try:
        if isinstance(value, str | bool):  # float() would take them for numbers
            raise TypeError
        level = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be a number; got {value!r}. Write 0.64.") from None
    if not 1e-9 <= level <= 1000:
        raise ParameterError(
            f"{name} must lie between 1e-9 and 1000; got {value!r}. "
            "Smaller is more private; 0.08 to 1.28 per cell is usual."
        )
    return level


@dataclass(frozen=True, slots=True)
class DLDP(Guarantee):
    """Distance-based local differential privacy: ``bound(x, y) = epsilon * |x − y|``.

    >>> DLDP(0.64, Domain(1, 10)).bound(3, 5), DLDP(0.64, Domain(1, 10)).total
    (1.28, 5.76)

    Without a domain, neither the distance nor the total has a limit.
    """

    epsilon: float
    domain: Domain | None = None

    def bound(self, x: int, y: int) -> float:
        """Return ``epsilon`` times the distance, also for inputs outside the grid."""
        return _times(self.epsilon, abs(int(x) - int(y)))

    @property
    def total(self) -> float:
        """``epsilon`` times the span of the grid."""
        return math.inf if self.domain is None else _times(self.epsilon, self.domain.span)

    def reach(self, x: int) -> float:
        """Return the bound to the farther end of the grid."""
        if self.domain is None:
            return math.inf
        return max(self.bound(x, self.domain.L), self.bound(x, self.domain.R))

    def _merged(self, other: Guarantee) -> Guarantee | None:
        if isinstance(other, DLDP) and other.domain == self.domain:
            return DLDP(self.epsilon + other.epsilon, self.domain)
        return None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.epsilon:.3g} per cell"

    def __str__(self) -> str:
        return f"{self.epsilon:g}-dLDP per cell (at most {self.total:g} in all)"


@dataclass(frozen=True, slots=True)
class LDP(Guarantee):
    """Local differential privacy: the same bound for every pair of different values."""

    epsilon: float

    @property
    def knows_missing(self) -> bool:
        """True: a missing value counts as one more value."""
        return True

    def bound(self, x: Any, y: Any) -> float:
        """Return ``epsilon`` for different values, zero for equal ones."""
        return 0.0 if x == y else self.epsilon

    @property
    def total(self) -> float:
        """``epsilon``."""
        return self.epsilon

    def reach(self, x: Any) -> float:
        """Return ``epsilon``."""
        return self.epsilon

    def _merged(self, other: Guarantee) -> Guarantee | None:
        return LDP(self.epsilon + other.epsilon) if isinstance(other, LDP) else None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.epsilon:.3g} for any pair"

    def __str__(self) -> str:
        return f"{self.epsilon:g}-LDP"


@dataclass(frozen=True, slots=True)
class CappedDLDP(Guarantee):
    """Distance-based up to a cap: ``bound(x, y) = min(near * |x − y|, cap)``.

    Near values cost proportionally less than distant ones, and no pair costs more than ``cap``.
    With ``gaps``, a missing value (``None``) differs from any other value by at most ``cap``.

    >>> g = CappedDLDP(near=0.5, cap=4.0, domain=Domain(0, 31))
    >>> g.bound(3, 5), g.bound(3, 30), g.total
    (1.0, 4.0, 4.0)
    """

    near: float
    cap: float
    domain: Domain | None = None
    gaps: bool = False

    @property
    def knows_missing(self) -> bool:
        """Whether a missing value counts as one more value."""
        return self.gaps

    def bound(self, x: int | None, y: int | None) -> float:
        """Return ``near`` times the distance, and never more than ``cap``."""
        if self.gaps and (x is None or y is None):
            return 0.0 if x is y else self.cap
        return min(_times(self.near, abs(int(x) - int(y))), self.cap)  # type: ignore[arg-type]

    @property
    def total(self) -> float:
        """The bound across the grid, or between a value and a missing value."""
        if self.domain is None or self.gaps:
            return self.cap
        return min(_times(self.near, self.domain.span), self.cap)

    def reach(self, x: int | None) -> float:
        """Return the bound to the farther end of the grid, or to a missing value."""
        if self.domain is None or self.gaps:
            return self.cap
        return max(self.bound(x, self.domain.L), self.bound(x, self.domain.R))

    def _merged(self, other: Guarantee) -> Guarantee | None:
        """Return the sum of two promises whose caps begin at the same distance, else None."""
        if not isinstance(other, CappedDLDP) or (other.domain, other.gaps) != (
            self.domain,
            self.gaps,
        ):
            return None
        if Fraction(self.near) * Fraction(other.cap) != Fraction(other.near) * Fraction(self.cap):
            return None
        return CappedDLDP(self.near + other.near, self.cap + other.cap, self.domain, self.gaps)

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.near:.3g} per cell up to {self.cap:.3g}"

    def __str__(self) -> str:
        gaps = ", missing values included" if self.gaps else ""
        return f"{self.near:g}-dLDP per cell, and at most {self.total:g} for any pair{gaps}"


@dataclass(frozen=True, slots=True)
class PartitionDLDP(Guarantee):
    """Partition-dLDP: ``borders(x, y) * eps_prt + min(|x − y|, widest − 1) * eps_ner``.

    This is tighter than the paper's definition, and also holds for uneven partitions
    (docs/proofs/adj-map.md).
    """

    eps_prt: float
    eps_ner: float
    partition: Partition

    def bound(self, x: int, y: int) -> float:
        """Return ``eps_prt`` per border between the values, plus a share for the distance."""
        borders = abs(self.partition.index(x) - self.partition.index(y))
        inside = min(abs(int(x) - int(y)), self.partition.widest - 1)
        return float_below(borders * Fraction(self.eps_prt) + inside * Fraction(self.eps_ner))

    @property
    def total(self) -> float:
        """The bound between the two ends of the grid."""
        domain = self.partition.domain
        return math.inf if domain is None else self.bound(domain.L, domain.R)

    def reach(self, x: int) -> float:
        """Return the bound to the farther end of the grid."""
        domain = self.partition.domain
        if domain is None:
            return math.inf
        return max(self.bound(x, domain.L), self.bound(x, domain.R))

    def _merged(self, other: Guarantee) -> Guarantee | None:
        if isinstance(other, PartitionDLDP) and other.partition == self.partition:
            return replace(
                self, eps_prt=self.eps_prt + other.eps_prt, eps_ner=self.eps_ner + other.eps_ner
            )
        return None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.eps_prt:.3g} per border + {self.eps_ner:.3g} per cell"

    def __str__(self) -> str:
        return (
            f"partition-dLDP, {self.eps_prt:g} per border and {self.eps_ner:g} per cell "
            f"up to {self.partition.widest - 1} (at most {self.total:g} in all)"
        )


@dataclass(frozen=True, slots=True)
class LocalDLDP(Guarantee):
    """dLDP inside a run of the partition, and no promise across runs: the run is revealed."""

    epsilon: float
    partition: Partition

    def bound(self, x: int, y: int) -> float:
        """Return ``epsilon`` times the distance inside a run, infinity across runs."""
        if self.partition.index(x) != self.partition.index(y):
            return math.inf
        return _times(self.epsilon, abs(int(x) - int(y)))

    @property
    def total(self) -> float:
        """Infinity if there are two or more runs."""
        if self.partition.count > 1:
            return math.inf
        assert self.partition.domain is not None
        return _times(self.epsilon, self.partition.domain.span)

    def reach(self, x: int) -> float:
        """Return infinity if there are two or more runs."""
        return self.total

    def _merged(self, other: Guarantee) -> Guarantee | None:
        if isinstance(other, LocalDLDP) and other.partition == self.partition:
            return replace(self, epsilon=self.epsilon + other.epsilon)
        return None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.epsilon:.3g} per cell in a run, run shown"

    def __str__(self) -> str:
        return (
            f"{self.epsilon:g}-dLDP per cell inside a run of at most {self.partition.widest} "
            "cells; the run is revealed"
        )


@dataclass(frozen=True, slots=True)
class Flagged(Guarantee):
    """A promise about an attribute that may be missing; ``None`` is a missing value.

    The bound between a missing value and a present value x is ``eps_missing + bound(constant, x)``.
    """

    inner: Guarantee
    eps_missing: float
    constant: int

    @property
    def knows_missing(self) -> bool:
        """True: missing values have a bound."""
        return True

    def bound(self, x: int | None, y: int | None) -> float:
        """Return the inner bound, plus the flag's share if one of the values is missing."""
        if x is None and y is None:
            return 0.0
        if x is not None and y is not None:
            return self.inner.bound(x, y)
        present = x if x is not None else y
        return plus(self.eps_missing, self.inner.bound(self.constant, present))

    @property
    def total(self) -> float:
        """The largest bound: across the grid, or from missing to the farthest value."""
        return max(self.inner.total, plus(self.eps_missing, self.inner.reach(self.constant)))

    def reach(self, x: int | None) -> float:
        """Return the largest bound between ``x`` (or a missing value) and any other."""
        if x is None:
            return plus(self.eps_missing, self.inner.reach(self.constant))
        return max(self.inner.reach(x), self.bound(None, x))

    def _merged(self, other: Guarantee) -> Guarantee | None:
        if isinstance(other, Flagged) and other.constant == self.constant:
            return Flagged(
                self.inner + other.inner, self.eps_missing + other.eps_missing, self.constant
            )
        return None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.inner.brief}, {self.eps_missing:.3g} if missing"

    def __str__(self) -> str:
        return (
            f"{self.inner}; a missing value costs {self.eps_missing:g} more than cell "
            f"{self.constant} (then at most {self.total:g} in all)"
        )


def _times(epsilon: float, count: int) -> float:
    return float_below(Fraction(epsilon) * count)
