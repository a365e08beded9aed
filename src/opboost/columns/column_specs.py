"""Private columns as plain data (JSON) and back, for saved estimators and messages.

Nothing is unpickled or evaluated: a class is looked up in a list, and its own constructor checks
the parameters.
"""

from __future__ import annotations

from typing import Any

from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import DataError, OpBoostError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping
from opboost.mechanisms import registry


def column_to_dict(column: PrivateColumn) -> dict[str, Any]:
    """Return a private column as plain JSON data."""
    return {
        "name": column.name,
        "mapping": _mapping_to_dict(column.mapping),
        "mechanism": registry.to_dict(column.mechanism),
        "outside": column.outside,
        "missing": _missing_to_dict(column.missing),
    }


def declared_difference(column: PrivateColumn, known: PrivateColumn) -> tuple[str, str, str] | None:
    """Return the first declared part that differs: its name, its value here and the known value.

    >>> import opboost as op
    >>> grid = op.Domain(1, 10)
    >>> age = op.PrivateColumn("age", op.NumericMapping(grid, (0, 99)), op.ClampMap(grid, 0.5))
    >>> again = op.PrivateColumn("age", op.NumericMapping(grid, (0, 99)), op.ClampMap(grid, 1.0))
    >>> declared_difference(again, age)[0], declared_difference(age, age)
    ('mechanism', None)
    """
    here, there = column_to_dict(column), column_to_dict(known)
    for part in ("mechanism", "mapping", "missing"):
        if part == "missing":
            differs = column.flagged() != known.flagged()
        else:  # a NaN category does not equal itself
            own, other = _described(here[part]), _described(there[part])
            differs = here[part] != there[part] and own != other
        if differs:
            return part, _described(here[part]), _described(there[part])
    return None


def _described(spec: Any) -> str:
    if not isinstance(spec, dict):
        return "none"
    return ", ".join(f"{key} {value}" for key, value in spec.items())


def column_from_dict(spec: dict[str, Any]) -> PrivateColumn:
    """Return the private column that a dict describes; refuse a bad one."""
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
    spec = {"grid": grid, "bounds": bounds, "scale": scale, "mapping": mapping.mapping}
    return spec if mapping.unit is None else {**spec, "unit": mapping.unit}


def _mapping_from_dict(spec: dict[str, Any] | None) -> NumericMapping | OrdinalMapping | None:
    if spec is None:
        return None
    grid = Domain(*spec["grid"])
    if "order" in spec:
        return OrdinalMapping(grid, Ordered(spec["order"]))
    scale: Any = spec["scale"] if isinstance(spec["scale"], str) else tuple(spec["scale"])
    return NumericMapping(grid, tuple(spec["bounds"]), scale, spec["mapping"], spec.get("unit"))


def _missing_to_dict(missing: Any) -> dict[str, Any]:
    if isinstance(missing, Flag):
        return {"policy": "flag", "eps_missing": missing.eps_missing, "constant": missing.constant}
    if isinstance(missing, str) and missing in ("raise", "symbol"):
        return {"policy": missing}
    return {"policy": "constant", "constant": missing}


def _missing_from_dict(spec: dict[str, Any]) -> Any:
    if spec["policy"] in ("raise", "symbol"):
        return spec["policy"]
    if spec["policy"] == "flag":
        return Flag(spec["eps_missing"], spec["constant"])
    return spec["constant"]
