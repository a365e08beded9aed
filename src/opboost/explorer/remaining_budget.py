"""What a ledger has left for a release: caps, the amounts spent, and what the choice would add."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opboost.ledger.ledger_summary import summary
from opboost.ledger.open_ledger import declared_ledger, declared_section
from opboost.ledger.store import CHAIN_FILE
from opboost.promises import Joint

FRESH_SECONDS = 5.0
"""Seconds before a ledger is read again."""


@dataclass(frozen=True, slots=True)
class Left:
    """One attribute, or all together: the most spent on one person, and what a release adds."""

    attribute: str
    spent: float
    adds: float
    cap: float | None

    @property
    def left(self) -> float | None:
        """What is left after the release (negative: it is refused); None without a cap."""
        return None if self.cap is None else self.cap - self.spent - self.adds


class LedgerView:
    """A read-only view of a ledger.

    With ``may_be_new``, it shows the caps of a ledger that does not exist yet.
    """

    def __init__(self, config: Path, *, may_be_new: bool = False) -> None:
        self._config, self._read, self._found = config, -FRESH_SECONDS, dict[str, Any]()
        self._may_be_new = may_be_new

    def summary(self) -> dict[str, Any]:
        """Return releases and amounts spent, at most a few seconds old."""
        if time.monotonic() - self._read >= FRESH_SECONDS:
            new = _caps_of_new(self._config) if self._may_be_new else None
            if new is not None:
                self._found = new
            else:
                with declared_ledger(self._config) as opened:
                    self._found = summary(opened)
            self._read = time.monotonic()
        return self._found

    def left(self, guarantee: Joint) -> list[Left]:
        """Return what a release with this guarantee would leave, by attribute and then in total."""
        adds = {str(name): part.total for name, part in guarantee.parts.items()}
        return left(self.summary(), adds, guarantee.total)


def _caps_of_new(config: Path) -> dict[str, Any] | None:
    """Return the summary of a ledger that does not exist yet; None if it or its key exists."""
    section = declared_section(config)
    if (Path(section.folder) / CHAIN_FILE).exists() or Path(section.key).exists():
        return None
    whole = {"attribute": "all together", "people": 0, "most": 0.0, "cap": section.cap_person}
    return {"cap_attribute": section.cap_attribute, "spent": [whole], "releases": []}


def left(found: Mapping[str, Any], adds: Mapping[str, float], whole: float) -> list[Left]:
    """Return what a release would leave, computed from a summary.

    >>> found = {
    ...     "cap_attribute": 6.0,
    ...     "spent": [
    ...         {"attribute": "age", "people": 9, "most": 2.0, "cap": 6.0},
    ...         {"attribute": "all together", "people": 9, "most": 2.0, "cap": None},
    ...     ],
    ... }
    >>> [(line.attribute, line.left) for line in left(found, {"age": 3.0, "pay": 7.0}, 10.0)]
    [('age', 1.0), ('pay', -1.0), ('all together', None)]
    """
    *single, everything = found["spent"]
    spent = {line["attribute"]: line["most"] for line in single}
    # A ledger without releases has no attribute yet; all attributes share one cap.
    cap = single[0]["cap"] if single else found["cap_attribute"]
    lines = [Left(name, spent.get(name, 0.0), level, cap) for name, level in adds.items()]
    return [*lines, Left(everything["attribute"], everything["most"], whole, everything["cap"])]
