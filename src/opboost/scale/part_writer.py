"""One task of a release: turn raw rows into a stored part, with the same bytes if repeated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, Words
from opboost.budgets.budget import cell_words, columns_sent
from opboost.columns.column_specs import column_to_dict
from opboost.columns.dataframes import OutColumn, only_sent
from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import Spelling, id_array
from opboost.config import Plan
from opboost.errors import ColumnError, DataError
from opboost.files.desensitize_table import released
from opboost.files.read_tables import PIECE_CELLS
from opboost.files.write_tables import TableWriter
from opboost.randomness.per_person_rng import RowRng, row_names
from opboost.scale.release_secret import RECEIPT, RowSideFile, read_secret, remake
from opboost.storage import atomic_files

PARTS = "parts"
"""The subfolder of the release's folder that becomes the target."""

RELEASED = "part-{:05d}.parquet"


@dataclass(frozen=True, slots=True)
class PartReceipt:
    """The description of a finished part; its file is the last thing that the task writes."""

    rows: int
    sha256: str
    outside: dict[str, int]


@dataclass(frozen=True, slots=True)
class PartWriter:
    """The work of every task, as a value that is sent to a worker, without the secret.

    A worker reads the secret from the release's folder, which all workers share.  ``people`` says
    whether encrypted IDs are stored for a ledger, and ``spelling`` how the ledger spells IDs.
    """

    folder: Path
    plan: Plan
    ids: tuple[str, ...]
    people: bool
    spelling: Spelling = "exact"

    def write(self, number: int, tables: Iterable[pa.Table]) -> PartReceipt:
        """Desensitise the rows of a part and store them; a repetition writes the same bytes."""
        secret, path = read_secret(self.folder), part_path(self.folder, number)
        pieces = self._cut(tables)
        first = next(pieces, None)
        with RowSideFile(self.folder, number, secret, self.people) as aside:
            work = _Part(self, secret, aside)
            if first is None:
                path.unlink(missing_ok=True)
            else:
                with atomic_files.placing(path) as place, TableWriter(place, path.name) as writer:
                    for piece in chain([first], pieces):
                        writer.write(work.released(piece))
        return write_receipt(self.folder, number, work.rows, work.outside)

    def _cut(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield pieces of bounded size, whatever the size of a partition."""
        width = sum(len(c.release_names()) for c in self.plan.private) + len(self.plan.public)
        for table in tables:
            self.plan.check_names(table.column_names)
            check_ids(self.ids, table.column_names)
            rows = max(1024, PIECE_CELLS // max(1, width, table.num_columns))
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)

    def sent(self, secret: bytes, names: Words) -> BoolArray | None:
        """Return which columns of each row are sent; None for all.  It depends only on the row."""
        budget, rows, width = self.plan.budget, len(names), len(self.plan.private)

        def words() -> Words:
            none = np.zeros(rows, dtype=np.int64)
            purpose = ("budget", str(budget and budget.columns_per_row))
            return cell_words(rows, width, RowRng(secret, names, none, purpose))

        return columns_sent(budget, words, [c.name for c in self.plan.private])


class _Part:
    """A part while it is made: whom its rows are about, and their noise."""

    def __init__(self, block: PartWriter, secret: bytes, aside: RowSideFile) -> None:
        self._block, self._secret, self._aside = block, secret, aside
        self.outside = dict.fromkeys((str(c.name) for c in block.plan.private), 0)
        self.rows = 0

    def released(self, piece: pa.Table) -> pa.Table:
        """Desensitise the next rows and return them."""
        ids = id_array(piece, self._block.ids, spelling=self._block.spelling)
        self._names = row_names(self._secret, ids)
        self._aside.add(ids, self._names)
        out = released(piece, self._block.plan, self._draw, self.rows, self.outside)
        self.rows += piece.num_rows
        return out

    def _draw(self, piece: pa.Table, start: int) -> tuple[list[list[OutColumn]], list[int]]:
        sent = self._block.sent(self._secret, self._names)
        out, outside = [], []
        for place, column in enumerate(self._block.plan.private):
            prepared = column.prepare(piece, start)
            rng = RowRng(self._secret, self._names, column.states(prepared), purpose(column))
            out.append(only_sent(column.release(prepared, rng), sent, place))
            outside.append(prepared.outside)
        return out, outside


def check_ids(ids: Iterable[str], names: Sequence[str]) -> None:
    """Refuse a table without the columns that hold the IDs."""
    for name in ids:
        if name not in names:
            raise ColumnError(name, "should hold the IDs but is not in the table")


def part_path(folder: Path, number: int) -> Path:
    """Return where a part is stored until the release is complete."""
    return folder / PARTS / RELEASED.format(number)


def purpose(column: PrivateColumn) -> tuple[str, str]:
    """Return the part of a noise key that stands for the column: its whole declaration."""
    return "noise", _json(column_to_dict(column)).decode()


def write_receipt(folder: Path, number: int, rows: int, outside: dict[str, int]) -> PartReceipt:
    """Record that a part is stored in its current state."""
    receipt = PartReceipt(rows, _digest(part_path(folder, number), rows), outside)
    atomic_files.write(
        folder / RECEIPT.format(number), atomic_files.with_checksum(_json(asdict(receipt)))
    )
    return receipt


def read_receipt(folder: Path, number: int) -> PartReceipt | None:
    """Return the receipt of a part, or None if its task has not finished."""
    file = folder / RECEIPT.format(number)
    if not file.exists():
        return None
    found: PartReceipt = atomic_files.read_json(
        file, PartReceipt, remake(folder, number), checksum=True
    )
    return found


def check_part(folder: Path, number: int, receipt: PartReceipt) -> None:
    """Refuse a part that differs from what its task stored."""
    path = part_path(folder, number)
    if path.exists() != bool(receipt.rows) or _digest(path, receipt.rows) != receipt.sha256:
        raise DataError(
            f"{path} is damaged or missing",
            hint=remake(folder, number),
        )


def _digest(path: Path, rows: int) -> str:
    if not rows:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(plain: object) -> bytes:
    return json.dumps(plain, sort_keys=True).encode()
