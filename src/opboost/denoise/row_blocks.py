"""Blocks of encoded rows: in memory, on disk, or with the workers of a cluster.

EM needs only sums over rows.  Each block's part of a step is computed where the block is.  The
blocks' sums are then added in block order, so the result does not depend on who computed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.denoise.column_pairs import Pairing
from opboost.denoise.encoded_rows import Codes, EncodedRows, Index, Table
from opboost.denoise.label_groups import Groups
from opboost.denoise.latent_classes import Mixture
from opboost.denoise.model_selection import tally
from opboost.denoise.posterior_draws import Outputs, States, drawn_rows

BLOCK_ROWS = 2**18
"""The most rows of a block on disk."""

Found = TypeVar("Found")


class RowBlocks(Protocol):
    """The rows of a table, sorted by group within each block."""

    @property
    def slices(self) -> Sequence[slice]:
        """The rows of the table that each block holds."""
        ...

    def block(self, k: int) -> EncodedRows:
        """Return one block; ``order`` counts from the block's first row."""
        ...

    def map(self, work: Callable[..., Found], *each: Iterable[Any]) -> Iterator[Found]:
        """Yield ``work(rows, *arguments)`` for each block, in the order of the blocks.

        Work and arguments may be sent to another process, so both must be picklable.
        """
        ...

    def where(self, keep: BoolArray) -> EncodedRows:
        """Bring the marked rows of the table into memory."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowsInMemory:
    """All rows as one block."""

    rows: EncodedRows

    @property
    def slices(self) -> Sequence[slice]:
        """One slice: the whole table."""
        return [slice(0, len(self.rows))]

    def block(self, k: int) -> EncodedRows:
        """Return all rows."""
        return self.rows

    def map(self, work: Callable[..., Found], *each: Iterable[Any]) -> Iterator[Found]:
        """Call ``work`` on the only block."""
        return map(work, [self.rows], *each)

    def where(self, keep: BoolArray) -> EncodedRows:
        """Return the marked rows."""
        return self.rows.where(keep)


class CutBlocks:
    """Rows cut into blocks of at most ``BLOCK_ROWS``."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.slices = block_slices(len(groups.of))

    def block(self, k: int) -> EncodedRows:
        """Return one block; ``order`` counts from the block's first row."""
        raise NotImplementedError

    def map(self, work: Callable[..., Found], *each: Iterable[Any]) -> Iterator[Found]:
        """Call ``work`` on one block after another; only one is in memory at a time."""
        return map(work, map(self.block, range(len(self.slices))), *each)

    def where(self, keep: BoolArray) -> EncodedRows:
        """Collect rows from all blocks; ``order`` refers to the whole table."""
        kept = [k for k, here in enumerate(self.slices) if keep[here].any()]
        parts = [self.block(k).where(keep[self.slices[k]]) for k in kept]
        place = [part.order + self.slices[k].start for k, part in zip(kept, parts, strict=True)]
        weight = np.concatenate([part.weight for part in parts])
        found = EncodedRows.of(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.bits for part in parts]),
            np.concatenate([_group_of_rows(part) for part in parts]),
            self.groups.count,
            weight if len(weight) else None,
        )
        return replace(found, order=np.concatenate(place)[found.order])


class CutRows(CutBlocks):
    """Rows in memory, in blocks that can be sent to workers."""

    def __init__(self, codes: Codes, bits: Codes, groups: Groups) -> None:
        super().__init__(groups)
        self._codes, self._bits = codes, bits

    def block(self, k: int) -> EncodedRows:
        """Sort one block by group."""
        here, groups = self.slices[k], self.groups
        weight = None if groups.weight is None else groups.weight[here]
        codes, bits = self._codes[here], self._bits[here]
        return EncodedRows.of(codes, bits, groups.of[here], groups.count, weight)


