"""The XGBoost booster, which edits trees in XGBoost's JSON format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xgboost as xgb

from opboost._typing import FloatArray
from opboost.boosting.booster import (
    Blocks,
    Matrix,
    Problem,
    Replace,
    StockFeature,
    Task,
    constrained,
    places_of,
)
from opboost.boosting.external_memory import ROWS_A_TREE, train_external
from opboost.boosting.few_values import value_table
from opboost.boosting.model_validation import check_tree, unsound
from opboost.errors import DataError, ParameterError
from opboost.scores.flat_trees import AdditiveModel, FlatTrees, Tree

MAX_COPY_BYTES = 1 << 22
"""A table is copied by columns, for speed, only if the copy takes at most this much memory."""

_OBJECTIVES: dict[Task, str] = {
    "binary": "binary:logistic",
    "multiclass": "multi:softprob",
    "regression": "reg:squarederror",
}


@dataclass(frozen=True, slots=True)
class XGBoost:
    """``xgboost.train``; every parameter passes through.

    ``n_estimators`` (default 80) is the number of rounds, as in its scikit-learn interface.
    ``rows_a_tree`` bounds the memory of training from disk, see ``external_memory.py``.
    """

    params: dict[str, Any]
    CONTINUES: ClassVar = "TrainedXGBoost"
    TAKES_GROUPS: ClassVar = True

    @property
    def is_reentrant(self) -> bool:
        """Whether models may be trained in parallel: no parameter sets threads or a device."""
        return self.params.keys().isdisjoint(("nthread", "n_jobs", "device"))

    def train(self, problem: Problem) -> TrainedXGBoost:
        """Train on a quantile matrix if the tree method uses bins, otherwise on plain rows.

        A feature of few values has one bin per value, so a matrix of those values yields the bins
        of all rows without a sketch.
        """
        params, rounds = settings(problem, self.params)
        if isinstance(problem.X, Blocks):
            booster = train_external(problem, problem.X, params, rounds)
            return TrainedXGBoost(booster, problem.task, problem.X.shape[1])
        if ROWS_A_TREE in params:
            raise ParameterError(f"{ROWS_A_TREE} is for rows on disk. Add memory='external'.")
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
            xgb_model=None if problem.continue_from is None else problem.continue_from.native,
        )
        if problem.early_stopping is not None:
            booster = booster[: booster.best_iteration + 1]
        return TrainedXGBoost(booster, problem.task, problem.X.shape[1])

    def _matrix(
        self, X: Matrix, y: Any, weight: FloatArray | None, params: Mapping[str, Any]
    ) -> xgb.DMatrix:
        bins = int(params.get("max_bin", 256))
        if params.get("tree_method", "hist") not in ("hist", "auto"):
            return xgb.DMatrix(X, y, weight=weight)
        counted = X if weight is None or np.all(weight > 0) else X[weight > 0]
        table = value_table(counted, bins)
        if table is None:
            return xgb.QuantileDMatrix(X, y, weight=weight, max_bin=bins)
        known = xgb.QuantileDMatrix(table, max_bin=bins)
        data = xgb.QuantileDMatrix(_by_column(X), y, weight=weight, max_bin=bins, ref=known)
        data.feature_names = data.feature_types = None  # arrays have neither
        return data


def _by_column(X: Matrix) -> Any:
    """Return the same values as a table of Arrow, which XGBoost bins in two thirds of the time.

    In an array, XGBoost looks up the type of each value again.  Versions before 3 would convert a
    table to a data frame.  A large array whose columns would have to be copied stays an array.
    """
    too_large = X.nbytes > MAX_COPY_BYTES and not X.flags.f_contiguous
    if too_large or int(xgb.__version__.split(".")[0]) < 3:
        return X
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(X[:, j])) for j in range(X.shape[1])]
    return pa.Table.from_arrays(columns, names=[str(j) for j in range(len(columns))])


def settings(problem: Problem, params: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return XGBoost's own parameters for a problem, and the number of rounds."""
    found = {"objective": _OBJECTIVES[problem.task], **params}
    rounds = int(found.pop("n_estimators", found.pop("num_boost_round", 80)))
    if problem.task == "multiclass":
        found.setdefault("num_class", problem.classes)
    if problem.seed is not None:
        found.setdefault("seed", problem.seed)
    groups = None if problem.groups is None else json.dumps(problem.groups)  # numbers, not names
    return constrained(found, "interaction_constraints", groups), rounds


