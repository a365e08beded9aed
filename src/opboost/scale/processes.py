"""A table in files, by processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from opboost.scale.block import Block
from opboost.scale.inputs import Files
from opboost.scale.work import Outcome, attempt_slice


class Processes(Files):
    """One process a core, or as many as are asked for; one works in this process."""

    def __init__(self, path: Path, workers: int | None) -> None:
        super().__init__(path)
        self._workers = workers or os.cpu_count() or 1

    def run(self, block: Block, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Make these parts; if a process is killed, what it was at is left for the next run."""
        if min(self._workers, len(numbers)) <= 1:
            yield from (attempt_slice(block, n, self.slices[n]) for n in numbers)
            return
        context = multiprocessing.get_context("spawn")
        others = multiprocessing.active_children()
        with ProcessPoolExecutor(self._workers, context) as pool:
            try:
                tasks = [pool.submit(attempt_slice, block, n, self.slices[n]) for n in numbers]
                yield from (task.result() for task in as_completed(tasks))
            except BrokenProcessPool:
                # One that starts just then is not ended by the pool, which would wait for it.
                for child in set(multiprocessing.active_children()).difference(others):
                    child.kill()
                raise OSError(
                    "A worker process ended by force, perhaps for want of memory. Run the same "
                    "command again: it goes on with the same noise."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)
