"""Desensitise a Spark DataFrame, or a table in files, with the executors of a Spark session."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from opboost.errors import DataError
from opboost.scale.engine_task import Outcome, attempt, attempt_slice
from opboost.scale.part_writer import PartWriter, check_ids
from opboost.scale.table_tasks import Files
from opboost.sources.table_address import TableAddress

_ANSWER = "number long, refused binary"


class SparkFiles(Files):
    """A table in files that every executor can read."""

    def __init__(self, table: TableAddress, session: Any) -> None:
        super().__init__(table)
        self._session = session

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts, with one task per part."""
        if not numbers:
            return
        wanted, parts = list(numbers), self.slices
        frame = self._session.range(0, len(wanted), numPartitions=len(wanted))

        def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for row in batch.column(0).to_pylist():
                    number = wanted[row]
                    yield _answer(number, attempt_slice(block, number, parts[number]))

        yield from _answers(frame, make, wanted)


class SparkFrame:
    """A Spark DataFrame, one part per partition."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def parts(self) -> int:
        """The number of the DataFrame's partitions."""
        return int(self._frame.rdd.getNumPartitions())

    @property
    def source(self) -> object:
        """The names of its columns; the caller must ensure that its rows are the same."""
        return list(self._frame.columns)

    def ids(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the ID columns of all rows, batch by batch."""
        check_ids(names, self._frame.columns)

        def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                stream = pa.BufferOutputStream()
                with pa.ipc.new_stream(stream, batch.schema) as writer:
                    writer.write_batch(batch)
                whole = pa.array([stream.getvalue().to_pybytes()], pa.binary())
                yield pa.RecordBatch.from_arrays([whole], names=["ids"])

        found = self._frame.select(*names).mapInArrow(packed, "ids binary")
        for row in found.toLocalIterator():
            yield pa.ipc.open_stream(bytes(row.ids)).read_all()

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make all parts in one pass, except for those that already exist."""
        if not numbers:
            return

        def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            number = TaskContext.get().partitionId()
            tables = (pa.Table.from_batches([batch]) for batch in batches)
            yield _answer(number, attempt(block, number, lambda: tables))

        yield from _answers(self._frame, make, range(self.parts))


Make = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _answers(frame: Any, make: Make, expected: Sequence[int]) -> Iterator[Outcome]:
    answers = frame.mapInArrow(make, _ANSWER).collect()
    if sorted(a.number for a in answers) != sorted(expected):
        raise DataError(
            f"Spark made {len(answers)} partitions, and {len(expected)} were expected",
            hint="Write the DataFrame to Parquet first and desensitise that.",
        )
    yield from (None if a.refused is None else pickle.loads(a.refused) for a in answers)


def _answer(number: int, outcome: Outcome) -> pa.RecordBatch:
    refused = None if outcome is None else pickle.dumps(outcome)
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([refused], pa.binary())],
        names=["number", "refused"],
    )
