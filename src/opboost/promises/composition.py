"""Privacy promises and how they compose.

A guarantee bounds a log-ratio: whatever is released, ``ln P[out | x] − ln P[out | y]`` never
exceeds ``bound(x, y)``.  ``total`` is the largest bound over all pairs: the most that a whole
release reveals about one person.

``+`` composes releases.  For **one** attribute, levels add (``DLDP(.3) + DLDP(.4)`` is
``DLDP(.7)``); promises of different forms are kept separately in a :class:`Sum`.  Over **several**
attributes, the bounds add column by column, each with its own distance: that is a :class:`Joint`
(``g.on("age") + h.on("income")``).

Bounds are floats rounded down and exact losses are rounded up, so ``loss <= bound`` between two
floats proves the statement about the real numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opboost.errors import visible
from opboost.randomness.exact import float_below


class Guarantee(ABC):
    """A promise about the releases of one attribute."""

    __slots__ = ()

    @property
    def knows_missing(self) -> bool:
        """Whether ``None``, a missing value, has a bound."""
        return False

    @abstractmethod
    def bound(self, x: Any, y: Any) -> float:
        """Return the largest log-ratio by which a release may favour ``x`` over ``y``."""

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
        """Return the largest ``bound`` between ``x`` and any value."""

    def on(self, attribute: object) -> Joint:
        """Return this promise as one about the named attribute."""
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
        """Return the composition in closed form if both promises have the same form, else None."""
        return None


@dataclass(frozen=True, slots=True)
class Sum(Guarantee):
    """Several releases of one attribute with promises of different forms: bounds add."""

    parts: tuple[Guarantee, ...]

    def bound(self, x: Any, y: Any) -> float:
        """Return the sum of the parts' bounds; infinity if a part has none for a missing value."""
        return plus(*(_bound(part, x, y) for part in self.parts))

    @property
    def total(self) -> float:
        """The sum of the parts' totals."""
        return plus(*(part.total for part in self.parts))

    def reach(self, x: Any) -> float:
        """Return the sum of the parts' reaches."""
        return plus(*(part.reach(x) for part in self.parts))

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
    """No promise at all, with the reason.

    >>> print(NoGuarantee("seeded"))
    none: seeded
    """

    reason: str

    def bound(self, x: Any, y: Any) -> float:
        """Return infinity, even for equal values: nothing is promised."""
        return math.inf

    @property
    def total(self) -> float:
        """Infinity."""
        return math.inf

    def reach(self, x: Any) -> float:
        """Return infinity."""
        return math.inf

    def __add__(self, other: Guarantee | Joint) -> NoGuarantee:
        return self if isinstance(other, Guarantee | Joint) else NotImplemented

    @property
    def brief(self) -> str:
        """The levels in a few words."""
        return str(self)

    def __str__(self) -> str:
        return f"none: {self.reason}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A random choice: ``count`` of these columns are released for each row."""

    count: int
    columns: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Joint:
    """The promise about a whole record: bounds add over the attributes.

    If ``columns_per_row`` is k, only k random columns are released for each row, so the total adds
    up only the k largest bounds.  With several parties, each of ``choices`` names some columns, and
    ``count`` of them are released for each row.  If the total is that of several
    releases, ``covers`` says so.  ``caveats`` lists what the total does not count.

    >>> from opboost import DLDP, Domain
    >>> age, pay = DLDP(0.64, Domain(1, 10)), DLDP(0.32, Domain(1, 10))
    >>> record = age.on("age") + pay.on("pay")
    >>> record.bound({"age": 3, "pay": 7}, {"age": 5, "pay": 7}), round(record.total, 2)
    (1.28, 8.64)
    """

    parts: Mapping[object, Guarantee]
    columns_per_row: int | None = None
    caveats: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    covers: tuple[str, ...] = ()

    def bound(self, x: Mapping[object, Any], y: Mapping[object, Any]) -> float:
        """Return the largest log-ratio by which a release may favour record ``x`` over ``y``."""
        return self._combined({n: part.bound(x[n], y[n]) for n, part in self.parts.items()})

    @property
    def total(self) -> float:
        """The most that is revealed about one person's record."""
        return self._combined({name: part.total for name, part in self.parts.items()})

    def _combined(self, bounds: Mapping[object, float]) -> float:
        left = dict(bounds)
        chosen: list[float] = []
        for choice in self.choices:
            of_choice = sorted((left.pop(name) for name in choice.columns), reverse=True)
            chosen += of_choice[: choice.count]
        largest = sorted(left.values(), reverse=True)
        return plus(*chosen, *largest[: self.columns_per_row])

    def __add__(self, other: Joint | NoGuarantee) -> Joint | NoGuarantee:
        if isinstance(other, NoGuarantee):
            return other
        if not isinstance(other, Joint):
            return NotImplemented
        parts = dict(self.parts)
        for name, part in other.parts.items():
            parts[name] = parts[name] + part if name in parts else part
        caveats = tuple(dict.fromkeys((*self.caveats, *other.caveats)))
        # Two releases may have drawn different columns of a row, so every column is charged.
        covers = tuple(dict.fromkeys((*self.covers, *other.covers)))
        return Joint(parts, None, caveats, covers=covers)

    def __hash__(self) -> int:
        said = (self.caveats, self.choices, self.covers)
        return hash((tuple(self.parts.items()), self.columns_per_row, *said))

    def __str__(self) -> str:
        if reasons := {p.reason for p in self.parts.values() if isinstance(p, NoGuarantee)}:
            return "none: " + "; ".join(map(visible, sorted(reasons)))
        lines = [f"{visible(name)}: {part}" for name, part in self.parts.items()]
        if self.columns_per_row is not None:
            count = self.columns_per_row
            lines.append(f"sent for each row: {count} of the columns, chosen at random")
        for choice in self.choices:
            named = ", ".join(visible(name) for name in choice.columns)
            lines.append(f"sent for each row: {choice.count} of {named}, chosen at random")
        lines.append(f"one person's record: at most {self.total:g}")
        lines += [f"covered: {visible(what)}" for what in self.covers]
        lines += [f"not covered: {visible(caveat)}" for caveat in self.caveats]
        return "\n".join(lines)


def _bound(part: Guarantee, x: Any, y: Any) -> float:
    if (x is None or y is None) and not part.knows_missing:
        return math.inf
    return part.bound(x, y)


def plus(*levels: float) -> float:
    """Return the sum of levels, rounded down; infinity if one of them is infinite."""
    if any(map(math.isinf, levels)):
        return math.inf
    return float_below(sum(map(Fraction, levels), Fraction(0)))
