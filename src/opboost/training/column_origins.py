"""Which party holds each column of a model, and for which columns it withholds raw units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opboost.errors import DataError


@dataclass(frozen=True, slots=True)
class Origins:
    """The origin of each column; empty for a model that was trained on one machine.

    Attributes:
        parties: The feature party of each private column.
        withheld: Columns whose party withholds its raw units (``units="grid"``): rows hold cell
            numbers instead.
    """

    parties: Mapping[Hashable, str] = field(default_factory=dict)
    withheld: frozenset[Hashable] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the origins as plain data for JSON."""
        return {"parties": dict(self.parties), "withheld": sorted(map(str, self.withheld))}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Origins:
        """Read what :meth:`to_dict` wrote."""
        parties, withheld = spec["parties"], spec["withheld"]
        if not all(isinstance(text, str) for text in [*parties, *parties.values(), *withheld]):
            raise DataError("Columns and parties of an estimator must have names")
        return cls(dict(parties), frozenset(withheld))
