"""The mechanisms that configurations, files and pages name, one entry each.

To add a mechanism, write its file and add its entry to :data:`ENTRIES`: the configuration, the
stored form, the estimators and the explorer read everything else from the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opboost.errors import DataError, ParameterError
from opboost.grid import Domain
from opboost.mechanisms.adj_map import AdjMap
from opboost.mechanisms.clamp_map import ClampMap
from opboost.mechanisms.global_map import GlobalMap
from opboost.mechanisms.local_map import LocalMap
from opboost.mechanisms.mechanism import Mechanism
from opboost.mechanisms.nominal import NominalMechanism
from opboost.mechanisms.piecewise import Piecewise
from opboost.mechanisms.randomized_response import RandomizedResponse
from opboost.mechanisms.subset_selection import SubsetSelection
from opboost.mechanisms.unary_encoding import UnaryEncoding
from opboost.mechanisms.window_map import WindowMap

REQUIRED = object()
"""Marks a parameter as having no default."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a mechanism: its name in files, its type in TOML, its default.

    A stored mechanism leaves out a parameter only if its default is None.
    """

    name: str
    toml_type: Any
    """None if a configuration cannot set it."""
    default: Any = REQUIRED
    example: Any = None
    argument: str = ""
    """The name of the constructor's argument, if different."""

    @property
    def keyword(self) -> str:
        """The name of the constructor's argument."""
        return self.argument or self.name


@dataclass(frozen=True, slots=True)
class MechanismEntry:
    """What OpBoost knows about one mechanism."""

    kind: str
    """Its name in TOML."""
    stored_name: str
    """Its name in files and messages, which never changes, whatever the class is called."""
    title: str
    """Its name in tables and on pages."""
    built_by: Callable[..., Mechanism | NominalMechanism]
    """Its class."""
    parameters: tuple[Parameter, ...]
    by_distance: bool = True
    """Whether near values are protected more than far ones, which requires a meaningful order.
    """
    takes: Literal["grid", "categories"] = "grid"
    """The kind of its constructor's first argument."""
    values: Callable[[Any], Mapping[str, Any]] | None = None
    """A function that returns a mechanism's parameters, if its attributes have other names."""

    def toml_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters that a configuration may set."""
        return tuple(p for p in self.parameters if p.toml_type is not None)

    def has(self, name: str) -> bool:
        """Return whether a configuration may set a parameter of this name."""
        return any(p.name == name for p in self.toml_parameters())

    def values_of(self, mechanism: Any) -> dict[str, Any]:
        """Return the parameters of a mechanism by their names in files, as plain JSON data."""
        if self.values is not None:
            found = dict(self.values(mechanism))
        else:
            found = {p.name: getattr(mechanism, p.keyword) for p in self.parameters}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}

    def build(self, first: Any, given: Mapping[str, Any]) -> Any:
        """Build the mechanism on a grid or categories; a parameter of None counts as absent."""
        arguments = {}
        for p in self.parameters:
            value = given.get(p.name)
            if value is not None:
                arguments[p.keyword] = tuple(value) if isinstance(value, list) else value
            elif p.default is REQUIRED:
                raise ParameterError(
                    f"{self.kind} needs {p.name}. Add {p.name} = {p.example} to its mechanism."
                )
        return self.built_by(first, **arguments)


def _adj_map_values(mechanism: AdjMap) -> dict[str, Any]:
    """Return the two levels of an Adj-map, or the calibration that they come from."""
    if mechanism.calibration is None:
        levels = {"eps_prt": mechanism.eps_prt, "eps_ner": mechanism.eps_ner}
    else:
        levels = {"epsilon": mechanism.calibration[0], "alpha": mechanism.calibration[1]}
    return {**levels, "theta": mechanism.theta}


_EPSILON = Parameter("epsilon", float, example=0.64)
_THETA = Parameter("theta", int | list[int], example=2)

ENTRIES = (
    MechanismEntry("global-map", "GlobalMap", "Global-map", GlobalMap, (_EPSILON,)),
    MechanismEntry(
        "adj-map",
        "AdjMap",
        "Adj-map",
        AdjMap,
        (
            Parameter("epsilon", float, None, 0.64),
            _THETA,
            Parameter("alpha", float, None, 1.0),
            Parameter("eps_prt", float, None),
            Parameter("eps_ner", float, None),
        ),
        values=_adj_map_values,
    ),
    MechanismEntry("local-map", "LocalMap", "Local-map", LocalMap, (_EPSILON, _THETA)),
    MechanismEntry("clamp-map", "ClampMap", "Clamp-map", ClampMap, (_EPSILON,)),
    MechanismEntry(
        "randomized-response",
        "RandomizedResponse",
        "Randomised response",
        RandomizedResponse,
        (_EPSILON,),
        by_distance=False,
    ),
    MechanismEntry(
        "piecewise",
        "Piecewise",
        "Piecewise",
        Piecewise,
        (_EPSILON, Parameter("clipped", None, True)),
    ),
    MechanismEntry(
        "window-map",
        "WindowMap",
        "Window-map",
        WindowMap,
        (
            Parameter("total", float, example=4.0),
            Parameter("near", float, None, 0.5),
            Parameter("width", int, None, 1),
            Parameter("clipped", bool, True),
        ),
    ),
    MechanismEntry(
        "unary-encoding",
        "UnaryEncoding",
        "Unary encoding",
        UnaryEncoding,
        (_EPSILON, Parameter("encoding", Literal["oue", "sue"], "oue", argument="kind")),
        by_distance=False,
        takes="categories",
    ),
    MechanismEntry(
        "subset-selection",
        "SubsetSelection",
        "Subset selection",
        SubsetSelection,
        (_EPSILON, Parameter("size", int, None, 3)),
        by_distance=False,
        takes="categories",
    ),
)

BY_KIND = {entry.kind: entry for entry in ENTRIES}
"""The entries by their names in TOML."""

_BY_STORED_NAME = {entry.stored_name: entry for entry in ENTRIES}
_BY_CLASS: dict[Any, MechanismEntry] = {entry.built_by: entry for entry in ENTRIES}

DEFAULT_KIND = "clamp-map"
"""The kind for a column whose mechanism is not stated."""

DEFAULT_NOMINAL_KIND = "unary-encoding"
"""The kind for categories without an order if the other columns' mechanism uses distances."""