class StoredBlocks(CutBlocks):
    """Rows in files of a folder, two files per block.

    Groups and weights stay in memory: at most one byte per row if weights are equal and there are
    fewer than 256 groups.
    """

    def __init__(self, folder: Path, groups: Groups) -> None:
        super().__init__(groups)
        self.folder = folder

    @classmethod
    def write(
        cls, folder: Path, read: Callable[[slice], Outputs], pairs: Pairing, groups: Groups
    ) -> StoredBlocks:
        """Encode the rows and write them, one block at a time."""
        made = cls(folder, groups)
        for k, here in enumerate(made.slices):
            outputs = read(here)
            order = np.argsort(groups.of[here], kind="stable")
            np.save(made._file(k, "codes"), pairs.paired(outputs.codes)[order])
            np.save(made._file(k, "bits"), outputs.bits[order])
        return made

    def block(self, k: int) -> EncodedRows:
        """Read one block."""
        here, groups = self.slices[k], self.groups
        group = groups.of[here]
        order = np.argsort(group, kind="stable")
        codes, bits = np.load(self._file(k, "codes")), np.load(self._file(k, "bits"))
        weight = None if groups.weight is None else groups.weight[here]
        return EncodedRows.in_order(codes, bits, order, group, groups.count, weight)

    def _file(self, k: int, what: str) -> Path:
        return self.folder / f"block-{k:05d}-{what}.npy"


Spread = Callable[[CutBlocks], AbstractContextManager[RowBlocks]]
"""A function that gives blocks to workers for as long as the context lasts."""


def kept_here(blocks: CutBlocks) -> AbstractContextManager[RowBlocks]:
    """Return the blocks themselves: this process does all the work."""
    return nullcontext(blocks)


def block_slices(rows: int) -> list[slice]:
    """Return the rows of each block of a table."""
    return [slice(a, min(a + BLOCK_ROWS, rows)) for a in range(0, rows, BLOCK_ROWS)]


def _group_of_rows(rows: EncodedRows) -> IntArray:
    return np.repeat(rows.units[:, 0], rows.units[:, 2] - rows.units[:, 1])


def fold_tallies(blocks: RowBlocks, fold: Codes, folds: int, index: Index) -> list[Table]:
    """Tally the outputs of each fold: one pass over the rows."""
    whole: Any = None
    work = partial(_fold_tallies, folds, index)
    for found in blocks.map(work, (fold[here] for here in blocks.slices)):
        whole = found if whole is None else whole + found
    return list(whole)


def _fold_tallies(folds: int, index: Index, rows: EncodedRows, fold: Codes) -> Table:
    return np.stack([tally(rows.where(fold == f), index) for f in range(folds)])


def sent_cells(blocks: RowBlocks, index: Index) -> float:
    """Return the mean number of columns sent per row, not counting unary ones."""
    if not (index.unsent >= 0).any():
        return float(len(index.offsets))
    sent = sum(blocks.map(partial(_sent_cells, index.unsent)))
    return float(sent / max(1, blocks.slices[-1].stop))


def _sent_cells(unsent: IntArray, rows: EncodedRows) -> int:
    return int((rows.codes != unsent).sum())


def stepped(bank: Mixture, blocks: RowBlocks, inner: int) -> Mixture:
    """Take one step of EM: one pass over the rows, then the M-step on its sums."""
    sums: tuple[Any, ...] | None = None
    for found in blocks.map(bank.expected):
        if sums is None:
            sums = found
        else:
            sums = tuple(a.astype(np.float64) + b for a, b in zip(sums, found, strict=True))
    assert sums is not None
    counts, sizes = (np.asarray(s, dtype=np.float32) for s in sums)
    return bank.fitted(counts, sizes, inner)


def block_draws(
    blocks: RowBlocks, member: Mixture, pairs: Pairing, number: int, seed: int
) -> Iterator[States]:
    """Draw clean rows given their outputs and labels, block by block.

    A row's draw depends on its position in the table, the number and the seed, not on the blocks.
    """
    work = partial(_drawn_block, member, pairs, number, seed)
    return blocks.map(work, [here.start for here in blocks.slices])


def _drawn_block(
    member: Mixture, pairs: Pairing, number: int, seed: int, rows: EncodedRows, first: int
) -> States:
    tokens = np.arange(first, first + len(rows), dtype=np.uint64)
    return drawn_rows(rows, member, pairs, number, seed, tokens)
