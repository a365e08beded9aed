"""Promises about privacy, and how they compose.

A guarantee bounds a log-ratio: whatever is released, ``ln P[out | x] − ln P[out | y]`` never
exceeds ``bound(x, y)``.  ``total`` is the largest bound over all pairs: what a whole release says
about one person at most.

``+`` composes releases.  Of **one** attribute, levels add (``DLDP(.3) + DLDP(.4)`` is
``DLDP(.7)``); promises of different form stay side by side in a :class:`Sum`.  Over **several**
attributes the bounds add column by column, each with its own distance: that is a :class:`Joint`
(``g.on("age") + h.on("income")``).

Bounds are floats rounded down and exact losses are rounded up, so ``loss <= bound`` between two
floats proves the statement about the real numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from opboost.domain import Domain, Partition
from opboost.errors import ParameterError
from opboost.exact import float_below


def checked_epsilon(name: str, value: float) -> float:
    """A level that can be promised and sampled: a real number from 1e-9 to 1000."""
    try:
        level = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number; got {value!r}. Write 0.64.") from None
    if not 1e-9 <= level <= 1000:
        raise ParameterError(
            f"{name} must lie between 1e-9 and 1000; got {value!r}. "
            "Smaller is more private; 0.08 to 1.28 a cell is usual."
        )
    return level


class Guarantee(ABC):
    """A promise about the releases of one attribute."""

    __slots__ = ()

    @abstractmethod
    def bound(self, x: Any, y: Any) -> float:
        """The most that a release may say for ``x`` against ``y``, as a log-ratio."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The largest ``bound`` over all pairs."""

    @property
    @abstractmethod
    def brief(self) -> str:
        """The levels in a few words, for tables."""

    @abstractmethod
    def reach(self, x: Any) -> float:
        """The largest ``bound`` between ``x`` and any value."""

    def on(self, attribute: object) -> Joint:
        """This promise as one about the named attribute."""
        return Joint({attribute: self})

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        if isinstance(other, NoGuarantee):
            return other
        if isinstance(other, Sum):
            return other.__add__(self)
        return self._merged(other) or Sum((self, other))

    def _merged(self, other: Guarantee) -> Guarantee | None:
        """The composition in closed form, where both promises have the same form."""
        return None


@dataclass(frozen=True, slots=True)
class DLDP(Guarantee):
    """Distance-based local differential privacy: ``bound(x, y) = epsilon * |x − y|``.

    >>> DLDP(0.64, Domain(1, 10)).bound(3, 5), DLDP(0.64, Domain(1, 10)).total
    (1.28, 5.76)

    Without a domain the distance has no limit, and neither has the total.
    """

    epsilon: float
    domain: Domain | None = None

    def bound(self, x: int, y: int) -> float:
        """``epsilon`` times the distance, inputs outside the grid included."""
        return _times(self.epsilon, abs(int(x) - int(y)))

    @property
    def total(self) -> float:
        """``epsilon`` times the span of the grid."""
        return math.inf if self.domain is None else _times(self.epsilon, self.domain.span)

    def reach(self, x: int) -> float:
        """The bound to the farther end of the grid."""
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
        return f"{self.epsilon:.3g} a cell"

    def __str__(self) -> str:
        return f"{self.epsilon:g}-dLDP a cell (at most {self.total:g} in all)"


