"""The promise of one release, as a value that can be compared, stored and added up."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from opboost.columns.column_specs import column_from_dict, column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import DataError
from opboost.promises import Choice, Joint, NoGuarantee

MAX_RELEASES = 10**6
"""The most releases of the same rows that a file may state."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The promise of one release; if it promises nothing, ``lacking`` says why."""

    columns: tuple[PrivateColumn, ...]
    columns_per_row: int | None = None
    caveats: tuple[str, ...] = ()
    lacking: str = ""
    choices: tuple[Choice, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The names of the private columns."""
        return frozenset(str(c.name) for c in self.columns)

    def promise(self) -> Joint | NoGuarantee:
        """Return the promise about one person's record."""
        if self.lacking:
            return NoGuarantee(self.lacking)
        return Joint(
            {c.name: c.guarantee() for c in self.columns},
            self.columns_per_row,
            self.caveats,
            self.choices,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as plain JSON data."""
        return {
            "columns": [column_to_dict(c) for c in self.columns],
            "columns_per_row": self.columns_per_row,
            "caveats": list(self.caveats),
            "lacking": self.lacking,
            "choices": [[choice.count, list(choice.columns)] for choice in self.choices],
        }

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Terms:
        """Return the terms that a dict describes; refuse bad ones."""
        per_row, lacking, caveats = spec["columns_per_row"], spec["lacking"], spec["caveats"]
        whole = per_row is None or (type(per_row) is int and per_row > 0)
        if not (whole and isinstance(lacking, str) and all(isinstance(c, str) for c in caveats)):
            raise DataError("The terms of a release cannot be read")
        columns = tuple(column_from_dict(c) for c in spec["columns"])
        choices = _choices(spec.get("choices", []), columns)
        return cls(columns, per_row, tuple(caveats), lacking, choices)


def _choices(spec: Any, columns: tuple[PrivateColumn, ...]) -> tuple[Choice, ...]:
    """Return the choices that a list describes; each names known columns, none of them twice."""
    left = {c.name for c in columns}
    found = []
    for count, names in spec:
        if type(count) is not int or not 0 < count <= len(names) or not left.issuperset(names):
            raise DataError("The terms of a release cannot be read")
        left -= set(names)
        found.append(Choice(count, tuple(names)))
    return tuple(found)


Counted = Mapping[Terms, int]
"""How often the same rows were released, by terms; an estimator's own terms come first."""


def counted_to_list(counted: Counted) -> list[dict[str, Any]]:
    """Return counted releases as plain JSON data."""
    return [{"times": times, **terms.to_dict()} for terms, times in counted.items()]


def counted_from_list(specs: Iterable[Mapping[str, Any]]) -> dict[Terms, int]:
    """Return the counted releases that a list describes; refuse a bad one."""
    counted: dict[Terms, int] = {}
    for spec in specs:
        if type(spec["times"]) is not int or not 0 < spec["times"] <= MAX_RELEASES:
            raise DataError(f"No estimator releases its rows {spec['times']!r} times")
        counted[Terms.from_dict(spec)] = spec["times"]
    if not counted:
        raise DataError("An estimator states at least one release of its rows")
    return counted


def added_up(counted: Counted, notes: Iterable[str] = ()) -> Joint | NoGuarantee:
    """Return the promise of all these releases of equal rows; ``notes`` list what is not counted.

    If one release promises nothing, all of them together promise nothing.
    """
    own = next(iter(counted))
    if own.lacking:
        return own.promise()
    lacking = Counter[str]()
    for terms, times in counted.items():
        lacking[terms.lacking] += times
    if bad := [f"{times} times, {why}" for why, times in lacking.items() if why]:
        return NoGuarantee(f"equal rows were also released {'; '.join(bad)}")
    whole: Joint = reduce(operator.add, (_times(t.promise(), n) for t, n in counted.items()))
    releases = sum(counted.values())
    covers = (f"all {releases} releases of equal rows, added up as if each row were one person",)
    return replace(
        whole,
        caveats=tuple(dict.fromkeys((*whole.caveats, *notes))),
        covers=covers if releases > 1 else (),
    )


def _times(promise: Any, times: int) -> Any:
    """Return the promise of ``times`` equal releases."""
    if times == 1:
        return promise
    half = _times(promise, times // 2)
    return half + half + promise if times % 2 else half + half
