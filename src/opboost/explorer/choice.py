"""The visitor's choice: the form's fields, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, get_args

from opboost.errors import OpBoostError, ParameterError
from opboost.explorer.equal_loss import Measure
from opboost.grid import Domain, NumericMapping, Partition
from opboost.mechanisms import Mechanism, registry
from opboost.promises import Joint, checked_epsilon

MAX_CELLS = 1024
"""The largest grid that is drawn."""

MAX_LEVEL = 50.0
"""The highest level that is drawn: beyond it a release hides nothing."""

KINDS = {entry.kind: entry.title for entry in registry.on_grids()}
"""The mechanisms' names on the page, by their names in TOML."""

DEFAULTS = {
    "cells": "10",
    "kind": registry.DEFAULT_KIND,
    "epsilon": "0.64",
    "theta": "2",
    "alpha": "1",
    "total": "4",
    "near": "",
    "width": "",
    "value": "",
    "look": "0",
    "match": "cell",
}


OPTIONAL = ("near", "width")
"""Parameters that may be left empty: the mechanism then chooses a value."""


def kinds_with(parameter: str) -> str:
    """Return the kinds that have this parameter, separated by spaces, for an HTML attribute."""
    return " ".join(kind for kind in KINDS if registry.BY_KIND[kind].has(parameter))


@dataclass(frozen=True, slots=True)
class Form:
    """The fields as they were typed; a missing field has its default.

    ``columns`` are rows of name, lower and upper bound.  Empty rows do not count.
    """

    fields: Mapping[str, str]
    columns: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(
        cls,
        fields: Mapping[str, str],
        columns: Sequence[tuple[str, str, str]],
        before: Sequence[tuple[str, str, str]] = (("age", "17", "90"),),
    ) -> Form:
        """Return the form that was sent, or that of a first visit."""
        known = {name: fields.get(name, value).strip() for name, value in DEFAULTS.items()}
        return cls(known, tuple(columns) or tuple(before))


@dataclass(frozen=True, slots=True)
class Choice:
    """A form without a mistake."""

    kind: str
    mechanism: Mechanism
    mappings: Mapping[str, NumericMapping]
    """By column name; the table's other columns are dropped."""
    undeclared: tuple[str, ...]
    looked_at: str
    value: float
    match: Measure

    @property
    def mapping(self) -> NumericMapping:
        """The mapping of the column that the page shows."""
        return self.mappings[self.looked_at]

    @property
    def cell(self) -> int:
        """The cell of the value that the page shows."""
        return int(self.mapping.to_grid([self.value])[0])

    def guarantee(self) -> Joint:
        """Return the guarantee for one person, over all columns."""
        return Joint(dict.fromkeys(self.mappings, self.mechanism.guarantee()))

    def rivals(self) -> dict[str, Mechanism]:
        """Return every kind on the same grid, with the chosen θ and α if it has these
        parameters."""
        domain = self.mechanism.domain
        calibration = getattr(self.mechanism, "calibration", None)
        asked = {
            "epsilon": 1.0,
            "theta": getattr(self.mechanism, "theta", min(2, domain.size)),
            "alpha": calibration[1] if calibration else 1.0,
            "total": 1.0,
        }
        return {
            kind: registry.build(
                kind, domain, **{n: v for n, v in asked.items() if registry.BY_KIND[kind].has(n)}
            )
            for kind in KINDS
        }


@dataclass(slots=True)
class Problems:
    """The errors, by the name of the form control beside which they are shown."""

    by_control: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def at(self, control: str) -> Iterator[None]:
        """Keep an error raised in the block, and continue after the block."""
        try:
            yield
        except OpBoostError as error:
            self.by_control.setdefault(control, str(error))


def chosen(form: Form) -> tuple[Choice | None, dict[str, str]]:
    """Return the choice, or its errors by the control where they can be corrected.

    >>> choice, problems = chosen(Form.of({"epsilon": "-1"}, []))
    >>> choice is None, problems["epsilon"][:40]
    (True, 'epsilon must lie between 1e-9 and 1000; ')
    """
    problems, fields = Problems(), form.fields
    mechanism = _mechanism(fields, problems)
    grid = mechanism.domain if mechanism else Domain(1, 10)
    mappings, undeclared = _mappings(form, grid, problems)
    looked_at, value, match = "", 0.0, fields["match"]
    with problems.at("look"):
        looked_at = _looked_at(form, mappings)
    if looked_at:
        with problems.at("value"):
            value = _value(fields["value"], mappings[looked_at])
    with problems.at("match"):
        if match not in get_args(Measure):
            raise ParameterError(f"Compare by 'cell' or 'whole'; got {match!r}.")
    if mechanism is None or problems.by_control:
        return None, problems.by_control
    measure: Any = match
    return (
        Choice(fields["kind"], mechanism, mappings, undeclared, looked_at, value, measure),
        {},
    )


