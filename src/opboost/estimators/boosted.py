"""Boosted trees on desensitised columns, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from opboost._typing import FloatArray
from opboost.boosting import Task
from opboost.boosting.booster import Booster
from opboost.budgets.budget import Budget
from opboost.columns.codebook import distinct, numbered
from opboost.errors import DataError, ParameterError
from opboost.estimators.boosted_base import BoostedBase
from opboost.randomness.streams import Rng
from opboost.training.denoised_rows import Choice
from opboost.training.feature_matrix import Released
from opboost.training.targets import Target, as_codes, as_column, as_numbers, as_weights

__all__ = ["OpBoostClassifier", "OpBoostRegressor", "kind_for"]


class OpBoostClassifier(ClassifierMixin, BoostedBase):  # type: ignore[misc]
    """A boosted classifier whose private columns are desensitised before training.

    Columns named in ``bounds`` or ``categories`` are private; all others are the label party's own.
    An own column of texts becomes a feature for each text; with more than 64 it is refused.
    ``random_state`` seeds booster and denoiser; noise is cryptographic unless ``noise_rng`` is
    seeded.  ``denoise="auto"`` trains on posterior draws of the clean rows where held-out noisy
    rows do not speak against it; ``True`` always does, ``False`` trains on rows as they came.

    Attributes:
        model_: The stock model, in grid values.
        guarantee_: What is promised about one person's record.  Rows that were released several
            times (a search that refits, copies in ``eval_set`` or ``predict``), here or in worker
            processes, count several times; caveats say what the count cannot know.
        releases_: How often any of the rows has been released by now.
        classes_: The labels.
        denoised_: Whether the model was trained on posterior draws.
        verdict_: The held-out losses that ``denoise="auto"`` compared, or None.

    >>> import opboost as op
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> bounds = {"mean radius": (5, 30), "worst texture": (10, 50)}
    >>> clf = op.OpBoostClassifier(m, bounds=bounds, booster="gbdt", random_state=0).fit(X, y)
    >>> clf.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        mechanism: Any,
        *,
        bounds: Any = None,
        categories: Any = None,
        booster: str | Booster = "xgboost",
        booster_params: dict[str, Any] | None = None,
        denoise: Choice = "auto",
        random_state: Any = None,
        noise_rng: Rng | None = None,
        verbose: int = 0,
        scale: Any = "linear",
        mapping: Any = "cells",
        outside: Any = "clamp",
        missing: Any = "raise",
        budget: Budget | None = None,
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            mechanism,
            bounds=bounds,
            categories=categories,
            booster=booster,
            booster_params=booster_params,
            denoise=denoise,
            random_state=random_state,
            noise_rng=noise_rng,
            verbose=verbose,
            scale=scale,
            mapping=mapping,
            outside=outside,
            missing=missing,
            budget=budget,
        )
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: tuple[Any, Any] | None = None,
        early_stopping_rounds: int | None = None,
    ) -> Self:
        """Desensitise, train on codes, and put values in the place of cuts.

        ``eval_set`` is ``(X, y)``; its private columns are released before the booster sees them.
        The training table itself is not released again: it keeps its noise.
        """
        target, classes = self._target(y, sample_weight)
        held_out = None
        if eval_set is not None:
            held_out = eval_set[0], as_codes(classes, as_column(eval_set[1]))
        self._fit(X, target, held_out, early_stopping_rounds)
        self.classes_ = classes
        return self

    def fit_released(self, y: Any, own: Any, *release: Any, **steps: Any) -> Self:
        """Train on columns that others released; see ``op.LabelParty``, which calls this."""
        target, classes = self._target(y, None)
        self._fit_released(target, own, *release, **steps)
        self.classes_ = classes
        return self

    def _target(self, y: Any, sample_weight: Any) -> tuple[Target, np.ndarray[Any, Any]]:
        labels = as_column(y)
        check_classification_targets(labels)
        classes, coded = numbered(labels)
        if not len(classes):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if len(classes) < 2:
            raise DataError("The label holds one class only; a classifier needs two")
        weight = as_weights(sample_weight, labels, self.class_weight)
        task: Task = "binary" if len(classes) == 2 else "multiclass"
        return Target(coded, task, len(classes), weight), classes

    def predict_proba(self, X: Any, *, desensitize: bool = False) -> FloatArray:
        """Probabilities, one column a class; ``desensitize`` releases the private columns first."""
        return self._predicted(X, desensitize)

    def predict(self, X: Any, *, desensitize: bool = False) -> np.ndarray[Any, Any]:
        """The likeliest class."""
        chances = self.predict_proba(X, desensitize=desensitize)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def predict_proba_released(
        self, own: Any, released: Mapping[Hashable, Sequence[Released]]
    ) -> FloatArray:
        """Probabilities for rows whose private columns others released; see ``op.LabelParty``."""
        return self._of_released(own, released)


class OpBoostRegressor(RegressorMixin, BoostedBase):  # type: ignore[misc]
    """A boosted regression whose private columns are desensitised before training.

    Parameters and attributes are those of :class:`OpBoostClassifier`; another loss is the
    booster's affair (``booster_params={"objective": "reg:absoluteerror"}`` for XGBoost).

    >>> import opboost as op
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> reg = op.OpBoostRegressor(m, bounds={"bmi": (15, 45)}, booster="gbdt", random_state=0)
    >>> reg.fit(X, y).predict(X[:3]).shape
    (3,)
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: tuple[Any, Any] | None = None,
        early_stopping_rounds: int | None = None,
    ) -> Self:
        """Desensitise, train on codes, and put values in the place of cuts."""
        numbers = as_numbers(y)
        target = Target(numbers, "regression", 0, as_weights(sample_weight, numbers, None))
        held_out = None if eval_set is None else (eval_set[0], as_numbers(eval_set[1]))
        self._fit(X, target, held_out, early_stopping_rounds)
        return self

    def fit_released(self, y: Any, own: Any, *release: Any, **steps: Any) -> Self:
        """Train on columns that others released; see ``op.LabelParty``, which calls this."""
        self._fit_released(Target(as_numbers(y), "regression", 0, None), own, *release, **steps)
        return self

    def predict(self, X: Any, *, desensitize: bool = False) -> FloatArray:
        """Predicted values; ``desensitize`` releases the private columns first."""
        return self._predicted(X, desensitize)

    def predict_released(
        self, own: Any, released: Mapping[Hashable, Sequence[Released]]
    ) -> FloatArray:
        """Values for rows whose private columns others released; see ``op.LabelParty``."""
        return self._of_released(own, released)


def kind_for(
    y: np.ndarray[Any, Any], task: str
) -> type[OpBoostClassifier] | type[OpBoostRegressor]:
    """Which estimator a label needs: text, truth values and two different numbers are classes."""
    kinds = {"classify": OpBoostClassifier, "regress": OpBoostRegressor}
    classes = y.dtype.kind in "OUSb" or len(distinct(y)) == 2
    kinds["auto"] = OpBoostClassifier if classes else OpBoostRegressor
    if task not in kinds:
        raise ParameterError(f"task must be 'auto', 'classify' or 'regress'; got {task!r}.")
    return kinds[task]
