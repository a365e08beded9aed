"""A file in, a desensitised file out, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opboost.columns import PrivateColumn
from opboost.config import Plan
from opboost.errors import DataError
from opboost.files.reading import column_names, csv_types, kind_of, pieces, table_files
from opboost.files.writing import TableWriter, appearing
from opboost.frames import OutColumn, hidden, rebuild
from opboost.rng import Rng, SeededRng


@dataclass(frozen=True, slots=True)
class Summary:
    """What was done; ``outside`` describes the data and stays local."""

    files: int
    rows: int
    outside: dict[str, int]


def desensitize(
    source: Path,
    plan: Plan,
    target: Path,
    *,
    rng: Rng | None = None,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Desensitise a file, or every file of a folder, into ``target``.

    Columns of a piece are drawn in parallel.  The target appears when it is whole.
    """
    files = table_files(source)
    folder = source.is_dir()
    if not folder:
        kind_of(target)
    for file in files:
        plan.check_names(column_names(file))
    counts = dict.fromkeys((str(c.name) for c in plan.private), 0)
    rows = used = 0
    width = sum(len(c.release_names()) for c in plan.private) + len(plan.public)
    with appearing(target, folder=folder) as partial, ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, file in enumerate(files):
            place, name = (partial / file.name, file.name) if folder else (partial, target.name)
            own = rng.child(number) if isinstance(rng, SeededRng) else rng
            seen = 0
            with TableWriter(place, name) as writer:
                report = (lambda n, base=used: progress(base + n)) if progress else None
                for piece in pieces(file, csv_types(plan.private), report, width):
                    writer.write(_released(piece, plan, own, seen, pool, counts))
                    seen += piece.num_rows
            if not seen:
                raise DataError(f"{file.name} has no rows")
            rows += seen
            used += file.stat().st_size
    return Summary(len(files), rows, counts)


def _released(
    piece: pa.Table,
    plan: Plan,
    rng: Rng | None,
    start: int,
    pool: ThreadPoolExecutor,
    counts: dict[str, int],
) -> pa.Table:
    own = rng.child(start) if isinstance(rng, SeededRng) else rng

    def one(column: PrivateColumn) -> tuple[list[OutColumn], int]:
        prepared = column.prepare(piece, start)
        return column.release(prepared, own), prepared.outside

    chosen = None
    if plan.budget is not None and plan.budget.columns_per_row is not None:
        chosen = plan.budget.drawn(piece.num_rows, len(plan.private), own)
    out: dict[str, list[OutColumn]] = {}
    for j, (column, (columns, outside)) in enumerate(
        zip(plan.private, pool.map(one, plan.private), strict=True)
    ):
        counts[str(column.name)] += outside
        if chosen is not None:
            columns = [hidden(c, ~chosen[:, j]) for c in columns]
        out[str(column.name)] = columns
    order: list[OutColumn | Hashable] = []
    for name in piece.column_names:
        if name in out:
            order += out[name]
        elif name in plan.public:
            order.append(name)
    return _fixed_types(rebuild(piece, order), out)


def _fixed_types(table: pa.Table, out: dict[str, list[OutColumn]]) -> pa.Table:
    """Give every piece the same narrow types, whether or not it happens to hold gaps."""
    for columns in out.values():
        for column in columns:
            kind = pa.from_numpy_dtype(column.values.dtype)
            index = table.schema.get_field_index(str(column.name))
            cast = table.column(index).cast(kind)
            table = table.set_column(index, str(column.name), cast)
    return table