@dataclass(frozen=True, slots=True)
class LDP(Guarantee):
    """Local differential privacy: the same bound for every pair of different values."""

    epsilon: float

    def bound(self, x: Any, y: Any) -> float:
        """``epsilon`` for different values, nothing for equal ones."""
        return 0.0 if x == y else self.epsilon

    @property
    def total(self) -> float:
        """``epsilon``."""
        return self.epsilon

    def reach(self, x: Any) -> float:
        """``epsilon``."""
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
class PartitionDLDP(Guarantee):
    """Partition-dLDP: ``borders(x, y) * eps_prt + min(|x − y|, widest − 1) * eps_ner``.

    Tighter than the paper's definition and right for uneven partitions too
    (docs/proofs/adj-map.md).
    """

    eps_prt: float
    eps_ner: float
    partition: Partition

    def bound(self, x: int, y: int) -> float:
        """A share for each border between the two, and one for the distance inside a run."""
        borders = abs(self.partition.index(x) - self.partition.index(y))
        inside = min(abs(int(x) - int(y)), self.partition.widest - 1)
        return float_below(borders * Fraction(self.eps_prt) + inside * Fraction(self.eps_ner))

    @property
    def total(self) -> float:
        """The bound between the two ends of the grid."""
        domain = self.partition.domain
        return math.inf if domain is None else self.bound(domain.L, domain.R)

    def reach(self, x: int) -> float:
        """The bound to the farther end of the grid."""
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
        return f"{self.eps_prt:.3g} a border + {self.eps_ner:.3g} a cell"

    def __str__(self) -> str:
        return (
            f"partition-dLDP, {self.eps_prt:g} a border and {self.eps_ner:g} a cell "
            f"up to {self.partition.widest - 1} (at most {self.total:g} in all)"
        )


@dataclass(frozen=True, slots=True)
class LocalDLDP(Guarantee):
    """dLDP inside a run of the partition, and no promise across: the run itself is revealed."""

    epsilon: float
    partition: Partition

    def bound(self, x: int, y: int) -> float:
        """``epsilon`` times the distance inside a run, infinity across."""
        if self.partition.index(x) != self.partition.index(y):
            return math.inf
        return _times(self.epsilon, abs(int(x) - int(y)))

    @property
    def total(self) -> float:
        """Infinity as soon as there are two runs."""
        if self.partition.count > 1:
            return math.inf
        assert self.partition.domain is not None
        return _times(self.epsilon, self.partition.domain.span)

    def reach(self, x: int) -> float:
        """Infinity as soon as there are two runs."""
        return self.total

    def _merged(self, other: Guarantee) -> Guarantee | None:
        if isinstance(other, LocalDLDP) and other.partition == self.partition:
            return replace(self, epsilon=self.epsilon + other.epsilon)
        return None

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return f"{self.epsilon:.3g} a cell in a run, run shown"

    def __str__(self) -> str:
        return (
            f"{self.epsilon:g}-dLDP a cell inside a run of at most {self.partition.widest} cells; "
            "which run is revealed"
        )


@dataclass(frozen=True, slots=True)
class Flagged(Guarantee):
    """A promise whose attribute may be missing: ``None`` stands for a missing value.

    Against a present value x a missing one is bounded by ``eps_missing + bound(constant, x)``.
    """

    inner: Guarantee
    eps_missing: float
    constant: int

    def bound(self, x: int | None, y: int | None) -> float:
        """The inner bound for two present values, with the flag's share if one is missing."""
        if x is None and y is None:
            return 0.0
        if x is not None and y is not None:
            return self.inner.bound(x, y)
        present = x if x is not None else y
        return _plus(self.eps_missing, self.inner.bound(self.constant, present))

    @property
    def total(self) -> float:
        """The largest bound: across the grid, or from missing to the far end."""
        return max(self.inner.total, _plus(self.eps_missing, self.inner.reach(self.constant)))

    def reach(self, x: int | None) -> float:
        """The largest bound between ``x`` (or a missing value) and any other."""
        if x is None:
            return _plus(self.eps_missing, self.inner.reach(self.constant))
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
        return f"{self.inner}; missing or not costs {self.eps_missing:g} more"


