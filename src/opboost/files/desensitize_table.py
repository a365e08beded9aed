"""Desensitise files in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opboost.budgets.budget import cell_words, check_no_pilot, columns_sent
from opboost.columns.dataframes import OutColumn, only_sent, rebuild
from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import id_array
from opboost.config import Plan
from opboost.errors import DataError
from opboost.files.read_tables import (
    column_names,
    csv_types,
    is_single,
    kind_of,
    pieces,
    size_of,
    table_files,
)
from opboost.files.whole_table import no_rows
from opboost.files.write_tables import TableWriter, appearing
from opboost.ledger import Drawing
from opboost.randomness.streams import Rng, SeededRng
from opboost.sources.table_address import TableAddress


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run; ``outside`` describes the data and stays local."""

    files: int
    rows: int
    outside: dict[str, int]


def desensitize(
    source: TableAddress,
    plan: Plan,
    target: Path,
    *,
    rng: Rng | None = None,
    progress: Callable[[int], None] | None = None,
    drawing: Drawing | None = None,
    ids: Sequence[str] = (),
) -> Summary:
    """Desensitise a table, or every file of a folder or pattern, into ``target``.

    Columns of a piece are drawn in parallel.  The target appears when it is complete.  With a
    ``drawing``, the ledger draws the noise for the people whom the columns ``ids`` identify, and
    records the release before the target appears.
    """
    check_no_pilot(plan.budget, "and a file has none")
    files = table_files(source)
    folder = not is_single(source)
    if not folder:
        kind_of(target)
    elif len({f.name for f in files}) < len(files):
        raise DataError(
            f"Two of the {len(files)} files have the same name",
            hint="Each becomes a file of the target under its name: desensitise them one by one.",
        )
    for file in files:
        plan.check_names(column_names(file, plan.data))
    counts = dict.fromkeys((str(c.name) for c in plan.private), 0)
    rows = used = 0
    width = sum(len(c.release_names()) for c in plan.private) + len(plan.public)
    with (
        appearing(target, folder=folder) as partial,
        drawing or nullcontext(),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        draw = _ledger_draw(plan, drawing, ids) if drawing else None
        for number, file in enumerate(files):
            place, name = (partial / file.name, file.name) if folder else (partial, target.name)
            own = rng.child(number) if isinstance(rng, SeededRng) else rng
            seen = 0
            with TableWriter(place, name) as writer:
                report = (lambda n, base=used: progress(base + n)) if progress else None
                for piece in pieces(file, csv_types(plan.private), report, width, form=plan.data):
                    fresh = draw or _fresh_draw(plan, own, pool)
                    writer.write(released(piece, plan, fresh, seen, counts))
                    seen += piece.num_rows
            if not seen:
                raise no_rows(file)
            rows += seen
            used += size_of(file)
    return Summary(len(files), rows, counts)


Draw = Callable[[pa.Table, int], tuple[list[list[OutColumn]], list[int]]]
"""A function from a piece and its first row's number to released columns and outside counts.
"""


def _ledger_draw(plan: Plan, drawing: Drawing, ids: Sequence[str]) -> Draw:
    """Return a function that takes each cell's noise from the ledger, which draws it once."""

    def draw(piece: pa.Table, start: int) -> tuple[list[list[OutColumn]], list[int]]:
        prepared = [c.prepare(piece, start) for c in plan.private]
        people = id_array(piece, ids, start, drawing.spelling)
        return drawing.draw(people, prepared), [p.outside for p in prepared]

    return draw


def _fresh_draw(plan: Plan, rng: Rng | None, pool: ThreadPoolExecutor) -> Draw:
    """Return a function that draws fresh noise without recording it."""

    def draw(piece: pa.Table, start: int) -> tuple[list[list[OutColumn]], list[int]]:
        own = rng.child(start) if isinstance(rng, SeededRng) else rng

        def one(column: PrivateColumn) -> tuple[list[OutColumn], int]:
            prepared = column.prepare(piece, start)
            return column.release(prepared, own), prepared.outside

        rows, width = piece.num_rows, len(plan.private)
        names = [c.name for c in plan.private]
        sent = columns_sent(plan.budget, lambda: cell_words(rows, width, own), names)
        made = list(pool.map(one, plan.private))
        columns = [only_sent(out, sent, place) for place, (out, _) in enumerate(made)]
        return columns, [outside for _, outside in made]

    return draw


def released(
    piece: pa.Table, plan: Plan, draw: Draw, start: int, counts: dict[str, int]
) -> pa.Table:
    """Return the piece with its private columns desensitised and undeclared ones removed."""
    columns, outside = draw(piece, start)
    out: dict[str, list[OutColumn]] = {}
    for column, released, beyond in zip(plan.private, columns, outside, strict=True):
        counts[str(column.name)] += beyond
        out[str(column.name)] = released
    order: list[OutColumn | Hashable] = []
    for name in piece.column_names:
        if name in out:
            order += out[name]
        elif name in plan.public:
            order.append(name)
    return _fixed_types(rebuild(piece, order), out)


def _fixed_types(table: pa.Table, out: dict[str, list[OutColumn]]) -> pa.Table:
    """Return the piece with the types of the drawn values, whether or not it has missing values."""
    for columns in out.values():
        for column in columns:
            kind = pa.from_numpy_dtype(column.values.dtype)
            index = table.schema.get_field_index(str(column.name))
            cast = table.column(index).cast(kind)
            table = table.set_column(index, str(column.name), cast)
    return table
