"""The interface of boosters: train, list the cuts, replace them by values, predict, save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import OpBoostError, ParameterError
from opboost.runtime.extras import needs_extra
from opboost.runtime.threads import most_threads, threads_for, threads_limited
from opboost.scores.flat_trees import AdditiveModel

Matrix = np.ndarray[Any, Any]
Task = Literal["binary", "multiclass", "regression"]

Replace = Callable[[float], float]
"""A function from a cut of one feature to the value that replaces it."""


BLOCK_CODES = 2**24
"""The number of codes read from disk at a time.

Larger blocks train faster, smaller ones need less memory.
"""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows that stay on disk; every pass reads the same blocks in the same order.

    ``folder`` is where a booster may keep derived files while it trains.  A ``share`` of (k, n)
    selects every n-th block, beginning with the k-th.
    """

    shape: tuple[int, int]
    read: Callable[[slice], Matrix]
    folder: Path
    share: tuple[int, int] = (0, 1)

    def __iter__(self) -> Iterator[slice]:
        """Yield the rows of each block."""
        rows, columns = self.shape
        first, of = self.share
        step = max(1, min(BLOCK_CODES // max(1, columns), rows // of))
        for start in range(first * step, rows, of * step):
            yield slice(start, min(start + step, rows))


@dataclass(frozen=True, slots=True)
class Problem:
    """A training problem: ``X`` holds codes and own features, ``y`` labels from 0 to classes−1."""

    X: Matrix | Blocks
    y: np.ndarray[Any, Any]
    task: Task
    classes: int = 0
    weight: FloatArray | None = None
    eval_set: tuple[Matrix, np.ndarray[Any, Any]] | None = None
    early_stopping: int | None = None
    feature_names: list[str] = field(default_factory=list)
    seed: int | None = None
    continue_from: Trained | None = None
    """The model to add trees to, in the units of ``X``; None for a new model."""
    groups: tuple[tuple[int, ...], ...] | None = None
    """Groups of features that may occur together in one tree; None if all may."""

    def rows(self, here: slice) -> Matrix:
        """Return some rows, whether they are in memory or on disk."""
        return self.X.read(here) if isinstance(self.X, Blocks) else self.X[here]

    @property
    def matrix(self) -> Matrix:
        """All rows, for boosters that need them in memory; refuse rows on disk."""
        if isinstance(self.X, Blocks):
            raise ParameterError(
                "This booster holds all rows in memory. memory='external' needs booster='xgboost'."
            )
        return self.X


@dataclass(frozen=True, slots=True)
class StockFeature:
    """One feature of an exported model.

    Attributes:
        name: The feature's name in the stock library.
        place: Its position in the trained model; None for a feature that no tree uses.
        cut: The function that converts its cuts; None if they stay as they are.
        gap: The value, in the trained model's units, that a missing value counts as; None if
            missing values go the way that the tree learned in training.
    """

    name: str
    place: int | None
    cut: Replace | None = None
    gap: float | None = None


class Trained(Protocol):
    """A trained model: a stock object, and the few operations that OpBoost needs."""

    left_up_to: bool
    """Whether a tree goes left for ``value <= cut``; if false, for ``value < cut``."""

    @property
    def native(self) -> Any:
        """The stock model object."""
        ...

    def cuts(self) -> dict[int, list[float]]:
        """Return the distinct cuts of each feature that the trees use, ascending."""
        ...

    def replaced(self, by: Mapping[int, Replace]) -> Trained:
        """Return the same trees with other values at the cuts of these features."""
        ...

    def predict(self, X: Matrix) -> FloatArray:
        """Return probabilities (one column per class) or, for a regression, values."""
        ...

    def importance(self) -> FloatArray:
        """Return the importance of each feature; they add up to one."""
        ...

    def save(self, path: Path, *, strip: bool = False) -> None:
        """Write the stock library's own file; ``strip`` leaves out training statistics."""
        ...


@runtime_checkable
class Exportable(Trained, Protocol):
    """A trained model that can be exported with other features, as the stock boosters' can."""

    checks_names: ClassVar[bool]
    """Whether the stock library refuses a table whose columns have different names."""

    @property
    def floats(self) -> type[np.floating[Any]]:
        """The type in which the stock library compares values."""
        ...

    def spelled(self, name: str) -> str:
        """Return the name in the characters that the stock library allows."""
        ...

    def exported(self, features: Sequence[StockFeature], *, named: bool) -> Trained:
        """Return the same trees over these features; ``named`` stores the features' names."""
        ...


@runtime_checkable
class Additive(Protocol):
    """A trained model that exposes its trees, as by-party models of the stock boosters do."""

    def additive(self) -> AdditiveModel:
        """Return its trees as flat arrays, with the link that turns sums into predictions."""
        ...


class Booster(Protocol):
    """An object that trains models."""

    def train(self, problem: Problem) -> Trained:
        """Train a model on the problem."""
        ...


def places_of(features: Sequence[StockFeature]) -> dict[int, int]:
    """Return, for each feature of a trained model, its position in the exported model."""
    return {f.place: k for k, f in enumerate(features) if f.place is not None}


_BACKENDS = {
    "xgboost": ("opboost.boosting.xgboost_backend", "XGBoost"),
    "lightgbm": ("opboost.boosting.lightgbm_backend", "LightGBM"),
    "gbdt": ("opboost.boosting.sklearn_backend", "GradientBoosting"),
    "hist-gbdt": ("opboost.boosting.sklearn_backend", "HistGradientBoosting"),
}


def takes_gaps(booster: Booster) -> bool:
    """Return whether a booster trains on rows with missing values.

    A booster that cannot do so sets ``TAKES_GAPS`` to False.

    >>> takes_gaps(make_booster("gbdt")), takes_gaps(make_booster("hist-gbdt"))
    (False, True)
    """
    return getattr(booster, "TAKES_GAPS", True)


def trains_beside(booster: Booster, *cells: int) -> bool:
    """Return whether a booster should train on problems of these sizes at the same time.

    That pays if there is a core for each of their threads.  A booster sets ``is_reentrant`` if it
    can train several models at once.
    """
    threads = sum(map(threads_for, cells))
    return getattr(booster, "is_reentrant", False) and threads <= most_threads()


def check_continues(booster: Booster, earlier: Trained) -> None:
    """Refuse a booster that cannot add trees to a model.

    A booster's ``CONTINUES`` names the kind of model that it can add trees to.
    """
    kind = getattr(booster, "CONTINUES", None)
    if kind is None:
        raise ParameterError(
            f"{type(booster).__name__} cannot add trees to a model of other rows. Continue a "
            "model of booster='xgboost' or 'lightgbm', or train a new one."
        )
    if type(earlier).__name__ != kind:
        raise ParameterError(
            f"{type(booster).__name__} cannot continue a model that "
            f"{type(earlier).__name__.removeprefix('Trained')} trained. Use the same booster."
        )


BY_PARTY = ("xgboost", "lightgbm", "hist-gbdt")
"""The stock boosters that can restrict each tree to one group of features."""


def check_by_party(booster: str | Booster) -> None:
    """Refuse a booster that cannot restrict each tree to the columns of one party.

    >>> check_by_party("xgboost")
    """
    kept = booster in BY_PARTY if isinstance(booster, str) else takes_groups(booster)
    if not kept:
        name = repr(booster) if isinstance(booster, str) else type(booster).__name__
        raise ParameterError(
            "structure='by-party' restricts each tree to the columns of one party, which booster "
            f"{name} cannot do. Use 'xgboost', 'lightgbm' or 'hist-gbdt'."
        )


def takes_groups(booster: Booster) -> bool:
    """Return whether a booster says that it restricts trees to ``Problem.groups``."""
    return getattr(booster, "TAKES_GROUPS", False)


def constrained(params: Mapping[str, Any], name: str, groups: Any) -> dict[str, Any]:
    """Return a library's parameters with interaction constraints; refuse the user's own."""
    if groups is None:
        return dict(params)
    if params.get(name) is not None:
        raise ParameterError(
            f"structure='by-party' sets {name} itself. Leave it out of booster_params."
        )
    return {**params, name: groups}


def make_booster(booster: str | Booster, params: Mapping[str, Any] | None = None) -> Booster:
    """Return the booster with this name, or the given object itself."""
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


def fit_booster(booster: Booster, problem: Problem) -> Trained:
    """Train, and turn an error of the booster's library into a :class:`ParameterError`."""
    rows, features = problem.X.shape
    if problem.groups is not None and not takes_groups(booster):
        check_by_party(booster)
    try:
        with threads_limited(rows * features):
            return booster.train(problem)
    except OpBoostError:
        raise
    except (TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise ParameterError(f"The booster refused: {words}. Check booster_params.") from error