@dataclass(frozen=True, slots=True)
class Sum(Guarantee):
    """Several releases of one attribute whose promises have different form: bounds add."""

    parts: tuple[Guarantee, ...]

    def bound(self, x: Any, y: Any) -> float:
        """The sum of the parts' bounds."""
        return _plus(*(part.bound(x, y) for part in self.parts))

    @property
    def total(self) -> float:
        """The sum of the parts' totals."""
        return _plus(*(part.total for part in self.parts))

    def reach(self, x: Any) -> float:
        """The sum of the parts' reaches."""
        return _plus(*(part.reach(x) for part in self.parts))

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        if isinstance(other, NoGuarantee):
            return other
        parts = list(self.parts)
        for new in other.parts if isinstance(other, Sum) else (other,):
            for i, old in enumerate(parts):
                if (merged := old._merged(new)) is not None:
                    parts[i] = merged
                    break
            else:
                parts.append(new)
        return Sum(tuple(parts))

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return " + ".join(part.brief for part in self.parts)

    def __str__(self) -> str:
        return " plus ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class NoGuarantee(Guarantee):
    """No promise at all, and the reason why.

    >>> print(NoGuarantee("seeded"))
    none: seeded
    """

    reason: str

    def bound(self, x: Any, y: Any) -> float:
        """Infinity, for equal values too: nothing is promised."""
        return math.inf

    @property
    def total(self) -> float:
        """Infinity."""
        return math.inf

    def reach(self, x: Any) -> float:
        """Infinity."""
        return math.inf

    def __add__(self, other: Guarantee) -> Guarantee:
        return self if isinstance(other, Guarantee) else NotImplemented

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return str(self)

    def __str__(self) -> str:
        return f"none: {self.reason}"


@dataclass(frozen=True, slots=True)
class Joint:
    """The promise about a whole record: bounds add over the attributes.

    With ``columns_per_row`` only so many randomly chosen columns of each row are released, so
    that many of the largest bounds add.  ``caveats`` say what the promise does not cover.

    >>> age, pay = DLDP(0.64, Domain(1, 10)), DLDP(0.32, Domain(1, 10))
    >>> record = age.on("age") + pay.on("pay")
    >>> record.bound({"age": 3, "pay": 7}, {"age": 5, "pay": 7}), round(record.total, 2)
    (1.28, 8.64)
    """

    parts: Mapping[object, Guarantee]
    columns_per_row: int | None = None
    caveats: tuple[str, ...] = ()

    def bound(self, x: Mapping[object, Any], y: Mapping[object, Any]) -> float:
        """The most that a release of the record ``x`` may say against the record ``y``."""
        return self._combined(part.bound(x[name], y[name]) for name, part in self.parts.items())

    @property
    def total(self) -> float:
        """What one person's record says at most."""
        return self._combined(part.total for part in self.parts.values())

    def _combined(self, bounds: Iterator[float]) -> float:
        largest = sorted(bounds, reverse=True)
        return _plus(*largest[: self.columns_per_row])

    def __add__(self, other: Joint) -> Joint:
        if not isinstance(other, Joint):
            return NotImplemented
        parts = dict(self.parts)
        for name, part in other.parts.items():
            parts[name] = parts[name] + part if name in parts else part
        caveats = tuple(dict.fromkeys((*self.caveats, *other.caveats)))
        # Two releases may have drawn different columns of a row: every column is charged.
        return Joint(parts, None, caveats)

    def __hash__(self) -> int:
        return hash((tuple(self.parts.items()), self.columns_per_row, self.caveats))

    def __str__(self) -> str:
        if reasons := {p.reason for p in self.parts.values() if isinstance(p, NoGuarantee)}:
            return "none: " + "; ".join(sorted(reasons))
        lines = [f"{name}: {part}" for name, part in self.parts.items()]
        if self.columns_per_row is not None:
            lines.append(f"{self.columns_per_row} columns a row are released, chosen at random")
        lines.append(f"one person's record: at most {self.total:g}")
        lines += [f"not covered: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)


def _times(epsilon: float, count: int) -> float:
    return float_below(Fraction(epsilon) * count)


def _plus(*levels: float) -> float:
    if any(map(math.isinf, levels)):
        return math.inf
    return float_below(sum(map(Fraction, levels), Fraction(0)))