@dataclass(frozen=True, slots=True)
class TrainedXGBoost:
    """An ``xgboost.Booster``."""

    native: xgb.Booster
    task: Task
    features: int
    left_up_to = False
    checks_names: ClassVar = True
    floats: ClassVar = np.float32

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.native.save_raw("json"))
        return document

    def cuts(self) -> dict[int, list[float]]:
        """Return the distinct ``split_conditions`` of numeric splits."""
        found: dict[int, set[float]] = {}
        for tree, node in _splits(self._document()):
            feature = tree["split_indices"][node]
            found.setdefault(feature, set()).add(tree["split_conditions"][node])
        return {feature: sorted(cuts) for feature, cuts in sorted(found.items())}

    def replaced(self, by: Mapping[int, Replace]) -> TrainedXGBoost:
        """Return the model with other ``split_conditions``, loaded from the edited document."""
        document = self._document()
        for tree, node in _splits(document):
            replace = by.get(tree["split_indices"][node])
            if replace is not None:
                value = replace(tree["split_conditions"][node])
                tree["split_conditions"][node] = _json_number(value)
        return TrainedXGBoost(_loaded(document), self.task, self.features)

    def spelled(self, name: str) -> str:
        """Return the name without brackets and ``<``, which XGBoost does not allow."""
        return name.translate(_UNDERSCORES)

    def exported(self, features: Sequence[StockFeature], *, named: bool) -> TrainedXGBoost:
        """Return the model over other features; ``default_left`` says where gaps go."""
        document, places = self._document(), places_of(features)
        for tree, node in _splits(document):
            place = places[tree["split_indices"][node]]
            feature, cut = features[place], tree["split_conditions"][node]
            tree["split_indices"][node] = place
            if feature.gap is not None:
                tree["default_left"][node] = int(feature.gap < cut)
            if feature.cut is not None:
                tree["split_conditions"][node] = _json_number(feature.cut(cut))
        learner = document["learner"]
        learner["feature_names"] = [f.name for f in features] if named else []
        learner["feature_types"] = []
        learner["learner_model_param"]["num_feature"] = str(len(features))
        return TrainedXGBoost(_loaded(document), self.task, len(features))

    def predict(self, X: Matrix) -> FloatArray:
        """Return probabilities or values."""
        return self._predicted(X, 0)

    @property
    def rounds(self) -> int:
        """The number of boosting rounds."""
        return int(self.native.num_boosted_rounds())

    def staged(self, X: Matrix, rounds: Sequence[int]) -> Iterator[FloatArray]:
        """Yield predictions with the first rounds only."""
        return (self._predicted(X, r) for r in rounds)

    def _predicted(self, X: Matrix, rounds: int) -> FloatArray:
        """Return predictions with the first rounds; 0 means all of them."""
        scores = self.native.inplace_predict(
            X, validate_features=False, iteration_range=(0, rounds)
        )
        out = np.asarray(scores, dtype=np.float64)
        if self.task == "binary" and out.ndim == 1:
            return np.column_stack([1 - out, out])
        return out

    def importance(self) -> FloatArray:
        """Return each feature's share of the total gain."""
        names = self.native.feature_names or [f"f{i}" for i in range(self.features)]
        score = self.native.get_score(importance_type="total_gain")
        return _normalised([float(np.sum(score.get(name, 0.0))) for name in names])

    def additive(self) -> AdditiveModel:
        """Return the trees as flat arrays; XGBoost stores leaf values in the array of cuts."""
        document = self._document()
        learner = document["learner"]
        booster = learner["gradient_booster"]
        inner = booster.get("gbtree", booster)["model"]
        weights = booster.get("weight_drop") or [1.0] * len(inner["trees"])
        found = [
            Tree(
                group,
                tree["split_indices"],
                np.float32(tree["split_conditions"]),
                tree["left_children"],
                tree["right_children"],
                tree["default_left"],
                np.float32(tree["split_conditions"]) * np.float64(weight),
            )
            for tree, group, weight in zip(inner["trees"], inner["tree_info"], weights, strict=True)
        ]
        if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in inner["trees"]):
            raise ParameterError("Trees with a vector in each leaf are not a sum over parties.")
        trees = FlatTrees.of(found, max(1, int(learner["learner_model_param"]["num_class"])))
        nothing = np.zeros((1, self.features), dtype=np.float32)
        start = self.native.inplace_predict(nothing, validate_features=False, predict_type="margin")
        base = np.asarray(start, dtype=np.float64).reshape(-1) - trees.sums(nothing)[0]
        return AdditiveModel(trees, base, _link(learner["objective"]["name"]))

    def save(self, path: Path, *, strip: bool = False) -> None:
        """Write XGBoost's JSON; ``strip`` zeroes ``sum_hessian``, which reveals a node's rows."""
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
        """Load a saved model; refuse one whose trees are not sound."""
        try:
            document = json.loads(path.read_bytes())
            _check(document, features)
            return cls(_loaded(document), task, features)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise unsound(f"it is not an XGBoost model ({type(error).__name__})") from None


_UNDERSCORES = str.maketrans(dict.fromkeys("[]<", "_"))

