"""The LightGBM booster, which edits trees in LightGBM's text format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np

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
from opboost.boosting.model_validation import check_tree, real_numbers, unsound, whole_numbers
from opboost.errors import ParameterError
from opboost.scores.flat_trees import LEAF, AdditiveModel, FlatTrees, Tree

_OBJECTIVES: dict[Task, str] = {
    "binary": "binary",
    "multiclass": "multiclass",
    "regression": "regression",
}
_CATEGORICAL = 1
"""The bit of ``decision_type`` that marks a split by category."""


@dataclass(frozen=True, slots=True)
class LightGBM:
    """``lightgbm.train``; every parameter passes through (``n_estimators``, default 80)."""

    params: dict[str, Any]
    CONTINUES: ClassVar = "TrainedLightGBM"
    TAKES_GROUPS: ClassVar = True

    def train(self, problem: Problem) -> TrainedLightGBM:
        """Train on a binned data set."""
        params = {"objective": _OBJECTIVES[problem.task], "verbosity": -1, **self.params}
        if params.get("zero_as_missing"):
            raise ParameterError(
                "zero_as_missing=True does not fit codes, of which 0 is a column's lowest value. "
                "Leave it out of booster_params."
            )
        rounds = int(params.pop("n_estimators", params.pop("num_iterations", 80)))
        if problem.task == "multiclass":
            params.setdefault("num_class", problem.classes)
        if problem.seed is not None:
            params.setdefault("seed", problem.seed)
            params.setdefault("deterministic", True)
            if "force_col_wise" not in params:  # otherwise LightGBM times both ways and picks one
                params.setdefault("force_row_wise", True)
        groups = None if problem.groups is None else [list(g) for g in problem.groups]
        params = constrained(params, "interaction_constraints", groups)
        data = lgb.Dataset(_dense(problem.matrix), problem.y, weight=problem.weight, params=params)
        valid: list[lgb.Dataset] = []
        callbacks: list[Any] = []
        if problem.eval_set is not None:
            X, y = problem.eval_set
            valid = [lgb.Dataset(_dense(X), y, reference=data, params=params)]
            if problem.early_stopping is not None:
                callbacks = [lgb.early_stopping(problem.early_stopping, verbose=False)]
        try:
            booster = lgb.train(
                params,
                data,
                rounds,
                valid_sets=valid,
                init_model=None if problem.continue_from is None else problem.continue_from.native,
                callbacks=callbacks,
            )
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
    checks_names: ClassVar = False
    floats: ClassVar = np.float64

    def cuts(self) -> dict[int, list[float]]:
        """Return the distinct thresholds of numeric splits."""
        found: dict[int, set[float]] = {}

        def note(feature: int, cut: float) -> float:
            found.setdefault(feature, set()).add(cut)
            return cut

        _edited(self.native.model_to_string(), note)
        return {feature: sorted(cuts) for feature, cuts in sorted(found.items())}

    def replaced(self, by: Mapping[int, Replace]) -> TrainedLightGBM:
        """Return the model with other thresholds, loaded from the edited text."""

        def swap(feature: int, cut: float) -> float:
            replace = by.get(feature)
            return cut if replace is None else replace(cut)

        text = _edited(self.native.model_to_string(), swap)
        return TrainedLightGBM(lgb.Booster(model_str=_without_ranges(text, by)), self.task)

    def spelled(self, name: str) -> str:
        """Return the name without spaces, which separate names, and without JSON's characters."""
        return _NOT_IN_NAMES.sub("_", name) or "_"

    def exported(self, features: Sequence[StockFeature], *, named: bool) -> TrainedLightGBM:
        """Return the model over other features; their names are always stored."""
        text = _with_features(self.native.model_to_string(), features, named=named)
        return TrainedLightGBM(lgb.Booster(model_str=text), self.task)

    def predict(self, X: Matrix) -> FloatArray:
        """Return probabilities or values."""
        return self._predicted(X, None)

    @property
    def rounds(self) -> int:
        """The number of boosting rounds."""
        return int(self.native.current_iteration())

    def staged(self, X: Matrix, rounds: Sequence[int]) -> Iterator[FloatArray]:
        """Yield predictions with the first rounds only."""
        return (self._predicted(X, r) for r in rounds)

    def _predicted(self, X: Matrix, rounds: int | None) -> FloatArray:
        out = np.asarray(self.native.predict(_dense(X), num_iteration=rounds), dtype=np.float64)
        return np.column_stack([1 - out, out]) if self.task == "binary" else out

    def importance(self) -> FloatArray:
        """Return each feature's share of the total gain."""
        gain = np.asarray(self.native.feature_importance("gain"), dtype=np.float64)
        return gain / gain.sum() if gain.sum() else gain

    def additive(self) -> AdditiveModel:
        """Return the trees as flat arrays: splits first, then leaves."""
        body = self.native.model_to_string().partition("\nend of trees\n")[0]
        blocks = [b for b in body.split("\n\n") if b.strip("\n")]
        head = _fields(blocks[0].removeprefix("tree\n"), _HEAD)
        groups = int(head["num_tree_per_iteration"])
        found = [_flat(_fields(b, None), k % groups) for k, b in enumerate(blocks[1:])]
        trees = FlatTrees.of(found, groups)
        nothing = np.zeros((1, self.native.num_feature()))
        start = np.asarray(self.native.predict(nothing, raw_score=True), dtype=np.float64)
        base = start.reshape(-1) - trees.sums(nothing)[0]
        return AdditiveModel(trees, base, _link(head.get("objective", "custom")))

    def save(self, path: Path, *, strip: bool = False) -> None:
        """Write LightGBM's text; ``strip`` sets counts and weights of nodes to zero."""
        text = self.native.model_to_string()
        path.write_text(_stripped(text) if strip else text)

    @classmethod
    def load(cls, path: Path, task: Task, features: int) -> TrainedLightGBM:
        """Load a saved model; refuse one whose trees are not sound."""
        try:
            text = path.read_bytes().decode()
            _check(text, features)
            return cls(lgb.Booster(model_str=text), task)
        except (UnicodeDecodeError, KeyError, lgb.basic.LightGBMError) as error:
            raise unsound(f"it is not a LightGBM model ({type(error).__name__})") from None


