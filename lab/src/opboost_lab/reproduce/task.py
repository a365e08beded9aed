"""One measurement: a function by name, what it is called with, and its result on disk."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from opboost.storage import atomic_files

Json = Any
"""What JSON holds: numbers, words, lists and objects of them."""


@dataclass(frozen=True, slots=True)
class Task:
    """A measurement that another process can be told to make, and that is made once.

    The function is named ``module:function``, the settings are canonical JSON.
    """

    function: str
    settings: str
    alone: bool = field(default=False, compare=False)
    """It takes the time of something, so nothing else may run meanwhile."""
    cost: float = field(default=1.0, compare=False)
    """Rough seconds, for the time that is left."""

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
        """The task of calling ``function`` with ``settings``."""
        name = f"{function.__module__}:{function.__qualname__}"
        return cls(name, json.dumps(settings, sort_keys=True, ensure_ascii=False), alone, cost)

    def run(self) -> Json:
        """Call the function here and now."""
        return self._function()(**json.loads(self.settings))

    def key(self) -> str:
        """The name of the result: settings, and the code of the file that the function is in."""
        module = self.function.split(":")[0]
        text = json.dumps([self.function, self.settings, _digest(module)])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _function(self) -> Callable[..., Json]:
        module, name = self.function.split(":")
        found: Callable[..., Json] = getattr(importlib.import_module(module), name)
        return found


@lru_cache
def _digest(module: str) -> str:
    source = inspect.getsource(importlib.import_module(module))
    return hashlib.sha256(source.encode()).hexdigest()


Results = Mapping[Task, Json]


class Store:
    """Results that are there when a run is taken up again; each file is whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, task: Task) -> Json | None:
        """The result of a task that was done before, if it was."""
        try:
            return json.loads(self._file(task).read_bytes())["result"]
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def put(self, task: Task, result: Json) -> None:
        """Keep a result beside what it is the result of."""
        line = {"task": task.function, "settings": json.loads(task.settings), "result": result}
        atomic_files.write(self._file(task), json.dumps(line, ensure_ascii=False).encode())

    def _file(self, task: Task) -> Path:
        return self._folder / f"{task.key()}.json"
