"""A Dask DataFrame, or a table in files, by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from opboost.files.reading import table_files
from opboost.scale.block import Block
from opboost.scale.inputs import fingerprint, slices
from opboost.scale.work import Outcome, attempt, attempt_slice


class DaskFiles:
    """A table in files that every worker can read."""

    def __init__(self, path: Path, client: Any) -> None:
        self._files = [f.absolute() for f in table_files(path)]
        self._slices, self._client = slices(self._files), client

    @property
    def parts(self) -> int:
        """Slices of the files."""
        return len(self._slices)

    @property
    def source(self) -> object:
        """The files, as they are now."""
        return fingerprint(self._files)

    def run(self, block: Block, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; the scheduler repeats what a lost worker was at."""
        parts = [self._slices[n] for n in numbers]
        yield from _results(
            self._client.map(attempt_slice, [block] * len(numbers), numbers, parts, pure=False)
        )


class DaskFrame:
    """The partitions of a DataFrame."""

    def __init__(self, frame: Any, client: Any) -> None:
        self._frame, self._client = frame, client

    @property
    def parts(self) -> int:
        """The DataFrame's partitions."""
        return int(self._frame.npartitions)

    @property
    def source(self) -> object:
        """Its columns; that its rows are the same is for the caller to see to."""
        return [str(name) for name in self._frame.columns]

    def run(self, block: Block, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; the scheduler repeats what a lost worker was at."""
        from dask import delayed

        partitions = self._frame.to_delayed()
        make = delayed(_attempt_frame, pure=False)
        tasks = [make(block, number, partitions[number]) for number in numbers]
        yield from _results(self._client.compute(tasks))


def _results(futures: Sequence[Any]) -> Iterator[Outcome]:
    from distributed import as_completed

    for future in as_completed(futures):
        yield future.result()


def _attempt_frame(block: Block, number: int, frame: Any) -> Outcome:
    return attempt(block, number, lambda: [pa.Table.from_pandas(frame, preserve_index=False)])