_LINKS = {
    **dict.fromkeys(("binary:logistic", "reg:logistic"), "logistic"),
    "multi:softprob": "softmax",
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "exp"),
    **dict.fromkeys(("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror"), "identity"),
}


def _link(objective: str) -> str:
    if objective not in _LINKS:
        raise ParameterError(
            f"By-party models and ONNX files have no link for the objective {objective!r}. Train "
            f"with one of {', '.join(_LINKS)}."
        )
    return _LINKS[objective]


def _trees(document: dict[str, Any]) -> list[dict[str, Any]]:
    booster = document["learner"]["gradient_booster"]
    inner = booster.get("gbtree", booster)  # dart wraps the plain form
    trees: list[dict[str, Any]] = inner["model"]["trees"]
    return trees


_NODES: dict[str, type | tuple[type, ...]] = {
    "left_children": int,
    "right_children": int,
    "split_indices": int,
    "split_type": int,
    "parents": int,
    "default_left": (int, bool),
    "split_conditions": (int, float),
    "base_weights": (int, float),
    "loss_changes": (int, float),
    "sum_hessian": (int, float),
}
"""The arrays with one entry per node in every tree, and the type of their entries."""


def _check(document: dict[str, Any], features: int) -> None:
    """Refuse trees that would make XGBoost read outside its memory."""
    learner = document["learner"]
    if int(learner["learner_model_param"]["num_feature"]) != features:
        raise unsound("its number of features is not its estimator's")
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise unsound("it is not a booster of trees")
    inner = booster.get("gbtree", booster)["model"]
    trees, groups = inner["trees"], max(1, int(learner["learner_model_param"]["num_class"]))
    if "weight_drop" in booster and len(booster["weight_drop"]) != len(trees):
        raise unsound("trees and their weights differ in number")
    if int(inner["gbtree_model_param"]["num_trees"]) != len(trees):
        raise unsound("some trees are missing")
    if len(inner["tree_info"]) != len(trees):
        raise unsound("trees and their classes differ in number")
    if not all(type(g) is int and 0 <= g < groups for g in inner["tree_info"]):
        raise unsound("a tree belongs to a class that does not exist")
    steps = inner.get("iteration_indptr", [0, len(trees)])
    if not all(type(s) is int for s in steps) or sorted(steps) != steps:
        raise unsound("its rounds are not in order")
    if steps and (steps[0] != 0 or steps[-1] != len(trees)):
        raise unsound("its rounds do not cover its trees")
    for place, tree in enumerate(trees):
        _check_nodes(tree, place, features)


def _check_nodes(tree: dict[str, Any], place: int, features: int) -> None:
    nodes = len(tree["left_children"])
    for name, kind in _NODES.items():
        if len(tree[name]) != nodes or not all(isinstance(v, kind) for v in tree[name]):
            raise unsound(f"{name} does not fit its tree")
    told = tree["tree_param"]
    if (int(told["num_nodes"]), int(told["num_feature"])) != (nodes, features):
        raise unsound("a tree does not have the number of nodes that it states")
    if int(told["size_leaf_vector"]) > 1 or tree["id"] != place:
        raise unsound("a tree is of an unknown kind")
    if any(tree["split_type"]) or any(tree.get(name) for name in _CATEGORIES):
        raise unsound("a tree splits by categories")
    pruned = {node for node, feature in enumerate(tree["split_indices"]) if feature == _PRUNED}
    if 0 in pruned or int(told["num_deleted"]) != len(pruned):
        raise unsound("its pruned nodes are not those that it states")
    left, right = (
        [-1 if node in pruned else child for node, child in enumerate(tree[name])]
        for name in ("left_children", "right_children")
    )
    if not pruned.isdisjoint(left + right):
        raise unsound("a node has a child that was pruned")
    asked = [0 if node in pruned else feature for node, feature in enumerate(tree["split_indices"])]
    check_tree(left, right, asked, features)


_PRUNED = 2**31 - 1
"""The feature number of a pruned node."""

_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def _splits(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield every numeric split: its tree, and the index of its node."""
    for tree in _trees(document):
        for node, child in enumerate(tree["left_children"]):
            if child != -1 and tree["split_type"][node] == 0:
                yield tree, node


def _loaded(document: dict[str, Any]) -> xgb.Booster:
    booster = xgb.Booster()
    booster.load_model(bytearray(json.dumps(document, ensure_ascii=False).encode()))
    return booster


def _json_number(value: float) -> float:
    """Return a number for JSON, which lacks infinity; the largest float splits rows as it would."""
    largest = float(np.finfo(np.float32).max)
    return min(max(value, -largest), largest)


def _normalised(scores: list[float]) -> FloatArray:
    total = sum(scores)
    return np.array(scores) / total if total else np.array(scores)
