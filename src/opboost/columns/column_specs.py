"""Private columns as plain data (JSON) and back: what a saved estimator and a wire need.

No pickle and no evaluation of text: a class is looked up in a list, its parameters are checked by
its own constructor.
"""

from __future__ import annotations

from typing import Any

from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import DataError, OpBoostError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping
from opboost.mechanisms import registry


def column_to_dict(column: PrivateColumn) -> dict[str, Any]:
    """A private column as JSON can hold it."""
    return {
        "name": column.name,
        "mapping": _mapping_to_dict(column.mapping),
        "mechanism": registry.to_dict(column.mechanism),
        "outside": column.outside,
        "missing": _missing_to_dict(column.missing),
    }


def column_from_dict(spec: dict[str, Any]) -> PrivateColumn:
    """The private column that a dict describes; a bad one is refused."""
    try:
        return PrivateColumn(
            spec["name"],
            _mapping_from_dict(spec["mapping"]),
            registry.from_dict(spec["mechanism"]),
            spec["outside"],
            _missing_from_dict(spec["missing"]),
        )
    except OpBoostError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"A column's description cannot be read: {error!r}") from None


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
    grid = Domain(*spec["grid"])
    if "order" in spec:
        return OrdinalMapping(grid, Ordered(spec["order"]))
    scale: Any = spec["scale"] if isinstance(spec["scale"], str) else tuple(spec["scale"])
    return NumericMapping(grid, tuple(spec["bounds"]), scale, spec["mapping"])


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
