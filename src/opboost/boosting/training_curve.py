"""The training curve of a model that is trained: its loss after so many rounds."""

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

POINTS, ROWS = 25, 4000
"""Rounds at which the loss is computed, and rows that it is computed on, at most."""


@runtime_checkable
class Staged(Protocol):
    """A trained model that also predicts with its first rounds only; our own boosters' do."""

    @property
    def rounds(self) -> int:
        """How many rounds it was trained for."""
        ...

    def staged(self, X: Matrix, rounds: Sequence[int]) -> Iterator[FloatArray]:
        """Predictions of the first so many rounds, for each of rising ``rounds``."""
        ...


@dataclass(frozen=True, slots=True)
class Curve:
    """The loss on rows that were learnt from, by round.

    ``held_out`` is that of a model of fewer rows on those that it did not learn from (its rounds
    and losses); empty where no row was held out.
    """

    measure: str
    rounds: tuple[int, ...]
    loss: tuple[float, ...]
    held_out: tuple[tuple[int, float], ...] = ()

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        atomic_files.write(path, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, path: Path) -> Curve:
        """A curve that was saved."""
        found: Curve = atomic_files.read_json(path, cls, "Remove it: it is only shown.")
        return found


def curve(trained: Trained, problem: Problem) -> Curve | None:
    """The curve of a model on (some of) the rows it was trained on; None if it cannot tell.

    >>> from opboost.boosting import make_booster
    >>> X = np.arange(80, dtype=np.float64)[:, None]
    >>> problem = Problem(X, (X[:, 0] > 40).astype(int), "binary", 2)
    >>> found = curve(make_booster("hist-gbdt").train(problem), problem)
    >>> found.measure, found.rounds[-1], found.loss[-1] < found.loss[0]
    ('log loss', 80, True)
    """
    if not isinstance(trained, Staged) or trained.rounds < 1:
        return None
    on_disk = isinstance(problem.X, Blocks)  # then rows side by side are read, not every n-th
    count = len(problem.y)
    here = slice(0, min(ROWS, count)) if on_disk else slice(None, None, -(-count // ROWS))
    X, y = problem.rows(here), problem.y[here]
    found = losses_by_round(trained, X, 1, y, problem.task)
    measure = "squared error" if problem.task == "regression" else "log loss"
    return Curve(measure, tuple(found), tuple(found.values()))


def losses_by_round(
    trained: Trained, X: Matrix, draws: int, y: np.ndarray[Any, Any], task: str
) -> dict[int, float]:
    """The loss after some rounds; rows that stand ``draws`` times each are predicted by the mean.

    Empty for a model that cannot predict with its first rounds only.
    """
    if not isinstance(trained, Staged) or trained.rounds < 1:
        return {}
    rounds = sorted({int(r) for r in np.linspace(1, trained.rounds, POINTS)})
    return {
        r: _loss(task, found.reshape(len(y), draws, *found.shape[1:]).mean(axis=1), y)
        for r, found in zip(rounds, trained.staged(X, rounds), strict=True)
    }


def _loss(task: str, predicted: FloatArray, y: np.ndarray[Any, Any]) -> float:
    if task == "regression":
        return float(np.mean((predicted - y) ** 2))
    chances = predicted[np.arange(len(y)), y.astype(np.int64)]
    return float(-np.log(np.clip(chances, 1e-15, 1)).mean())
