"""What a booster does for us: train, name its cuts, take values for them, predict, save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import ParameterError
from opboost.runtime.extras import needs_extra

Matrix = np.ndarray[Any, Any]
Task = Literal["binary", "multiclass", "regression"]

Replace = Callable[[float], float]
"""A cut of one feature to the value that stands for it."""


BLOCK_CODES = 2**24
"""So many codes are read from disk at a time: larger blocks train faster, smaller need less."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows that stay on disk: the same blocks, in the same order, whenever they are read.

    ``folder`` is where a booster may keep what it makes of them while it trains.  ``share`` is
    (k, of): every of-th block beginning with the k-th.
    """

    shape: tuple[int, int]
    read: Callable[[slice], Matrix]
    folder: Path
    share: tuple[int, int] = (0, 1)

    def __iter__(self) -> Iterator[slice]:
        """The rows of each block."""
        rows, columns = self.shape
        first, of = self.share
        step = max(1, min(BLOCK_CODES // max(1, columns), rows // of))
        for start in range(first * step, rows, of * step):
            yield slice(start, min(start + step, rows))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be learned.  ``X`` holds codes and own features; labels are 0..classes−1."""

    X: Matrix | Blocks
    y: np.ndarray[Any, Any]
    task: Task
    classes: int = 0
    weight: FloatArray | None = None
    eval_set: tuple[Matrix, np.ndarray[Any, Any]] | None = None
    early_stopping: int | None = None
    feature_names: list[str] = field(default_factory=list)
    seed: int | None = None

    def rows(self, here: slice) -> Matrix:
        """Some rows, wherever they are."""
        return self.X.read(here) if isinstance(self.X, Blocks) else self.X[here]

    @property
    def matrix(self) -> Matrix:
        """The rows, for boosters that need them all in memory."""
        if isinstance(self.X, Blocks):
            raise ParameterError(
                "This booster holds all rows in memory. memory='external' needs booster='xgboost'."
            )
        return self.X


class Trained(Protocol):
    """A trained model: a stock object, and the few things that we do with it."""

    left_up_to: bool
    """True where a tree goes left for ``value <= cut``, false for ``value < cut``."""

    @property
    def native(self) -> Any:
        """The stock model object."""
        ...

    def cuts(self) -> dict[int, list[float]]:
        """The distinct cuts of each feature that the trees use, rising."""
        ...

    def replaced(self, by: Mapping[int, Replace]) -> Trained:
        """The same trees with other values at the cuts of these features."""
        ...

    def predict(self, X: Matrix) -> FloatArray:
        """Probabilities (one column a class) or, for a regression, values."""
        ...

    def importance(self) -> FloatArray:
        """How much each feature was worth, adding up to one."""
        ...

    def save(self, path: Path, *, strip: bool = False) -> None:
        """Write the stock library's own file; ``strip`` leaves training statistics out."""
        ...


class Booster(Protocol):
    """Something that trains."""

    def train(self, problem: Problem) -> Trained:
        """Learn the problem."""
        ...


_BACKENDS = {
    "xgboost": ("opboost.boosting.xgboost_backend", "XGBoost"),
    "lightgbm": ("opboost.boosting.lightgbm_backend", "LightGBM"),
    "gbdt": ("opboost.boosting.sklearn_backend", "GradientBoosting"),
    "hist-gbdt": ("opboost.boosting.sklearn_backend", "HistGradientBoosting"),
}


def make_booster(booster: str | Booster, params: Mapping[str, Any] | None = None) -> Booster:
    """The booster of a name, or the object itself."""
    if not isinstance(booster, str):
        if not hasattr(booster, "train"):
            raise ParameterError(f"A booster must have train(problem); got {booster!r}.")
        return booster
    if booster not in _BACKENDS:
        known = ", ".join(map(repr, _BACKENDS))
        raise ParameterError(f"booster must be one of {known} or an object; got {booster!r}.")
    module, name = _BACKENDS[booster]
    with needs_extra("boost", f"booster={booster!r}"):
        made: Booster = getattr(import_module(module), name)(dict(params or {}))
    return made
