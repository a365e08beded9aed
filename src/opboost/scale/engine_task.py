"""What every engine is given to do, and how a task answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from opboost.errors import OpBoostError
from opboost.scale.part_writer import PartWriter, read_receipt
from opboost.scale.table_tasks import Slice


class Work(Protocol):
    """A table cut into numbered parts, and someone to work on them."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        ...

    @property
    def source(self) -> object:
        """What tells this table from another; a release is not taken up with another one."""
        ...

    def ids(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """The ID columns of all rows, a piece at a time, read by the process that asks."""
        ...

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; one outcome each, as they get ready."""
        ...


Outcome = OpBoostError | None
"""A refusal, or nothing: it travels as a value, so that no engine's log shows what was refused."""


def attempt(block: PartWriter, number: int, tables: Callable[[], Iterable[pa.Table]]) -> Outcome:
    """Make a part on a worker, unless it is there already."""
    try:
        if read_receipt(block.folder, number) is None:
            block.write(number, tables())
    except OpBoostError as refused:
        return refused
    return None


def attempt_slice(block: PartWriter, number: int, part: Slice) -> Outcome:
    """Make a part of a table in files."""
    return attempt(block, number, lambda: part.tables(block.plan))
