"""The training curve of a model: its loss after selected rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from opboost._typing import FloatArray
from opboost.boosting.booster import Blocks, Matrix, Problem, Trained
from opboost.storage import atomic_files

MAX_ROUNDS, MAX_ROWS = 25, 4000
"""The most points of a curve, and the most training rows on which its losses are computed."""


@runtime_checkable
class Staged(Protocol):
    """A trained model that can predict with its first rounds only, as the stock boosters' can."""

    @property
    def rounds(self) -> int:
        """The number of rounds that it was trained for."""
        ...

    def staged(self, X: Matrix, rounds: Sequence[int]) -> Iterator[FloatArray]:
        """Yield predictions with the first r rounds, for each r in ascending ``rounds``."""
        ...


@dataclass(frozen=True, slots=True)
class Curve:
    """The loss on training rows, by round.

    ``held_out`` has the rounds and losses of a second model on rows that it did not learn from;
    it is empty if no row was held out.
    """

    measure: str
    rounds: tuple[int, ...]
    loss: tuple[float, ...]
    held_out: tuple[tuple[int, float], ...] = ()

    def save(self, path: Path) -> None:
        """Write the curve as JSON, completely or not at all."""
        atomic_files.write(path, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, path: Path) -> Curve:
        """Load a saved curve."""
        found: Curve = atomic_files.read_json(path, cls, "Remove it: it is only for display.")
        return found


def curve(trained: Trained, problem: Problem) -> Curve | None:
    """Return a model's curve on (some of) its training rows.

    Return None if the model cannot predict with its first rounds only.

    >>> from opboost.boosting import make_booster
    >>> X = np.arange(80, dtype=np.float64)[:, None]
    >>> problem = Problem(X, (X[:, 0] > 40).astype(int), "binary", 2)
    >>> found = curve(make_booster("hist-gbdt").train(problem), problem)
    >>> found.measure, found.rounds[-1], found.loss[-1] < found.loss[0]
    ('log loss', 80, True)
    """
    if not isinstance(trained, Staged) or trained.rounds < 1:
        return None
    on_disk = isinstance(problem.X, Blocks)  # then read adjacent rows, not every n-th
    count = len(problem.y)
    here = slice(0, min(MAX_ROWS, count)) if on_disk else slice(None, None, -(-count // MAX_ROWS))
    X, y = problem.rows(here), problem.y[here]
    found = losses_by_round(trained, X, 1, y, problem.task)
    measure = "squared error" if problem.task == "regression" else "log loss"
    return Curve(measure, tuple(found), tuple(found.values()))


def losses_by_round(
    trained: Trained, X: Matrix, draws: int, y: np.ndarray[Any, Any], task: str
) -> dict[int, float]:
    """Return the loss after some rounds, from the mean prediction over the ``draws`` of each row.

    The result is empty for a model that cannot predict with its first rounds only.
    """
    if not isinstance(trained, Staged) or trained.rounds < 1:
        return {}
    rounds = sorted({int(r) for r in np.linspace(1, trained.rounds, MAX_ROUNDS)})
    return {
        r: _loss(task, found.reshape(len(y), draws, *found.shape[1:]).mean(axis=1), y)
        for r, found in zip(rounds, trained.staged(X, rounds), strict=True)
    }


def _loss(task: str, predicted: FloatArray, y: np.ndarray[Any, Any]) -> float:
    if task == "regression":
        return float(np.mean((predicted - y) ** 2))
    chances = predicted[np.arange(len(y)), y.astype(np.int64)]
    return float(-np.log(np.clip(chances, 1e-15, 1)).mean())
