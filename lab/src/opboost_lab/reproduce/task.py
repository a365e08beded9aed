"""The scope of a run, and tasks: a function by name, its settings, and its result on disk."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from opboost.errors import DataError
from opboost.storage import atomic_files
from opboost_lab.code_alone import code_alone

Json = Any
"""A value that JSON can hold."""

QUICK_SEEDS = 2
EPSILONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
"""The levels of the paper's experiments: 0.01 · 2^k (docs/errata.md, 17)."""
QUICK_EPSILONS = (0.08, 0.64, 2.56)


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A user's table that replaces the paper's data: file, label, declared columns."""

    path: Path
    label: str
    config: Path | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run covers."""

    quick: bool = False
    seeds: int | None = None
    table: OwnTable | None = None
    bundled: bool = False
    """Whether scikit-learn's data replace the paper's, which is only for quick runs."""

    def repeats(self, paper: int = 10) -> range:
        """Return the seeds of a measurement that the paper repeats ``paper`` times."""
        return range(self.seeds or (min(QUICK_SEEDS, paper) if self.quick else paper))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The levels per cell."""
        return QUICK_EPSILONS if self.quick else EPSILONS


@dataclass(frozen=True, slots=True)
class Task:
    """A measurement that any process can make, and that is made only once.

    The function is named ``module:function``, and the settings are canonical JSON.
    """

    function: str
    settings: str
    alone: bool = field(default=False, compare=False)
    """Whether it measures time, so that nothing else may run meanwhile."""
    cost: float = field(default=1.0, compare=False)
    """Rough seconds, for the progress bar."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Json],
        /,
        *,
        alone: bool = False,
        cost: float = 1.0,
        **settings: Json,
    ) -> Task:
        """Return the task of calling ``function`` with ``settings``."""
        name = f"{function.__module__}:{function.__qualname__}"
        return cls(name, json.dumps(settings, sort_keys=True, ensure_ascii=False), alone, cost)

    def run(self) -> Json:
        """Call the function in this process."""
        module, name = self.function.split(":")
        return getattr(importlib.import_module(module), name)(**json.loads(self.settings))

    def key(self) -> str:
        """Return a hash of the settings and of the code that measures."""
        module = self.function.split(":")[0]
        text = json.dumps([self.function, self.settings, _digest(module)])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache
def _digest(module: str) -> str:
    source = inspect.getsource(importlib.import_module(module))
    return hashlib.sha256(code_alone(source).encode()).hexdigest()


Results = Mapping[Task, Json]


class Store:
    """Results on disk, for runs that are resumed; each file is written atomically."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, task: Task) -> Json | None:
        """Return the stored result of a task, or None."""
        try:
            return json.loads(self._file(task).read_bytes())["result"]
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def put(self, task: Task, result: Json) -> None:
        """Store a result together with its task."""
        line = {"task": task.function, "settings": json.loads(task.settings), "result": result}
        atomic_files.write(self._file(task), json.dumps(line, ensure_ascii=False).encode())

    def _file(self, task: Task) -> Path:
        return self._folder / f"{task.key()}.json"


def unpack(file: Path, store: Store, tasks: Sequence[Task]) -> int:
    """Add the results of the file that the store lacks, and return how many.

    A result counts for a task only if the code that measures it has not changed.
    """
    known = {line["key"]: line["result"] for line in _lines(file)}
    lacking = [task for task in tasks if task.key() in known and store.get(task) is None]
    for task in lacking:
        store.put(task, known[task.key()])
    return len(lacking)


def pack(file: Path, store: Store, tasks: Sequence[Task]) -> None:
    """Write the stored results of these tasks to the file; results of other tasks stay in it.

    The same results give the same bytes.  Numbers have nine digits, which no figure shows in full.
    Times are left out, as they depend on the machine.
    """
    ours = {(task.function, task.settings) for task in tasks}
    lines = [line for line in _lines(file) if (line["task"], line["settings"]) not in ours]
    for task in tasks:
        result = None if task.alone else store.get(task)
        if result is not None:
            key = {"task": task.function, "settings": task.settings, "key": task.key()}
            lines.append({**key, "result": _rounded(result)})
    text = "\n".join(sorted(json.dumps(line, ensure_ascii=False) for line in lines))
    atomic_files.write(file, lzma.compress(text.encode(), preset=9))


def _rounded(result: Json) -> Json:
    return json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.9g}"))


def _lines(file: Path) -> list[dict[str, Json]]:
    """Return the file's results, each with its task; none if there is no file."""
    if not file.exists():
        return []
    try:
        lines = [json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines()]
        if all({"task", "settings", "key", "result"} <= set(line) for line in lines):
            return lines
    except (lzma.LZMAError, ValueError, TypeError):
        pass
    raise DataError(f"{file} holds no results of a reproduction. Remove it, or name another file.")
