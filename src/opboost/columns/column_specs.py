"""Private columns as plain data (JSON) and back: what a saved estimator and a wire need.

No pickle and no evaluation of text: a class is looked up in a list, its parameters are checked by
its own constructor.
"""

from __future__ import annotations

from typing import Any

from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import DataError, OpBoostError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping
from opboost.mechanisms import (
    AdjMap,
    ClampMap,
    GlobalMap,
    LocalMap,
    Mechanism,
    Piecewise,
    RandomizedResponse,
    UnaryEncoding,
)

_PLAIN = {m.__name__: m for m in (GlobalMap, ClampMap, RandomizedResponse)}


def column_to_dict(column: PrivateColumn) -> dict[str, Any]:
    """A private column as JSON can hold it."""
    return {
        "name": column.name,
        "mapping": _mapping_to_dict(column.mapping),
        "mechanism": _mechanism_to_dict(column.mechanism),
        "outside": column.outside,
        "missing": _missing_to_dict(column.missing),
    }


def column_from_dict(spec: dict[str, Any]) -> PrivateColumn:
    """The private column that a dict describes; a bad one is refused."""
    try:
        return PrivateColumn(
            spec["name"],
            _mapping_from_dict(spec["mapping"]),
            _mechanism_from_dict(spec["mechanism"]),
            spec["outside"],
            _missing_from_dict(spec["missing"]),
        )
    except OpBoostError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"A column's description cannot be read: {error!r}") from None


def _domain(spec: list[int]) -> Domain:
    return Domain(*spec)


def _mapping_to_dict(mapping: NumericMapping | OrdinalMapping | None) -> dict[str, Any] | None:
    if mapping is None:
        return None
    grid = [mapping.domain.L, mapping.domain.R]
    if isinstance(mapping, OrdinalMapping):
        return {"grid": grid, "order": list(mapping.order.categories)}
    scale = mapping.scale if isinstance(mapping.scale, str) else list(mapping.scale)
    bounds = list(mapping.bounds)
    return {"grid": grid, "bounds": bounds, "scale": scale, "mapping": mapping.mapping}


def _mapping_from_dict(spec: dict[str, Any] | None) -> NumericMapping | OrdinalMapping | None:
    if spec is None:
        return None
    grid = _domain(spec["grid"])
    if "order" in spec:
        return OrdinalMapping(grid, Ordered(spec["order"]))
    scale: Any = spec["scale"] if isinstance(spec["scale"], str) else tuple(spec["scale"])
    return NumericMapping(grid, tuple(spec["bounds"]), scale, spec["mapping"])


def _mechanism_to_dict(m: Mechanism | UnaryEncoding) -> dict[str, Any]:
    if isinstance(m, UnaryEncoding):
        categories = list(m.categories)
        return {
            "kind": "UnaryEncoding",
            "categories": categories,
            "epsilon": m.epsilon,
            "encoding": m.kind,
        }
    spec: dict[str, Any] = {"kind": type(m).__name__, "grid": [m.domain.L, m.domain.R]}
    if isinstance(m, AdjMap):
        theta = m.theta if isinstance(m.theta, int) else list(m.theta)
        levels = {"eps_prt": m.eps_prt, "eps_ner": m.eps_ner}
        if m.calibration is not None:
            levels = {"epsilon": m.calibration[0], "alpha": m.calibration[1]}
        return {**spec, **levels, "theta": theta}
    if isinstance(m, LocalMap):
        theta = m.theta if isinstance(m.theta, int) else list(m.theta)
        return {**spec, "epsilon": m.epsilon, "theta": theta}
    if isinstance(m, Piecewise):
        return {**spec, "epsilon": m.epsilon, "clipped": m.clipped}
    if type(m).__name__ not in _PLAIN:
        raise DataError(f"{type(m).__name__} cannot be saved")
    return {**spec, "epsilon": m.epsilon}  # type: ignore[attr-defined]


def _mechanism_from_dict(spec: dict[str, Any]) -> Mechanism | UnaryEncoding:
    kind = spec["kind"]
    if kind == "UnaryEncoding":
        return UnaryEncoding(spec["categories"], spec["epsilon"], spec["encoding"])
    grid = _domain(spec["grid"])
    if kind == "AdjMap":
        levels = {k: spec[k] for k in ("epsilon", "alpha", "eps_prt", "eps_ner") if k in spec}
        return AdjMap(grid, theta=_theta(spec), **levels)
    if kind == "LocalMap":
        return LocalMap(grid, epsilon=spec["epsilon"], theta=_theta(spec))
    if kind == "Piecewise":
        return Piecewise(grid, spec["epsilon"], spec["clipped"])
    if kind not in _PLAIN:
        raise DataError(f"No mechanism is called {kind!r}")
    return _PLAIN[kind](grid, spec["epsilon"])


def _theta(spec: dict[str, Any]) -> int | tuple[int, ...]:
    theta: int | list[int] = spec["theta"]
    return theta if isinstance(theta, int) else tuple(theta)


def _missing_to_dict(missing: Any) -> dict[str, Any]:
    if isinstance(missing, Flag):
        return {"policy": "flag", "eps_missing": missing.eps_missing, "constant": missing.constant}
    if isinstance(missing, str) and missing == "raise":
        return {"policy": "raise"}
    return {"policy": "constant", "constant": missing}


def _missing_from_dict(spec: dict[str, Any]) -> Any:
    if spec["policy"] == "raise":
        return "raise"
    if spec["policy"] == "flag":
        return Flag(spec["eps_missing"], spec["constant"])
    return spec["constant"]
