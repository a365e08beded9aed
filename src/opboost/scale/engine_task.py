"""The interface of the engines, and the outcome of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from opboost.errors import OpBoostError
from opboost.scale.part_writer import PartWriter, read_receipt
from opboost.scale.table_tasks import Slice


class Work(Protocol):
    """A table cut into numbered parts, with an engine that works on them."""

    @property
    def parts(self) -> int:
        """The number of parts."""
        ...

    @property
    def source(self) -> object:
        """What identifies this table; a release is never resumed with another table."""
        ...

    def ids(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the ID columns of all rows, piece by piece, read by the calling process."""
        ...

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; yield one outcome per part, as they finish."""
        ...


Outcome = OpBoostError | None
"""A refusal or None, as a value rather than an exception, so that no engine's log shows it."""


def attempt(block: PartWriter, number: int, tables: Callable[[], Iterable[pa.Table]]) -> Outcome:
    """Make a part on a worker, unless it already exists."""
    try:
        if read_receipt(block.folder, number) is None:
            block.write(number, tables())
    except OpBoostError as refused:
        return refused
    return None


def attempt_slice(block: PartWriter, number: int, part: Slice) -> Outcome:
    """Make a part of a table in files."""
    return attempt(block, number, lambda: part.tables(block.plan))
