"""scikit-learn's two gradient boosters, whose trees are edited in a copy of the model."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

from opboost._typing import FloatArray
from opboost.boosting.booster import (
    Matrix,
    Problem,
    Replace,
    StockFeature,
    Task,
    constrained,
    places_of,
)
from opboost.boosting.model_validation import check_tree, unsound
from opboost.boosting.skops_file import stable
from opboost.errors import DataError, ParameterError
from opboost.runtime.extras import needs_extra
from opboost.scores.flat_trees import LEAF, AdditiveModel, FlatTrees, Tree
from opboost.storage.archives import read_array, read_inner_archive

TREE_TYPES = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)
"""The types in a saved booster that skops does not trust by default."""


_WITHOUT_GAPS = (GradientBoostingClassifier, GradientBoostingRegressor)
"""Stock estimators that accept no missing values."""


@dataclass(frozen=True, slots=True)
class GradientBoosting:
    """``GradientBoostingClassifier`` / ``Regressor``, by default 80 trees of depth 3."""

    params: dict[str, Any]
    TAKES_GAPS: ClassVar = False

    def train(self, problem: Problem) -> TrainedSklearn:
        """Fit the stock estimator; refuse missing values, as it does itself."""
        if problem.matrix.dtype.kind == "f" and np.isnan(problem.matrix).any():
            raise DataError(
                "scikit-learn's GradientBoosting takes no missing values",
                hint="Use booster='hist-gbdt', 'xgboost' or 'lightgbm'.",
            )
        kind = (
            GradientBoostingRegressor
            if problem.task == "regression"
            else GradientBoostingClassifier
        )
        params = {"n_estimators": 80, "random_state": problem.seed, **self.params}
        if problem.early_stopping is not None:
            params.setdefault("n_iter_no_change", problem.early_stopping)
        model = kind(**params)
        model.fit(problem.matrix.astype(np.float32), problem.y, sample_weight=problem.weight)
        return TrainedSklearn(model, problem.task)


@dataclass(frozen=True, slots=True)
class HistGradientBoosting:
    """``HistGradientBoostingClassifier`` / ``Regressor``, by default 80 rounds."""

    params: dict[str, Any]
    TAKES_GROUPS: ClassVar = True

    def train(self, problem: Problem) -> TrainedSklearn:
        """Fit the stock estimator, which accepts missing values."""
        kind = (
            HistGradientBoostingRegressor
            if problem.task == "regression"
            else HistGradientBoostingClassifier
        )
        params = {"max_iter": 80, "random_state": problem.seed, "early_stopping": False}
        params |= self.params
        groups = None if problem.groups is None else [set(g) for g in problem.groups]
        params = constrained(params, "interaction_cst", groups)
        held_out: dict[str, Any] = {}
        if problem.early_stopping is not None and problem.eval_set is not None:
            params |= {"early_stopping": True, "n_iter_no_change": problem.early_stopping}
            X, y = problem.eval_set
            held_out = {"X_val": X.astype(np.float64), "y_val": y}
        model = kind(**params)
        rows = problem.matrix.astype(np.float64)
        model.fit(rows, problem.y, sample_weight=problem.weight, **held_out)
        return TrainedSklearn(model, problem.task)


@dataclass(frozen=True, slots=True)
class TrainedSklearn:
    """A fitted scikit-learn estimator."""

    native: Any
    task: Task
    left_up_to = True
    checks_names: ClassVar = True

    def cuts(self) -> dict[int, list[float]]:
        """Return the distinct thresholds of numeric splits."""
        found: dict[int, set[float]] = {}
        for features, thresholds in _splits(self.native):
            for feature, cut in zip(features.tolist(), thresholds.tolist(), strict=True):
                found.setdefault(feature, set()).add(cut)
        return {feature: sorted(cuts) for feature, cuts in sorted(found.items())}

    def replaced(self, by: Mapping[int, Replace]) -> TrainedSklearn:
        """Return a copy with other thresholds."""
        model = copy.deepcopy(self.native)
        for tree in trees_of(model):
            features, thresholds, inner = tree
            for node in np.flatnonzero(inner):
                replace = by.get(int(features[node]))
                if replace is not None:
                    thresholds[node] = replace(float(thresholds[node]))
        return TrainedSklearn(model, self.task)

    @property
    def floats(self) -> type[np.floating[Any]]:
        """32-bit floats for GradientBoosting, 64-bit floats for HistGradientBoosting."""
        return np.float32 if hasattr(self.native, "estimators_") else np.float64

    def spelled(self, name: str) -> str:
        """Return the name itself: scikit-learn accepts any name."""
        return name

    def exported(self, features: Sequence[StockFeature], *, named: bool) -> TrainedSklearn:
        """Return a copy over other features; a GradientBoosting model refuses gaps by itself."""
        model, places = copy.deepcopy(self.native), places_of(features)
        for used, thresholds, inner, gaps_left in _nodes_of(model):
            for node in np.flatnonzero(inner):
                place, cut = places[int(used[node])], float(thresholds[node])
                feature, used[node] = features[place], place
                if feature.gap is not None and gaps_left is not None:
                    gaps_left[node] = feature.gap <= cut
                if feature.cut is not None:
                    thresholds[node] = feature.cut(cut)
        model.n_features_in_ = len(features)
        if named:
            model.feature_names_in_ = np.array([f.name for f in features], dtype=object)
        return TrainedSklearn(model, self.task)

    def predict(self, X: Matrix) -> FloatArray:
        """Return probabilities or values."""
        data = X if X.dtype.kind == "f" else X.astype(np.float32)
        if isinstance(self.native, _WITHOUT_GAPS) and np.isnan(data).any():
            raise DataError(
                "A row has a gap, and scikit-learn's GradientBoosting takes no missing values",
                hint="Fill the gaps, or train with booster='hist-gbdt', 'xgboost' or 'lightgbm'.",
            )
        if self.task == "regression":
            return np.asarray(self.native.predict(data), dtype=np.float64)
        return np.asarray(self.native.predict_proba(data), dtype=np.float64)

    @property
    def rounds(self) -> int:
        """The number of boosting rounds."""
        return int(getattr(self.native, "n_iter_", 0) or len(self.native.estimators_))

    def staged(self, X: Matrix, rounds: Sequence[int]) -> Iterator[FloatArray]:
        """Yield predictions with the first rounds only."""
        regression = self.task == "regression"
        stages = self.native.staged_predict if regression else self.native.staged_predict_proba
        data = X if X.dtype.kind == "f" else X.astype(np.float32)
        for number, found in enumerate(stages(data), start=1):
            if number in rounds:
                yield np.asarray(found, dtype=np.float64)

    def importance(self) -> FloatArray:
        """Return the stock importances; shares of the total gain if the estimator has none."""
        stock = getattr(self.native, "feature_importances_", None)
        if stock is not None:
            return np.asarray(stock, dtype=np.float64)
        gain = np.zeros(self.native.n_features_in_)
        for predictor in (p for rounds in self.native._predictors for p in rounds):
            splits = predictor.nodes[predictor.nodes["is_leaf"] == 0]
            np.add.at(gain, splits["feature_idx"].astype(int), splits["gain"])
        return gain / gain.sum() if gain.sum() else gain

    def additive(self) -> AdditiveModel:
        """Return the trees as flat arrays."""
        if not hasattr(self.native, "_predictors"):
            return self._additive_gbdt()
        rounds = self.native._predictors
        groups = len(rounds[0]) if rounds else 1
        found = [_flat(p.nodes, k) for predictors in rounds for k, p in enumerate(predictors)]
        base = np.asarray(self.native._baseline_prediction, dtype=np.float64).reshape(-1)
        link = {"binary": "logistic", "multiclass": "softmax"}.get(self.task, "identity")
        if self.task == "regression" and self.native.loss in ("poisson", "gamma"):
            link = "exp"
        return AdditiveModel(FlatTrees.of(found, groups), base, link)

    def _additive_gbdt(self) -> AdditiveModel:
        """Return the trees of ``GradientBoosting``, which compares 32-bit floats."""
        if self.native.loss == "exponential":
            raise ParameterError(
                "Sums of leaves under the loss 'exponential' have no link in OpBoost."
            )
        rate = self.native.learning_rate
        found = [
            _flat_gbdt(estimator.tree_, group, rate)
            for stage in self.native.estimators_
            for group, estimator in enumerate(stage)
        ]
        trees = FlatTrees.of(found, self.native.estimators_.shape[1])
        nothing = np.zeros((1, self.native.n_features_in_), dtype=np.float32)
        start = self.native.predict if self.task == "regression" else self.native.decision_function
        base = np.asarray(start(nothing), dtype=np.float64).reshape(-1) - trees.sums(nothing)[0]
        link = {"binary": "logistic", "multiclass": "softmax"}.get(self.task, "identity")
        return AdditiveModel(trees, base, link)

    def save(self, path: Path, *, strip: bool = False) -> None:
        """Write skops' file, which runs no code when loaded; equal models give equal bytes."""
        with needs_extra("boost", "A file of this model"):
            import skops.io as sio

        model = _stripped(self.native) if strip else self.native
        path.write_bytes(stable(sio.dumps(model)))

    @classmethod
    def load(cls, path: Path, task: Task, features: int) -> TrainedSklearn:
        """Load a saved model; refuse a file with anything but scikit-learn's trees."""
        import skops.io as sio

        data = path.read_bytes()
        _check_members(read_inner_archive(data))
        strange = sorted(set(sio.get_untrusted_types(data=data)) - set(TREE_TYPES))
        if strange:
            raise DataError(
                f"The model file holds types that OpBoost never writes: {', '.join(strange)}",
                hint="It was not saved by OpBoost; do not load it.",
            )
        model = sio.loads(data, trusted=list(TREE_TYPES))
        _check(model, features)
        return cls(model, task)