_LINKS = {
    "binary sigmoid:1": "logistic",
    "multiclass": "softmax",
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair"), "identity"),
}


def _link(objective: str) -> str:
    first = objective.split(" ")[0]
    found = _LINKS.get(objective) or _LINKS.get(first)
    if found is None or " sqrt" in objective:
        raise ParameterError(
            f"By-party models and ONNX files have no link for the objective {objective!r}. Train "
            f"with one of {', '.join(_LINKS)}."
        )
    return found


_MISSING_IS_NAN = 8
"""The bit of ``decision_type`` that marks a split where a gap goes the default way."""


def _flat(tree: dict[str, str], group: int) -> Tree:
    """Return one tree of the text, with its leaves (leaf k is child -k-1) after its splits."""
    leaves = [float(v) for v in tree["leaf_value"].split()]
    if len(leaves) == 1:
        return Tree(group, [0], [0.0], [LEAF], [LEAF], [False], leaves)
    splits = len(leaves) - 1
    kinds = np.array(tree["decision_type"].split(), dtype=np.int64)
    if (kinds & _CATEGORICAL).any() or ((kinds & 12) == 4).any():
        raise ParameterError("Trees that split by category or at zeros have no flat form.")
    cuts = np.array(tree["threshold"].split(), dtype=np.float64)
    # If training saw no gap, LightGBM treats a gap as zero.
    gap_left = np.where((kinds & 12) == _MISSING_IS_NAN, (kinds & 2) > 0, cuts >= 0)
    children = (
        [c if c >= 0 else splits - 1 - c for c in map(int, tree[side].split())]
        for side in ("left_child", "right_child")
    )
    left, right = ([*side, *[LEAF] * len(leaves)] for side in children)
    below = np.concatenate(
        [np.nextafter(cuts, np.inf), np.zeros(len(leaves))]
    )  # left up to and including the threshold
    return Tree(
        group,
        [*map(int, tree["split_feature"].split()), *[0] * len(leaves)],
        below,
        left,
        right,
        [*gap_left.tolist(), *[False] * len(leaves)],
        [*[0.0] * splits, *leaves],
    )


def _dense(X: Matrix) -> Matrix:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)


