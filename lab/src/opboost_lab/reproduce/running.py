"""Run the tasks without a stored result on all cores, and report progress."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from opboost.errors import OpBoostError
from opboost.runtime.child_processes import run_in_processes
from opboost_lab.reproduce.task import Json, Store, Task

Progress = Callable[[float, float, str], None]
"""Called with the cost done, the total cost, and the last task."""


@dataclass(slots=True)
class Run:
    """The results so far, and the errors of tasks that have none."""

    done: dict[Task, Json] = field(default_factory=dict)
    failed: dict[Task, str] = field(default_factory=dict)


NOT_MEASURED = "It has not been measured yet; run it without --kept."


def run_tasks(
    tasks: Iterable[Task], store: Store, progress: Progress, *, kept: bool = False
) -> Run:
    """Run every task without a stored result; a failing task does not stop the others.

    Tasks that measure time run after the others, one at a time.  With ``kept``, nothing is run,
    and tasks without a stored result are reported as not measured.
    """
    run = Run()
    due = []
    for task in dict.fromkeys(tasks):
        known = store.get(task)
        if known is None:
            due.append(task)
        else:
            run.done[task] = known
    if kept:
        run.failed = dict.fromkeys(due, NOT_MEASURED)
        return run
    total, spent = sum(t.cost for t in due), 0.0

    def finished(task: Task, result: Callable[[], Json]) -> None:
        nonlocal spent
        try:
            run.done[task] = result()
            store.put(task, run.done[task])
        except Exception as error:
            said = str(error) if isinstance(error, OpBoostError) else repr(error)
            run.failed[task] = said
        spent += task.cost
        progress(spent, total, task.function.rsplit(".", 1)[-1])

    progress(0.0, total, "")
    _together([t for t in due if not t.alone], finished)
    for task in due:
        if task.alone:
            finished(task, task.run)
    return run


def _together(tasks: list[Task], finished: Callable[[Task, Callable[[], Json]], None]) -> None:
    """Run tasks in worker processes, the most expensive first."""
    workers = min(os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            finished(task, task.run)
        return
    dearest = sorted(tasks, key=lambda t: -t.cost)
    again = "Run the same command again: what was measured before is not run again."
    results = run_in_processes(
        [task.run for task in dearest], workers, if_killed=again, initializer=_one_thread
    )
    for number, result in results:
        finished(dearest[number], result)


def _one_thread() -> None:
    """Limit a worker to one thread, since the workers use all cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
