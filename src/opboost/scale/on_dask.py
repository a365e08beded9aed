"""Desensitise a Dask DataFrame, or a table in files, with the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from opboost.scale.engine_task import Outcome, attempt, attempt_slice
from opboost.scale.part_writer import PartWriter, check_ids
from opboost.scale.table_tasks import Files
from opboost.sources.table_address import TableAddress


class DaskFiles(Files):
    """A table in files that every worker can read."""

    def __init__(self, table: TableAddress, client: Any) -> None:
        super().__init__(table)
        self._client = client

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; the scheduler repeats the tasks of a lost worker."""
        parts = [self.slices[n] for n in numbers]
        yield from _results(
            self._client.map(attempt_slice, [block] * len(numbers), numbers, parts, pure=False)
        )


class DaskFrame:
    """A Dask DataFrame, one part per partition."""

    def __init__(self, frame: Any, client: Any) -> None:
        self._frame, self._client = frame, client

    @property
    def parts(self) -> int:
        """The number of the DataFrame's partitions."""
        return int(self._frame.npartitions)

    @property
    def source(self) -> object:
        """The names of its columns; the caller must ensure that its rows are the same."""
        return [str(name) for name in self._frame.columns]

    def ids(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the ID columns of all rows, partition by partition."""
        check_ids(names, [str(name) for name in self._frame.columns])
        for partition in self._frame[list(names)].to_delayed():
            found = self._client.compute(partition).result()
            yield pa.Table.from_pandas(found, preserve_index=False)

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; the scheduler repeats the tasks of a lost worker."""
        from dask import delayed

        partitions = self._frame.to_delayed()
        make = delayed(_attempt_frame, pure=False)
        tasks = [make(block, number, partitions[number]) for number in numbers]
        yield from _results(self._client.compute(tasks))


def _results(futures: Sequence[Any]) -> Iterator[Outcome]:
    from distributed import as_completed

    for future in as_completed(futures):
        yield future.result()


def _attempt_frame(block: PartWriter, number: int, frame: Any) -> Outcome:
    return attempt(block, number, lambda: [pa.Table.from_pandas(frame, preserve_index=False)])