def _edited(text: str, change: Callable[[int, float], float]) -> str:
    """Return the model's text with ``change(feature, threshold)`` at every numeric split."""
    lines = text.split("\n")
    features: list[int] = []
    kinds: list[int] = []
    for i, line in enumerate(lines):
        key, _, rest = line.partition("=")
        if key == "split_feature":
            features = [int(v) for v in rest.split()]
        elif key == "decision_type":
            kinds = [int(v) for v in rest.split()]
            # The line of thresholds is just above that of decision_type.
            place = i - 1
            name, _, cuts = lines[place].partition("=")
            assert name == "threshold"
            changed = [
                cut if kind & _CATEGORICAL else _number(change(feature, float(cut)))
                for feature, cut, kind in zip(features, cuts.split(), kinds, strict=True)
            ]
            lines[place] = f"threshold={' '.join(changed)}"
        elif key == "tree_sizes":
            lines[i] = ""  # sizes have changed; without this line, trees are read one by one
    return "\n".join(line for i, line in enumerate(lines) if line or text.split("\n")[i] == "")


def _number(value: float) -> str:
    largest = float(np.finfo(np.float64).max)
    return repr(min(max(value, -largest), largest))


_NOT_IN_NAMES = re.compile(r"[\s\[\]{}\",:]")
_DEFAULT_LEFT = 2
"""The bit of ``decision_type`` that sends a missing value left."""


def _with_features(text: str, features: Sequence[StockFeature], *, named: bool) -> str:
    """Return the model's text over other features.

    Every numeric split states where NaN goes; otherwise LightGBM treats NaN as zero.
    """
    places, lines = places_of(features), text.split("\n")
    back = [f.place for f in features]
    split: list[int] = []
    for i, line in enumerate(lines):
        key, _, rest = line.partition("=")
        if key == "max_feature_idx":
            lines[i] = f"{key}={len(features) - 1}"
        elif key == "feature_names":
            names = [f.name if named else f"Column_{k}" for k, f in enumerate(features)]
            lines[i] = f"{key}={' '.join(names)}"
        elif key in ("feature_infos", "monotone_constraints"):
            told, none = rest.split(" "), "none" if key == "feature_infos" else "0"
            lines[i] = f"{key}={' '.join(none if p is None else told[p] for p in back)}"
        elif key == "split_feature":
            split = [places[int(v)] for v in rest.split()]
            lines[i] = f"{key}={' '.join(map(str, split))}"
        elif key == "decision_type":
            cuts = [float(v) for v in lines[i - 1].removeprefix("threshold=").split()]
            kinds = [
                _nan_told(int(kind), cut, features[f].gap)
                for f, cut, kind in zip(split, cuts, rest.split(), strict=True)
            ]
            lines[i] = f"{key}={' '.join(map(str, kinds))}"
    by = {k: f.cut for k, f in enumerate(features) if f.cut is not None}
    changed = _edited("\n".join(lines), lambda f, cut: by[f](cut) if f in by else cut)
    return _without_ranges(changed, by)


def _nan_told(kind: int, cut: float, gap: float | None) -> int:
    """Return a ``decision_type`` that sends NaN where it went before, or where ``gap`` goes."""
    if gap is not None:
        left = gap <= cut
    elif kind & _MISSING_IS_NAN:
        left = bool(kind & _DEFAULT_LEFT)
    else:
        left = cut >= 0  # LightGBM treated NaN as zero
    return _MISSING_IS_NAN | (_DEFAULT_LEFT if left else 0)


_HEAD = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("objective", "average_output", "feature_names", "monotone_constraints", "feature_infos"),
    "tree_sizes",
)
_PER_SPLIT = ("split_gain", "threshold", "internal_value", "internal_weight", "internal_count")
_PER_LEAF = ("leaf_value", "leaf_weight", "leaf_count")
_OBJECTIVE = re.compile(r"[a-z0-9_]+( [a-z0-9_]+(:\S+)?)*")
_PARAMETER = re.compile(
    r"\[[a-z0-9_]+: [^\[\]]*\]|\[interaction_constraints: \[[0-9,]*\](,\[[0-9,]*\])*\]"
)


