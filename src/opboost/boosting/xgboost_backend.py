"""XGBoost: trees are edited in its JSON model form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from opboost._typing import FloatArray
from opboost.boosting.protocol import Matrix, Problem, Replace, Task

_OBJECTIVES: dict[Task, str] = {
    "binary": "binary:logistic",
    "multiclass": "multi:softprob",
    "regression": "reg:squarederror",
}


@dataclass(frozen=True, slots=True)
class XGBoost:
    """``xgboost.train``; every parameter passes through.

    ``n_estimators`` (default 80) is the number of rounds, as in its scikit-learn interface.
    """

    params: dict[str, Any]

    def train(self, problem: Problem) -> TrainedXGBoost:
        """Train on a quantile matrix where the tree method bins, on plain rows where not."""
        params = {"objective": _OBJECTIVES[problem.task], **self.params}
        rounds = int(params.pop("n_estimators", params.pop("num_boost_round", 80)))
        if problem.task == "multiclass":
            params.setdefault("num_class", problem.classes)
        if problem.seed is not None:
            params.setdefault("seed", problem.seed)
        data = self._matrix(problem.X, problem.y, problem.weight, params)
        evals = []
        if problem.eval_set is not None:
            held_out = xgb.DMatrix(problem.eval_set[0], problem.eval_set[1])
            evals = [(held_out, "eval")]
        booster = xgb.train(
            params,
            data,
            num_boost_round=rounds,
            evals=evals,
            early_stopping_rounds=problem.early_stopping,
            verbose_eval=False,
        )
        if problem.early_stopping is not None:
            booster = booster[: booster.best_iteration + 1]
        return TrainedXGBoost(booster, problem.task, problem.X.shape[1])

    def _matrix(
        self, X: Matrix, y: Any, weight: FloatArray | None, params: Mapping[str, Any]
    ) -> xgb.DMatrix:
        bins = int(params.get("max_bin", 256))
        if params.get("tree_method", "hist") in ("hist", "auto"):
            return xgb.QuantileDMatrix(X, y, weight=weight, max_bin=bins)
        return xgb.DMatrix(X, y, weight=weight)


@dataclass(frozen=True, slots=True)
class TrainedXGBoost:
    """An ``xgboost.Booster``."""

    native: xgb.Booster
    task: Task
    features: int
    left_up_to = False

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.native.save_raw("json"))
        return document

    def cuts(self) -> dict[int, list[float]]:
        """The distinct ``split_conditions`` of numeric splits."""
        found: dict[int, set[float]] = {}
        for tree, node in _splits(self._document()):
            feature = tree["split_indices"][node]
            found.setdefault(feature, set()).add(tree["split_conditions"][node])
        return {feature: sorted(cuts) for feature, cuts in sorted(found.items())}

    def replaced(self, by: Mapping[int, Replace]) -> TrainedXGBoost:
        """The same document with other ``split_conditions``, loaded again."""
        document = self._document()
        for tree, node in _splits(document):
            replace = by.get(tree["split_indices"][node])
            if replace is not None:
                value = replace(tree["split_conditions"][node])
                tree["split_conditions"][node] = _json_number(value)
        return TrainedXGBoost(_loaded(document), self.task, self.features)

    def predict(self, X: Matrix) -> FloatArray:
        """Probabilities or values."""
        out = np.asarray(self.native.inplace_predict(X, validate_features=False), dtype=np.float64)
        if self.task == "binary" and out.ndim == 1:
            return np.column_stack([1 - out, out])
        return out

    def importance(self) -> FloatArray:
        """Total gain by feature."""
        names = self.native.feature_names or [f"f{i}" for i in range(self.features)]
        score = self.native.get_score(importance_type="total_gain")
        return _normalised([float(np.sum(score.get(name, 0.0))) for name in names])

    def save(self, path: Path, *, strip: bool = False) -> None:
        """XGBoost's JSON; ``strip`` zeroes ``sum_hessian``, which tells a node's rows."""
        booster = self.native
        if strip:
            document = self._document()
            for tree in _trees(document):
                tree["sum_hessian"] = [0.0] * len(tree["sum_hessian"])
            booster = _loaded(document)
        form = "ubj" if path.suffix == ".ubj" else "json"
        path.write_bytes(booster.save_raw(form))

    @classmethod
    def load(cls, path: Path, task: Task, features: int) -> TrainedXGBoost:
        """A model that was saved."""
        booster = xgb.Booster()
        booster.load_model(bytearray(path.read_bytes()))
        return cls(booster, task, features)


def _trees(document: dict[str, Any]) -> list[dict[str, Any]]:
    booster = document["learner"]["gradient_booster"]
    inner = booster.get("gbtree", booster)  # dart wraps the plain form
    trees: list[dict[str, Any]] = inner["model"]["trees"]
    return trees


def _splits(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Every numeric split: the tree, and the place of its node."""
    for tree in _trees(document):
        for node, child in enumerate(tree["left_children"]):
            if child != -1 and tree["split_type"][node] == 0:
                yield tree, node


def _loaded(document: dict[str, Any]) -> xgb.Booster:
    booster = xgb.Booster()
    booster.load_model(bytearray(json.dumps(document).encode()))
    return booster


def _json_number(value: float) -> float:
    """JSON knows no infinity; the largest float parts rows in the same way."""
    largest = float(np.finfo(np.float32).max)
    return min(max(value, -largest), largest)


def _normalised(scores: list[float]) -> FloatArray:
    total = sum(scores)
    return np.array(scores) / total if total else np.array(scores)
