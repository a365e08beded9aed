"""What columns a table has, and what is still to be declared about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from opboost.config import Plan
from opboost.files.read_tables import kind_of, pieces, table_files

MAX_LISTED_VALUES = 20
"""A column with at most so many distinct values may be one of categories."""


@dataclass(frozen=True, slots=True)
class ColumnLook:
    """One column; smallest and largest values are left out on purpose: bounds are declared."""

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int | None
    declared: str

    @property
    def next_step(self) -> str:
        """What to write into the configuration, where nothing is declared yet."""
        if self.declared:
            return ""
        if self.kind == "text":
            if self.distinct is None:
                return 'text with many values: [table] drop = ["..."]'
            return "categories = [...]"
        return "bounds = [lower, upper]"


def describe(source: Path, plan: Plan | None = None) -> list[ColumnLook]:
    """Look at a table once, in bounded memory."""
    looks: dict[str, _Look] = {}
    for file in table_files(source):
        for piece in pieces(file):
            for name in piece.column_names:
                looks.setdefault(name, _Look()).add(piece.column(name), kind_of(file) == "csv")
    roles = _roles(plan) if plan else {}
    return [look.result(name, roles.get(name, "")) for name, look in looks.items()]


class _Look:
    def __init__(self) -> None:
        self.rows = self.missing = 0
        self.kinds: set[str] = set()
        self.values: set[object] | None = set()

    def add(self, column: pa.ChunkedArray, text: bool) -> None:
        self.rows += len(column)
        self.missing += column.null_count
        if text:
            column, kind = parsed(column)
        else:
            kind = _kind(column.type)
        if kind:
            self.kinds.add(kind)
        if pa.types.is_nested(column.type):
            self.values = None
        if self.values is not None:
            try:
                self.values |= set(pc.unique(column).to_pylist()) - {None}
            except (OverflowError, ValueError):  # dates that no calendar of Python's has
                self.values = None
        if self.values is not None and len(self.values) > MAX_LISTED_VALUES:
            self.values = None

    def result(self, name: str, declared: str) -> ColumnLook:
        order = ("text", "date", "number", "whole number", "true/false")
        kind = next((k for k in order if k in self.kinds), "empty")
        distinct = None if self.values is None else len(self.values)
        return ColumnLook(name, kind, self.rows, self.missing, distinct, declared)


def parsed(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str]:
    """A CSV column as what it looks like."""
    if column.null_count == len(column):
        return column, ""
    for kind, name in ((pa.int64(), "whole number"), (pa.float64(), "number")):
        try:
            return column.cast(kind), name
        except pa.ArrowInvalid:
            continue
    return column, "text"


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true/false"
    if pa.types.is_integer(kind):
        return "whole number"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "date"
    return "text"


def _roles(plan: Plan) -> dict[str, str]:
    roles = dict.fromkeys(plan.public, "public") | dict.fromkeys(plan.drop, "dropped")
    return roles | {str(c.name): c.guarantee().brief for c in plan.private}
