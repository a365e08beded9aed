"""Remove what a release in parts holds about forgotten people, before anybody is charged.

Workers do not know the ledger's key, so they cannot tell who is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost._typing import BoolArray
from opboost.files.read_tables import pieces
from opboost.files.write_tables import TableWriter
from opboost.scale import release_secret
from opboost.scale.part_writer import check_part, part_path, read_receipt, write_receipt
from opboost.scale.release_secret import RECEIPT, remake
from opboost.storage import atomic_files

Gone = Callable[[pa.LargeBinaryArray], BoolArray]
"""A function from IDs to a mask of those that belong to forgotten people."""


def hide(folder: Path, number: int, columns: Sequence[str], gone: Gone) -> int:
    """Remove the values of some columns in rows of forgotten people; return the number of rows.

    While a part is rewritten, it has no receipt: after a kill, the next run makes it again.
    """
    receipt = read_receipt(folder, number)
    if receipt is None or not receipt.rows:
        return 0
    people = release_secret.people_of(folder, number, release_secret.read_secret(folder))
    rows = np.concatenate([gone(ids) for ids in people])
    path = part_path(folder, number)
    if len(rows) != receipt.rows:
        raise atomic_files.damaged(
            folder / release_secret.PEOPLE.format(number), remake(folder, number)
        )
    if not rows.any() or _is_hidden(path, columns, rows):
        return int(rows.sum())
    check_part(folder, number, receipt)
    (folder / RECEIPT.format(number)).unlink()
    atomic_files.flush(folder)
    with atomic_files.placing(path) as place, TableWriter(place, path.name) as writer:
        for piece, here in _beside(pieces(path), rows):
            writer.write(_hidden(piece, columns, here))
    write_receipt(folder, number, receipt.rows, receipt.outside)
    return int(rows.sum())


def _beside(parts: Iterator[pa.Table], rows: BoolArray) -> Iterator[tuple[pa.Table, BoolArray]]:
    start = 0
    for piece in parts:
        yield piece, rows[start : start + piece.num_rows]
        start += piece.num_rows


def _is_hidden(path: Path, columns: Sequence[str], rows: BoolArray) -> bool:
    for piece, here in _beside(pieces(path, columns=columns), rows):
        found = piece.filter(pa.array(here))
        if any(column.null_count < len(column) for column in found.columns):
            return False
    return True


def _hidden(piece: pa.Table, columns: Sequence[str], rows: BoolArray) -> pa.Table:
    for name in columns:
        index = piece.schema.get_field_index(name)
        kind = piece.schema.field(index).type
        kept = pc.if_else(pa.array(rows), pa.scalar(None, kind), piece.column(index))
        piece = piece.set_column(index, name, kept)
    return piece
