"""Posterior draws in files, written block by block next to the codes that they replace."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from opboost._typing import BoolArray
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.denoise import States
from opboost.storage import atomic_files
from opboost.training.clean_states import StateCoding
from opboost.training.stored_rows import StoredRows


@dataclass(frozen=True, slots=True, eq=False)
class DrawnColumn:
    """One draw of a column, in a plain file of codes; the code after the last one marks a gap."""

    file: Path
    kind: np.dtype[Any]
    grid: Codebook
    occurs: BoolArray
    """Which codes occur in any draw; the others are left out when rows are read."""

    @property
    def book(self) -> Codebook:
        """The values that occur."""
        kept = self.occurs[: len(self.grid)]
        return Codebook(self.grid.values[kept]) if kept.any() else self.grid

    def rows(self, rows: slice) -> CodedColumn:
        """Return some rows of the column."""
        count = rows.stop - rows.start
        codes = np.fromfile(self.file, self.kind, count, offset=rows.start * self.kind.itemsize)
        if len(codes) != count:
            raise atomic_files.damaged(self.file, "Run it again: it makes new draws.")
        kept = self.occurs[: len(self.grid)]
        rank = np.append(np.maximum(np.cumsum(kept) - 1, 0), 0)
        rank = rank.astype(np.min_scalar_type(len(self.grid)))
        gaps = codes == len(self.grid) if self.occurs[len(self.grid)] else None
        return CodedColumn(rank[codes], self.book, gaps)


def write_draws(
    rows: StoredRows, coding: StateCoding, draws: Sequence[Iterable[States]], runs: Sequence[slice]
) -> list[StoredRows]:
    """Write states drawn for runs of rows; return the rows of each draw.

    Columns that are not denoised keep the files that were received.
    """
    occurs: dict[tuple[Hashable, int], BoolArray] = {}
    made = [_write_draw(rows, coding, draw, runs, k, occurs) for k, draw in enumerate(draws)]
    return [replace(rows, stored={**rows.stored, **drawn}) for drawn in made]


def _write_draw(
    rows: StoredRows,
    coding: StateCoding,
    draw: Iterable[States],
    runs: Sequence[slice],
    number: int,
    occurs: dict[tuple[Hashable, int], BoolArray],
) -> dict[Hashable, list[DrawnColumn]]:
    found: dict[Hashable, list[DrawnColumn]] = {}
    with ExitStack() as stack:
        files: dict[Path, BinaryIO] = {}
        for here, states in zip(runs, draw, strict=True):
            clean = coding.clean(rows.release(here), [states])
            for place in coding.drawn:
                name = clean[place].private.name
                parts = []
                for j, part in enumerate(clean[place].parts):
                    assert part.book is not None
                    file = rows.folder / f"draw-{number}-{place:05d}-{j:03d}.codes"
                    if file not in files:
                        files[file] = stack.enter_context(file.open("wb"))
                    size = len(part.book)
                    seen = occurs.setdefault((name, j), np.zeros(size + 1, dtype=np.bool_))
                    codes = part.codes.astype(np.min_scalar_type(size))
                    if part.missing is not None:
                        codes[part.missing] = size
                    seen[codes] = True
                    codes.tofile(files[file])
                    parts.append(DrawnColumn(file, codes.dtype, part.book, seen))
                found[name] = parts
    return found
