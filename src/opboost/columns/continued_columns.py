"""Check that a continued model gets the columns and declarations of its earlier training."""

from __future__ import annotations

from collections.abc import Sequence

from opboost.columns.column_specs import declared_difference
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError

NEXT_STEP = "Give the columns and settings of the earlier training, or train a new model."


def check_same_private(known: Sequence[PrivateColumn], came: Sequence[PrivateColumn]) -> None:
    """Refuse private columns or declarations that differ from those of the earlier model.

    >>> import opboost as op
    >>> grid = op.Domain(1, 10)
    >>> age = op.PrivateColumn("age", op.NumericMapping(grid, (0, 99)), op.ClampMap(grid, 0.5))
    >>> check_same_private([age], [age])
    >>> check_same_private([age], [])
    Traceback (most recent call last):
    opboost.errors.ColumnError: Column 'age' is private in the model that is continued. Give ...
    """
    columns = {c.name: c for c in came}
    for column in known:
        if column.name not in columns:
            raise ColumnError(
                column.name, "is private in the model that is continued", hint=NEXT_STEP
            )
    names = {c.name for c in known}
    for name in (c.name for c in came if c.name not in names):
        raise ColumnError(name, "is not private in the model that is continued", hint=NEXT_STEP)
    for column in known:
        if differs := declared_difference(columns[column.name], column):
            part, here, there = differs
            raise ColumnError(
                column.name,
                f"has a {part} that differs from the model that is continued: "
                f"{here} instead of {there}",
                hint=NEXT_STEP,
            )
