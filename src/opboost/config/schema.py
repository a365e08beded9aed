"""Read a schema in any of the forms in which a user of the library may give it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opboost.columns.private_column import PrivateColumn
from opboost.config import BoosterSection, Plan, load
from opboost.errors import ParameterError


def plan_of(schema: Plan | str | Path | Sequence[PrivateColumn]) -> Plan:
    """Return the plan of a schema: a plan itself, a TOML file, or private columns."""
    if isinstance(schema, Plan):
        return schema
    if isinstance(schema, str | Path):
        return load(Path(schema))
    columns = tuple(schema)
    if not columns or not all(isinstance(c, PrivateColumn) for c in columns):
        raise ParameterError("A schema is a TOML file, its plan, or op.PrivateColumn values.")
    names = tuple(str(c.name) for c in columns)
    return Plan("schema", columns, (), (), None, BoosterSection(), names)