_KINDS = (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


_SCHEMA = "schema.json"


def _check_members(members: Mapping[str, bytes]) -> None:
    """Refuse arrays that are larger than the file, or that skops would read again and again."""
    for name, data in members.items():
        if name != _SCHEMA:
            read_array(data)
    owners: dict[str, Any] = {}
    nodes: list[Any] = [json.loads(members[_SCHEMA])]
    while nodes:
        node = nodes.pop()
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and isinstance(node.get("file"), str):
            owner = node.get("__id__")
            if owner is None or owners.setdefault(node["file"], owner) != owner:
                raise unsound("two of its parts share an array")


def _check(model: Any, features: int) -> None:
    """Refuse trees that would make compiled loops read outside their memory."""
    if type(model) not in _KINDS or model.n_features_in_ != features:
        raise unsound("it does not match its estimator")
    if hasattr(model, "estimators_"):
        if model.estimators_.ndim != 2 or not model.estimators_.size:
            raise unsound("it has no trees")
        for estimator in model.estimators_.ravel():
            tree = estimator.tree_
            if (tree.n_features, tree.n_outputs, tree.max_n_classes) != (features, 1, 1):
                raise unsound("the features of a tree are not its estimator's")
            check_tree(tree.children_left, tree.children_right, tree.feature, features)
        return
    for predictor in (p for rounds in model._predictors for p in rounds):
        _check_nodes(predictor, features)


def _check_nodes(predictor: Any, features: int) -> None:
    nodes = predictor.nodes
    if nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1 or nodes["is_categorical"].any():
        raise unsound("a tree is of an unknown kind")
    leaf = nodes["is_leaf"].astype(bool)
    left = np.where(leaf, -1, nodes["left"].astype(np.int64))
    right = np.where(leaf, -1, nodes["right"].astype(np.int64))
    check_tree(left, right, nodes["feature_idx"].astype(np.int64), features)


def _flat(nodes: Any, group: int) -> Tree:
    """Return a tree of ``HistGradientBoosting``, which goes left for ``value <= threshold``."""
    leaf = nodes["is_leaf"].astype(bool)
    return Tree(
        group,
        nodes["feature_idx"].astype(np.int64),
        np.nextafter(nodes["num_threshold"].astype(np.float64), np.inf),
        np.where(leaf, LEAF, nodes["left"].astype(np.int64)),
        np.where(leaf, LEAF, nodes["right"].astype(np.int64)),
        nodes["missing_go_to_left"].astype(bool),
        nodes["value"].astype(np.float64),
    )


def _flat_gbdt(tree: Any, group: int, rate: float) -> Tree:
    """Return a tree of ``GradientBoosting``, which accepts no gaps."""
    return Tree(
        group,
        np.maximum(tree.feature, 0),
        np.nextafter(tree.threshold, np.inf),
        tree.children_left,
        tree.children_right,
        np.zeros(tree.node_count, dtype=bool),
        tree.value[:, 0, 0] * rate,
    )


Array = np.ndarray[Any, Any]


Nodes = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def trees_of(model: Any) -> Iterator[Nodes]:
    """Yield each tree's features, its thresholds (writable) and its numeric splits."""
    return (nodes[:3] for nodes in _nodes_of(model))


def _nodes_of(model: Any) -> Iterator[tuple[Array, Array, Array, Array | None]]:
    """Yield what :func:`trees_of` yields, and which nodes send gaps left, if gaps are accepted."""
    if hasattr(model, "estimators_"):
        for tree in (t.tree_ for t in model.estimators_.ravel()):
            yield tree.feature, tree.threshold, tree.children_left != -1, None
        return
    for predictor in (p for rounds in model._predictors for p in rounds):
        nodes = predictor.nodes
        inner = (nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)
        gaps_left = nodes["missing_go_to_left"]
        yield nodes["feature_idx"], nodes["num_threshold"], inner, gaps_left


def _splits(model: Any) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    for features, thresholds, inner in trees_of(model):
        yield features[inner], thresholds[inner]


def _stripped(model: Any) -> Any:
    """Return a copy whose nodes do not reveal how many rows they had."""
    bare = copy.deepcopy(model)
    if hasattr(bare, "estimators_"):
        for tree in (t.tree_ for t in bare.estimators_.ravel()):
            tree.n_node_samples[:] = 0
            tree.weighted_n_node_samples[:] = 0
        return bare
    for predictor in (p for rounds in bare._predictors for p in rounds):
        predictor.nodes["count"] = 0
    return bare