def on_grids() -> tuple[MechanismEntry, ...]:
    """Return the entries of mechanisms on a grid, the default one first."""
    found = [entry for entry in ENTRIES if entry.takes == "grid"]
    return tuple(sorted(found, key=lambda entry: entry.kind != DEFAULT_KIND))


def build(kind: str, domain: Domain, **given: Any) -> Mechanism:
    """Build the mechanism of a kind on a grid; a parameter that is None counts as absent.

    >>> build("local-map", Domain(1, 10), epsilon=0.5, theta=[3, 7])
    LocalMap(Domain(L=1, R=10), epsilon=0.5, theta=(3, 7))
    """
    made: Mechanism = _entry(kind, "grid").build(domain, given)
    return made


def build_nominal(kind: str, categories: Iterable[Hashable], **given: Any) -> NominalMechanism:
    """Build the mechanism of a kind for categories without an order.

    >>> build_nominal("unary-encoding", ["a", "b"], epsilon=1.0)
    UnaryEncoding(categories=('a', 'b'), epsilon=1.0, kind='oue')
    """
    made: NominalMechanism = _entry(kind, "categories").build(categories, given)
    return made


def _entry(kind: str, takes: str) -> MechanismEntry:
    known = [entry.kind for entry in ENTRIES if entry.takes == takes]
    if kind not in known:
        raise ParameterError(f"kind must be one of {', '.join(known)}; got {kind!r}.")
    return BY_KIND[kind]


def is_by_distance(mechanism: Mechanism | NominalMechanism) -> bool:
    """Return whether a mechanism protects near values more than far ones; True without an entry."""
    entries = (_BY_CLASS[c] for c in type(mechanism).__mro__ if c in _BY_CLASS)
    return next((entry.by_distance for entry in entries), True)


def title_of(mechanism: Mechanism | NominalMechanism) -> str:
    """Return a mechanism's name in tables and on pages; without an entry, that of its class.

    >>> title_of(ClampMap(Domain(1, 10), 0.64))
    'Clamp-map'
    """
    entry = _BY_CLASS.get(type(mechanism))
    return type(mechanism).__name__ if entry is None else entry.title


def values_of(mechanism: Mechanism | NominalMechanism) -> dict[str, Any]:
    """Return the parameters of a mechanism as plain data, without its grid or categories.

    >>> values_of(ClampMap(Domain(1, 10), 0.64))
    {'epsilon': 0.64}
    """
    return _entry_of(mechanism).values_of(mechanism)


def to_dict(mechanism: Mechanism | NominalMechanism) -> dict[str, Any]:
    """Return the mechanism as plain JSON data; refuse one without an entry.

    >>> to_dict(ClampMap(Domain(1, 10), 0.64))
    {'kind': 'ClampMap', 'grid': [1, 10], 'epsilon': 0.64}
    """
    entry = _entry_of(mechanism)
    first: dict[str, Any]
    if isinstance(mechanism, Mechanism):
        first = {"grid": [mechanism.domain.L, mechanism.domain.R]}
    else:
        first = {"categories": list(mechanism.categories)}
    return {"kind": entry.stored_name, **first, **entry.values_of(mechanism)}


def from_dict(spec: Mapping[str, Any]) -> Mechanism | NominalMechanism:
    """Return the mechanism that :func:`to_dict` described; its constructor checks parameters."""
    entry = _BY_STORED_NAME.get(spec["kind"])
    if entry is None:
        raise DataError(f"No mechanism is called {spec['kind']!r}")
    first = Domain(*spec["grid"]) if entry.takes == "grid" else spec["categories"]
    needed = [p.name for p in entry.parameters if p.default is not None or p.name in spec]
    made: Mechanism | NominalMechanism = entry.build(first, {name: spec[name] for name in needed})
    return made


def _entry_of(mechanism: Mechanism | NominalMechanism) -> MechanismEntry:
    entry = _BY_CLASS.get(type(mechanism))
    if entry is None:
        raise DataError(f"{type(mechanism).__name__} cannot be saved")
    return entry