def _mechanism(fields: Mapping[str, str], problems: Problems) -> Mechanism | None:
    kind, domain = fields["kind"], Domain(1, 10)
    with problems.at("cells"):
        domain = Domain(1, whole("cells", fields["cells"]))
        if domain.size > MAX_CELLS:
            raise ParameterError(
                f"The page draws up to {MAX_CELLS:,} cells; got {domain.size:,}. "
                "opboost certify handles grids of any size."
            )
    with problems.at("kind"):
        if kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    asked: dict[str, Any] = {}
    for name in [p.name for p in registry.BY_KIND[kind].parameters] if kind in KINDS else []:
        if fields.get(name) or (name in fields and name not in OPTIONAL):
            with problems.at(name):
                asked[name] = _parameter(name, fields[name], domain)
    if problems.by_control:
        return None
    # Add optional parameters one by one, so that an error is shown beside its control.
    optional = [name for name in OPTIONAL if name in asked]
    needed = {name: value for name, value in asked.items() if name not in optional}
    made = None
    for count in range(len(optional) + 1):
        with problems.at(optional[count - 1] if count else "kind"):
            given = needed | {name: asked[name] for name in optional[:count]}
            made = registry.build(kind, domain, **given)
        if problems.by_control:
            return None
    return made


def _parameter(name: str, text: str, domain: Domain) -> float | int:
    if name == "width":
        return whole(name, text)
    if name == "theta":
        theta = whole(name, text)
        Partition(domain, theta)
        return theta
    level = checked_epsilon(name, number(name, text))
    if level > MAX_LEVEL and name != "alpha":
        raise ParameterError(f"The page draws levels up to {MAX_LEVEL:g}; got {level:g}.")
    return level


def _mappings(
    form: Form, grid: Domain, problems: Problems
) -> tuple[dict[str, NumericMapping], tuple[str, ...]]:
    mappings: dict[str, NumericMapping] = {}
    undeclared = []
    for i, (name, lower, upper) in enumerate(form.columns):
        if not (name or lower or upper):
            continue
        if name and not (lower or upper):
            undeclared.append(name)
            continue
        with problems.at(f"column-{i}"):
            if not name.strip() or not name.isprintable():
                raise ParameterError("A column needs a name. Write its name in the table.")
            if name in mappings or name in undeclared:
                raise ParameterError(f"Column {name!r} occurs twice. Remove one of them.")
        bounds = [math.nan, math.nan]
        for j, (side, text) in enumerate((("lower", lower), ("upper", upper))):
            with problems.at(f"{side}-{i}"):
                bounds[j] = number(f"The {side} bound", text, "17" if side == "lower" else "90")
        if not any(map(math.isnan, bounds)):
            with problems.at(f"upper-{i}"):
                mappings[name] = NumericMapping(grid, (bounds[0], bounds[1]))
    return mappings, tuple(undeclared)


def _looked_at(form: Form, mappings: Mapping[str, NumericMapping]) -> str:
    place = whole("look", form.fields["look"])
    names = [name for name, _, _ in form.columns]
    if 0 <= place < len(names) and names[place] in mappings:
        return names[place]
    if not mappings:
        raise ParameterError(
            "No column has bounds yet. Declare the widest values that make sense, "
            "from what is publicly known and not from the data."
        )
    return next(iter(mappings))


def _value(text: str, mapping: NumericMapping) -> float:
    lower, upper = mapping.bounds
    if not text:
        return lower + (upper - lower) / 2
    value = number("The value", text, f"{lower:g}")
    if not lower <= value <= upper:
        raise ParameterError(
            f"The value must lie between the bounds {lower:g} and {upper:g}; got {value:g}. "
            "A release would clamp it to the nearer bound."
        )
    return value


def number(name: str, text: str, example: str = "0.64") -> float:
    """Parse a finite number that a person typed."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ParameterError(f"{name} must be a number; got {text[:40]!r}. Write {example}.")
    return found


def whole(name: str, text: str) -> int:
    """Parse a whole number that a person typed."""
    try:
        return int(text[:20])
    except ValueError:
        raise ParameterError(
            f"{name} must be a whole number; got {text[:40]!r}. Write 10."
        ) from None
