"""LightGBM: trees are edited in its text model form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

from opboost._typing import FloatArray
from opboost.boosting.protocol import Matrix, Problem, Replace, Task

_OBJECTIVES: dict[Task, str] = {
    "binary": "binary",
    "multiclass": "multiclass",
    "regression": "regression",
}
_CATEGORICAL = 1
"""Bit of ``decision_type`` that marks a split by category."""


@dataclass(frozen=True, slots=True)
class LightGBM:
    """``lightgbm.train``; every parameter passes through (``n_estimators``, default 80)."""

    params: dict[str, Any]

    def train(self, problem: Problem) -> TrainedLightGBM:
        """Train on a binned data set."""
        params = {"objective": _OBJECTIVES[problem.task], "verbosity": -1, **self.params}
        rounds = int(params.pop("n_estimators", params.pop("num_iterations", 80)))
        if problem.task == "multiclass":
            params.setdefault("num_class", problem.classes)
        if problem.seed is not None:
            params.setdefault("seed", problem.seed)
        data = lgb.Dataset(_dense(problem.X), problem.y, weight=problem.weight, params=params)
        valid: list[lgb.Dataset] = []
        callbacks: list[Any] = []
        if problem.eval_set is not None:
            X, y = problem.eval_set
            valid = [lgb.Dataset(_dense(X), y, reference=data, params=params)]
            if problem.early_stopping is not None:
                callbacks = [lgb.early_stopping(problem.early_stopping, verbose=False)]
        try:
            booster = lgb.train(params, data, rounds, valid_sets=valid, callbacks=callbacks)
        except lgb.basic.LightGBMError as error:
            raise ValueError(str(error)) from error
        text = booster.model_to_string(num_iteration=booster.best_iteration or -1)
        return TrainedLightGBM(lgb.Booster(model_str=text), problem.task)


@dataclass(frozen=True, slots=True)
class TrainedLightGBM:
    """A ``lightgbm.Booster``."""

    native: lgb.Booster
    task: Task
    left_up_to = True

    def cuts(self) -> dict[int, list[float]]:
        """The distinct thresholds of numeric splits."""
        found: dict[int, set[float]] = {}

        def note(feature: int, cut: float) -> float:
            found.setdefault(feature, set()).add(cut)
            return cut

        _edited(self.native.model_to_string(), note)
        return {feature: sorted(cuts) for feature, cuts in sorted(found.items())}

    def replaced(self, by: Mapping[int, Replace]) -> TrainedLightGBM:
        """The same text with other thresholds, loaded again."""

        def swap(feature: int, cut: float) -> float:
            replace = by.get(feature)
            return cut if replace is None else replace(cut)

        text = _edited(self.native.model_to_string(), swap)
        return TrainedLightGBM(lgb.Booster(model_str=_without_ranges(text, by)), self.task)

    def predict(self, X: Matrix) -> FloatArray:
        """Probabilities or values."""
        out = np.asarray(self.native.predict(_dense(X)), dtype=np.float64)
        return np.column_stack([1 - out, out]) if self.task == "binary" else out

    def importance(self) -> FloatArray:
        """Total gain by feature."""
        gain = np.asarray(self.native.feature_importance("gain"), dtype=np.float64)
        return gain / gain.sum() if gain.sum() else gain

    def save(self, path: Path, *, strip: bool = False) -> None:
        """LightGBM's text; ``strip`` zeroes counts and weights of nodes."""
        text = self.native.model_to_string()
        path.write_text(_stripped(text) if strip else text)

    @classmethod
    def load(cls, path: Path, task: Task, features: int) -> TrainedLightGBM:
        """A model that was saved."""
        return cls(lgb.Booster(model_file=str(path)), task)


def _dense(X: Matrix) -> Matrix:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)


def _edited(text: str, change: Callable[[int, float], float]) -> str:
    """The model with every numeric threshold passed through ``change(feature, threshold)``."""
    lines = text.split("\n")
    features: list[int] = []
    kinds: list[int] = []
    for i, line in enumerate(lines):
        key, _, rest = line.partition("=")
        if key == "split_feature":
            features = [int(v) for v in rest.split()]
        elif key == "decision_type":
            kinds = [int(v) for v in rest.split()]
            # threshold stands one line above decision_type
            place = i - 1
            name, _, cuts = lines[place].partition("=")
            assert name == "threshold"
            changed = [
                cut if kind & _CATEGORICAL else _number(change(feature, float(cut)))
                for feature, cut, kind in zip(features, cuts.split(), kinds, strict=True)
            ]
            lines[place] = f"threshold={' '.join(changed)}"
        elif key == "tree_sizes":
            lines[i] = ""  # sizes have changed; without the line the trees are read in turn
    return "\n".join(line for i, line in enumerate(lines) if line or text.split("\n")[i] == "")


def _number(value: float) -> str:
    largest = float(np.finfo(np.float64).max)
    return repr(min(max(value, -largest), largest))


def _without_ranges(text: str, by: Mapping[int, Replace]) -> str:
    """Take the ranges of replaced features out: they are ranges of codes."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if line.startswith("feature_infos="):
            infos = line.removeprefix("feature_infos=").split(" ")
            infos = ["[-inf:inf]" if j in by and s != "none" else s for j, s in enumerate(infos)]
            lines[i] = "feature_infos=" + " ".join(infos)
    return "\n".join(lines)


def _stripped(text: str) -> str:
    counted = ("leaf_weight", "leaf_count", "internal_weight", "internal_count")
    lines = []
    for line in text.split("\n"):
        key, _, rest = line.partition("=")
        if key in counted:
            line = f"{key}={' '.join(['0'] * len(rest.split()))}"
        if key != "tree_sizes":
            lines.append(line)
    return "\n".join(lines)
