"""Which party holds each column of a model, and whose raw units it does not know."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opboost.errors import DataError


@dataclass(frozen=True, slots=True)
class Origins:
    """Where columns come from; of a model of one machine nothing is to be told.

    Attributes:
        parties: The feature party of each private column.
        withheld: Columns whose party keeps its raw units to itself (``units="grid"``): rows hold
            cell numbers in their place.
    """

    parties: Mapping[Hashable, str] = field(default_factory=dict)
    withheld: frozenset[Hashable] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"parties": dict(self.parties), "withheld": sorted(map(str, self.withheld))}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Origins:
        """What :meth:`to_dict` wrote."""
        parties, withheld = spec["parties"], spec["withheld"]
        if not all(isinstance(text, str) for text in [*parties, *parties.values(), *withheld]):
            raise DataError("Columns and parties of an estimator have names")
        return cls(dict(parties), frozenset(withheld))
