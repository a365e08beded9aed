"""The columns that a release draws: their identity, and the charge for a draw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isinf
from typing import Any

from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.ledger.lookup import Wanted
from opboost.ledger.packed_draws import width_of
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON


def wanted_columns(
    columns: Sequence[PrivateColumn], attributes: Sequence[str], *, draws_here: bool
) -> list[Wanted]:
    """Return the columns of a release; without ``draws_here``, a stored release keeps the draws."""
    return [
        Wanted(a, identity(c), _amount(c), width_of(c) if draws_here else 0)
        for a, c in zip(attributes, columns, strict=True)
    ]


def identity(column: PrivateColumn) -> str:
    """Return a digest of all that a draw depends on, except the cell: mechanism, grid, mapping."""
    spec = column_to_dict(column)
    kept = ["mapping", "mechanism", *(["missing"] if column.flagged() is not None else [])]
    plain = _spelt_alike({name: spec[name] for name in kept})
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _spelt_alike(value: Any) -> Any:
    """Return the same data with one spelling of numbers: 50.0 is 50."""
    if isinstance(value, dict):
        return {k: _spelt_alike(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_spelt_alike(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _amount(column: PrivateColumn) -> int:
    total = column.guarantee().total
    return UNBOUNDED if isinf(total) else ceil(decimal(total) * UNITS_PER_EPSILON)


def decimal(level: float) -> Fraction:
    """Return a level as people write it: 5.76 is 576/100, so that it fits a cap of 5.76."""
    return Fraction(repr(float(level)))
