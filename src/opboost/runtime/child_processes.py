"""Start Python processes.

None of them looks for modules in the working directory, because others may be able to write to it:
``python -m`` and ``python -c`` would search it first, before the standard library.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from traceback import format_tb
from typing import Any, TypeVar

T = TypeVar("T")

_SAFE_PATH = "PYTHONSAFEPATH"


def python_command(*arguments: str, interpreter: str | Path | None = None) -> list[str]:
    """Return the command that runs Python with ``arguments``, by default this interpreter.

    >>> python_command("-m", "opboost")[1:]
    ['-P', '-m', 'opboost']
    """
    return [str(interpreter or sys.executable), "-P", *arguments]


class _SafePath:
    """A context manager that sets ``PYTHONSAFEPATH`` until the last of several blocks has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._before: str | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._before = os.environ.get(_SAFE_PATH)
            self._blocks += 1
            os.environ[_SAFE_PATH] = "1"

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks:
                return
            if self._before is None:
                os.environ.pop(_SAFE_PATH, None)
            else:
                os.environ[_SAFE_PATH] = self._before


safe_path = _SafePath()
"""Within ``with safe_path:``, every Python process that is started runs as if with ``-P``.

``multiprocessing``, Dask and Spark build the command lines of their workers themselves, but the
workers inherit the environment.  The environment belongs to the whole process, so if blocks overlap
in threads, the last one restores it.
"""


def run_in_processes(
    tasks: Sequence[Callable[[], T]],
    workers: int,
    *,
    if_killed: str,
    initializer: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Callable[[], T]]]:
    """Run picklable tasks, started in order, and yield each one's number and result when ready.

    The result is a function that returns what the task returned, or raises what it raised.  If a
    worker is killed, at any moment, the run ends with an ``OSError`` that names the next step,
    ``if_killed``.  No worker outlives the run.

    Each worker has a separate pipe.  The workers of a ``ProcessPoolExecutor`` share locks, and
    the pool may wait forever for a worker that starts while another is killed.
    """
    waiting = deque(enumerate(tasks))
    team: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, int | None]] = {}  # by pipe; None while it is starting
    try:
        with safe_path, _in_words(if_killed):
            for _ in range(min(workers, len(tasks))):
                team.append(_Worker(initializer))
                busy[team[-1].pipe] = team[-1], None
        while busy:
            for pipe in wait(list(busy)):
                worker, number = busy.pop(pipe)
                with _in_words(if_killed):
                    result = worker.answer()
                    if waiting:
                        following, task = waiting.popleft()
                        worker.give(task)
                        busy[pipe] = worker, following
                if number is not None:
                    yield number, result
        for worker in team:
            worker.dismiss()
    finally:
        for worker in team:
            worker.end()


@contextmanager
def _in_words(if_killed: str) -> Iterator[None]:
    """Turn the error of a closed pipe into one that says what happened to the worker."""
    try:
        yield
    except (EOFError, ConnectionError):
        raise OSError(
            f"A worker process was killed, perhaps because memory ran out. {if_killed}"
        ) from None


class _Worker:
    """A process that runs one task after another."""

    def __init__(self, initializer: Callable[[], None] | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        with theirs:  # otherwise the pipe would stay open when the worker has ended
            self._process = context.Process(target=_work, args=(theirs, initializer), daemon=True)
            self._process.start()

    def give(self, task: Callable[[], Any]) -> None:
        """Send the worker a task."""
        self.pipe.send(task)

    def answer(self) -> Callable[[], Any]:
        """Wait until the worker has started or finished its task, and return the result."""
        value, error = self.pipe.recv()

        def result() -> Any:
            if error is not None:
                raise error
            return value

        return result

    def dismiss(self) -> None:
        """Close the pipe, and wait until the worker has exited by itself."""
        self.pipe.close()
        self._process.join()

    def end(self) -> None:
        """Kill the worker, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(pipe: Any, initializer: Callable[[], None] | None) -> None:
    """Run tasks until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this one
    if initializer is not None:
        initializer()
    said = pickle.dumps((None, None))
    while True:
        try:
            pipe.send_bytes(said)
            task = pipe.recv_bytes()
        except (EOFError, ConnectionError):
            return
        said = _outcome(task)


def _outcome(task: bytes) -> bytes:
    """Return a task's value and error, pickled so that the parent can read them; one is None."""
    try:
        return pickle.dumps((pickle.loads(task)(), None))
    except Exception as error:
        error.add_note("In a worker process:\n" + "".join(format_tb(error.__traceback__)))
        try:
            said = pickle.dumps((None, error))
            pickle.loads(said)
        except Exception:
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return said