def _check(text: str, features: int) -> None:
    """Refuse a text that would crash LightGBM, which trusts its own files."""
    if not text.isascii() or "\0" in text:
        raise unsound("it contains characters that no model has")
    body, end, rest = text.partition("\nend of trees\n")
    blocks = [b for b in body.split("\n\n") if b.strip("\n")]
    if not end or not blocks:
        raise unsound("it is cut short")
    head = _fields(blocks[0].removeprefix("tree\n"), _HEAD)
    if int(whole_numbers([head["max_feature_idx"]], 1, "max_feature_idx")[0]) != features - 1:
        raise unsound("its number of features is not its estimator's")
    if not _OBJECTIVE.fullmatch(head.get("objective", "custom")):
        raise unsound("its objective has no name")
    names, infos = head["feature_names"].split(" "), head["feature_infos"].split(" ")
    if len(names) != features or len(infos) != features:
        raise unsound("its features and their names differ in number")
    per_round, classes = (
        whole_numbers([head[name]], 1, name)[0] for name in ("num_tree_per_iteration", "num_class")
    )
    if per_round != classes or classes < 1 or (len(blocks) - 1) % per_round:
        raise unsound("a round does not have one tree per class")
    trees = [block.strip("\n") + "\n\n" for block in blocks[1:]]
    for place, tree in enumerate(trees):
        _check_fields(_fields(tree, None), place, features)
    if "tree_sizes" in head:
        sizes = whole_numbers(head["tree_sizes"].split(), len(trees), "tree_sizes")
        if sum(sizes) < 0 or any(not body[1:].count(f"Tree={k}\n") for k in range(len(trees))):
            raise unsound("its trees do not have the sizes that it states")
        _check_sizes(text, sizes)
    _check_rest(rest)


def _check_sizes(text: str, sizes: list[int]) -> None:
    """Refuse trees whose lengths the file misstates: LightGBM jumps from one to the next."""
    place = text.index("\nTree=0\n") + 1 if sizes else 0
    for number, size in enumerate(sizes):
        if size <= 0 or not text.startswith(f"Tree={number}\n", place):
            raise unsound("its trees do not have the sizes that it states")
        place += size
    if sizes and not text.startswith("end of trees\n", place):
        raise unsound("its trees do not have the sizes that it states")


def _fields(block: str, known: tuple[str, ...] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in block.strip("\n").split("\n"):
        key, _, value = line.partition("=")
        if key in found or (known is not None and key not in known):
            raise unsound(f"it has an unexpected line {key[:40]!r}")
        found[key] = value
    return found


def _check_fields(tree: dict[str, str], place: int, features: int) -> None:
    """Refuse a tree unless its arrays have the right length and its references exist."""
    number, leaves, categories, linear = (
        whole_numbers([tree[name]], 1, name)[0]
        for name in ("Tree", "num_leaves", "num_cat", "is_linear")
    )
    if number != place or leaves < 1 or categories or linear:
        raise unsound("a tree is of an unknown kind")
    real_numbers([tree["shrinkage"]], 1, "shrinkage")
    for name in _PER_LEAF:
        if leaves > 1 or tree.get(name):
            real_numbers(tree[name].split(), leaves, name)
    if leaves == 1:
        return
    for name in _PER_SPLIT:
        real_numbers(tree[name].split(), leaves - 1, name)
    split, left, right, kinds = (
        whole_numbers(tree[name].split(), leaves - 1, name)
        for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    if any(not 0 <= kind < 16 or kind & _CATEGORICAL for kind in kinds):
        raise unsound("a tree splits by categories")
    # Leaf k is child -k-1: number leaves after the splits, so that all nodes form one tree.
    plain = [[c if c >= 0 else leaves - 2 - c for c in side] for side in (left, right)]
    padding = [-1] * leaves
    check_tree(plain[0] + padding, plain[1] + padding, split + [0] * leaves, features)


def _check_rest(rest: str) -> None:
    """Refuse a text unless its end is importances, then bracketed parameters and no categories."""
    importances, _, parameters = rest.partition("\nparameters:\n")
    for line in filter(None, importances.split("\n")):
        name, sign, count = line.partition("=")
        if line != "feature_importances:" and not (name and sign and count.isdigit()):
            raise unsound("its importances cannot be read")
    settings, end, last = parameters.partition("\nend of parameters\n")
    if not end or last.strip() not in ("", "pandas_categorical:null"):
        raise unsound("the list of its parameters is cut short")
    if not all(_PARAMETER.fullmatch(line) for line in settings.split("\n") if line):
        raise unsound("its parameters cannot be read")


def _without_ranges(text: str, by: Mapping[int, Replace]) -> str:
    """Remove the ranges of replaced features, since they are ranges of codes."""
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
