"""Desensitise a table in files with processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from opboost.runtime.child_processes import run_in_processes
from opboost.scale.engine_task import Outcome, attempt_slice
from opboost.scale.part_writer import PartWriter
from opboost.scale.table_tasks import Files
from opboost.sources.table_address import TableAddress


class Processes(Files):
    """One process per core, or the requested number; if that is one, this process does the work."""

    def __init__(self, table: TableAddress, workers: int | None) -> None:
        super().__init__(table)
        self._workers = workers or os.cpu_count() or 1

    def run(self, block: PartWriter, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; if a process is killed, the next run makes its part."""
        tasks = [partial(attempt_slice, block, n, self.slices[n]) for n in numbers]
        if min(self._workers, len(tasks)) <= 1:
            yield from (task() for task in tasks)
            return
        again = "Run the same command again: it continues with the same noise."
        for _, result in run_in_processes(tasks, self._workers, if_killed=again):
            yield result()
