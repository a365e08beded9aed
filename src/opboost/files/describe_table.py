"""Describe the columns of a table, and say what must still be declared about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from opboost.budgets.planning_rule import MAX_INTEGER_CELLS
from opboost.columns.date_columns import times
from opboost.config import Plan
from opboost.config.columns_file import ColumnsConfig
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.config.toml_text import toml_text
from opboost.files.read_tables import column_names, kind_of, pieces, table_files, with_points
from opboost.sources.table_address import TableAddress

MAX_LISTED_VALUES = MAX_INTEGER_CELLS
"""A column with at most this many distinct values may hold categories; whole numbers can then
have one cell per value."""

ID_CHECK_ROWS = 100_000
"""The number of first rows that decide whether a column holds IDs."""


_ID_NAME = re.compile(
    r"(?i:(^|[^a-z])(id|key|uuid|guid)([^a-z]|$)|^(customer|client|patient|person|user)$)"
    r"|[a-z]I[dD]$"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]|$)")


@dataclass(frozen=True, slots=True)
class ColumnLook:
    """A description of one column, without its extremes: bounds are declared, never measured."""

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int | None
    declared: str
    tells_apart: bool = False
    """Whether no value occurs twice in the first rows, as in a column of IDs."""

    @property
    def next_step(self) -> str:
        """What to add to the configuration if nothing is declared yet."""
        if self.declared:
            return ""
        if self.looks_like_id:
            return f"[align] id = {toml_text(self.name)}"
        if self.kind == "text" and self.distinct is None:
            return 'text with many values: [table] drop = ["..."]'
        gaps = 'missing = "symbol" under a record budget, ' if self.missing else ""
        return gaps + self._declaration()

    @property
    def looks_like_id(self) -> bool:
        """Whether the column identifies rows, and is text or has the name of an ID."""
        return self.tells_apart and (self.kind == "text" or self.named_like_id)

    @property
    def named_like_id(self) -> bool:
        """Whether the name is typical of ID columns."""
        return _ID_NAME.search(self.name) is not None

    def _declaration(self) -> str:
        if self.kind == "text":
            return "categories = [...]"
        if self.kind == "whole number" and self.distinct is not None:
            return "bounds = [lower, upper], integers = true"
        if self.kind == "date":
            return "bounds = [1990-01-01, 2025-12-31]"
        return "bounds = [lower, upper]"


def describe(
    source: TableAddress, roles: Mapping[str, str] | None = None, form: CsvFormat = PLAIN_CSV
) -> list[ColumnLook]:
    """Return a description of each column, from one pass in bounded memory.

    ``roles`` says what is declared about the columns.
    """
    looks: dict[str, _Look] = {}
    for file in table_files(source):
        written = form if kind_of(file) == "csv" else None
        for name in column_names(file, form):
            looks.setdefault(name, _Look())
        for piece in pieces(file, form=form):
            for name in piece.column_names:
                looks[name].add(piece.column(name), written)
    return [look.result(name, (roles or {}).get(name, "")) for name, look in looks.items()]


class _Look:
    def __init__(self) -> None:
        self.rows = self.missing = 0
        self.kinds: set[str] = set()
        self.values: set[object] | None = set()
        self.ids: set[object] | None = set()

    def add(self, column: pa.ChunkedArray, written: CsvFormat | None) -> None:
        self._look_for_ids(column)
        self.rows += len(column)
        self.missing += column.null_count
        if written is not None:
            column, kind = parsed(column, written)
        else:
            kind = _kind(column.type)
        if kind:
            self.kinds.add(kind)
        if pa.types.is_nested(column.type):
            self.values = None
        if self.values is not None:
            try:
                self.values |= set(pc.unique(column).to_pylist()) - {None}
            except (OverflowError, ValueError):  # dates outside Python's calendar
                self.values = None
        if self.values is not None and len(self.values) > MAX_LISTED_VALUES:
            self.values = None

    def _look_for_ids(self, column: pa.ChunkedArray) -> None:
        """Collect the values of the first rows as long as none occurs twice."""
        if self.ids is None or self.rows >= ID_CHECK_ROWS:
            return
        kind = column.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        first = column.slice(0, ID_CHECK_ROWS - self.rows)
        if column.null_count or not (text or pa.types.is_integer(kind)):
            self.ids = None
            return
        known = len(self.ids)
        self.ids.update(first.to_pylist())
        if len(self.ids) < known + len(first):
            self.ids = None

    def result(self, name: str, declared: str) -> ColumnLook:
        order = ("text", "date", "number", "whole number", "true/false")
        kind = next((k for k in order if k in self.kinds), "empty")
        distinct = None if self.values is None else len(self.values)
        tells_apart = self.rows > 1 and self.ids is not None and not self.missing
        tells_apart = tells_apart and kind in ("text", "whole number")
        return ColumnLook(name, kind, self.rows, self.missing, distinct, declared, tells_apart)


def parsed(column: pa.ChunkedArray, form: CsvFormat = PLAIN_CSV) -> tuple[pa.ChunkedArray, str]:
    """Return a CSV column with the type that it seems to have, and the name of that type."""
    if column.null_count == len(column):
        return column, ""
    for kind, name in ((pa.int64(), "whole number"), (pa.float64(), "number")):
        try:
            return with_points(column, form).cast(kind), name
        except pa.ArrowInvalid:
            continue
    if _begins_as_date(column):
        try:
            return times(column), "date"
        except pa.ArrowInvalid:
            pass
    return column, "text"


def _begins_as_date(column: pa.ChunkedArray) -> bool:
    first = next((v.as_py() for v in column if v.is_valid), "")
    return isinstance(first, str) and _DATE.match(first) is not None


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


def roles(plan: Plan) -> dict[str, str]:
    """Return what a plan says about each column that it names."""
    others = dict.fromkeys(plan.public, "public") | dict.fromkeys(plan.drop, "dropped")
    if plan.record is None:
        return others | {str(c.name): c.guarantee().brief for c in plan.private}
    return others | {
        str(line.name): f"{line.mechanism}, {line.cells} cells, {line.level:.4g} if sent, "
        f"for {line.sent_for}"
        for line in plan.record.lines
    }


def label_roles(config: ColumnsConfig, names: Iterable[str]) -> dict[str, str]:
    """Return what a label party's file says about each column of its table."""
    own = dict.fromkeys(names, "own, stays here")
    dropped = dict.fromkeys(config.table.drop, "dropped")
    label = {} if config.label is None else {config.label.column: "label"}
    return own | dropped | dict.fromkeys(config.align.ids(), "ID, stays here") | label
