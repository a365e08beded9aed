"""Boosted trees on desensitised columns, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from opboost._typing import FloatArray
from opboost.boosting.booster import Booster
from opboost.budgets.budget import Budget
from opboost.budgets.record_plan import RecordPlan
from opboost.estimators.boosted_base import BoostedBase
from opboost.estimators.eval_sets import one_pair
from opboost.randomness.streams import Rng
from opboost.training.denoised_rows import Choice
from opboost.training.targets import LabelKind, Target, as_numbers, label_kind

__all__ = ["OpBoostClassifier", "OpBoostRegressor", "kind_for"]


class OpBoostClassifier(ClassifierMixin, BoostedBase):  # type: ignore[misc]
    """A boosted classifier whose private columns are desensitised before training.

    Columns named in ``bounds`` or ``categories`` are private; all others are the label party's own.
    A text column of the label party becomes one feature per distinct text, of which it may have at
    most 64.  ``random_state`` seeds booster and denoiser; noise is cryptographic unless
    ``noise_rng`` is seeded.  ``denoise="auto"`` trains on posterior draws of the clean rows unless
    held-out noisy rows show that this hurts; ``True`` always trains on draws, and ``False`` on the
    noisy rows.  ``held_out=0.2`` also trains a second model on four fifths of the rows and scores
    it on the others; the model itself learns from all rows.

    Attributes:
        model_: The model in the booster's own format; it predicts tables with the training table's
            columns, in raw units.
        plan_: The plan of a record budget (``op.Budget.record``), or None.
        guarantee_: What is promised about one person's record.  If rows were released several
            times, here or in worker processes (by a search that refits, or as copies in
            ``eval_set`` or ``predict``), it adds up these releases.  Its caveats list what it could
            not count.
        releases_: The largest number of releases of any one row so far.
        classes_: The labels.
        denoised_: Whether the model was trained on posterior draws.
        verdict_: The held-out losses that ``denoise="auto"`` compared, or None.
        held_out_score_: The held-out scores with only the label party's columns and with all
            columns, or None.

    >>> import opboost as op
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> bounds = {"mean radius": (5, 30), "worst texture": (10, 50)}
    >>> clf = op.OpBoostClassifier(bounds=bounds, budget=op.Budget.record(4), booster="gbdt")
    >>> clf.fit(X, y).predict_proba(X[:2]).shape
    (2, 2)
    >>> clf.guarantee_.total
    4.0
    """

    def __init__(
        self,
        mechanism: Any = None,
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
        budget: Budget | RecordPlan | None = None,
        held_out: float = 0.0,
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
            held_out=held_out,
        )
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: tuple[Any, Any] | list[tuple[Any, Any]] | None = None,
        early_stopping_rounds: int | None = None,
        continue_from: Self | None = None,
    ) -> Self:
        """Desensitise the columns, train on their codes, and convert the trees' cuts to values.

        ``eval_set`` is ``(X, y)`` or ``[(X, y)]``; its private columns are released before the
        booster sees them.  If ``eval_set`` holds the training table itself, that table keeps its
        noise and is not released again.  ``continue_from`` is a fitted estimator of the same
        columns: trees for these new rows are added to its model, and a person who is in both tables
        is charged for both releases.
        """
        target, pair = Target.of_classes(y, sample_weight, self.class_weight), one_pair(eval_set)
        held_out = None if pair is None else (pair[0], target.codes_of(pair[1]))
        self._fit(X, target, held_out, early_stopping_rounds, continue_from)
        return self

    def predict_proba(self, X: Any, *, desensitize: bool = False) -> FloatArray:
        """Return probabilities, one column per class.

        ``desensitize`` releases the private columns first.
        """
        return self._predicted(X, desensitize)

    def predict(self, X: Any, *, desensitize: bool = False) -> np.ndarray[Any, Any]:
        """Return the likeliest class of each row."""
        chances = self.predict_proba(X, desensitize=desensitize)
        return np.asarray(self.classes_[chances.argmax(axis=1)])


class OpBoostRegressor(RegressorMixin, BoostedBase):  # type: ignore[misc]
    """A boosted regressor whose private columns are desensitised before training.

    Parameters and attributes are those of :class:`OpBoostClassifier`.  The booster's parameters can
    choose another loss: for counts ``{"objective": "count:poisson"}`` (XGBoost), ``{"objective":
    "poisson"}`` (LightGBM) or ``{"loss": "poisson"}`` (``"hist-gbdt"``); for amounts that are often
    zero, ``"reg:tweedie"`` (XGBoost) or ``"tweedie"`` (LightGBM).

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
        eval_set: tuple[Any, Any] | list[tuple[Any, Any]] | None = None,
        early_stopping_rounds: int | None = None,
        continue_from: Self | None = None,
    ) -> Self:
        """Desensitise the columns, train on their codes, and convert the trees' cuts to values."""
        target, pair = Target.of_numbers(y, sample_weight), one_pair(eval_set)
        held_out = None if pair is None else (pair[0], as_numbers(pair[1]))
        self._fit(X, target, held_out, early_stopping_rounds, continue_from)
        return self

    def predict(self, X: Any, *, desensitize: bool = False) -> FloatArray:
        """Return predicted values; ``desensitize`` releases the private columns first."""
        return self._predicted(X, desensitize)


def kind_for(
    y: np.ndarray[Any, Any], task: str
) -> type[OpBoostClassifier] | type[OpBoostRegressor]:
    """Return the estimator; ``"auto"`` takes text, booleans and two distinct numbers as classes."""
    return KINDS[label_kind(y, task)]


KINDS: dict[LabelKind, type[OpBoostClassifier] | type[OpBoostRegressor]] = {
    "classify": OpBoostClassifier,
    "regress": OpBoostRegressor,
}
"""The estimator of each kind of label."""
