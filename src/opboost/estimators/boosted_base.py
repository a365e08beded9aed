"""What boosted classifier and regressor share: releasing, learning, predicting, saving."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from opboost._typing import FloatArray
from opboost.boosting import Trained, make_booster
from opboost.boosting.booster import Booster
from opboost.budgets.budget import Budget
from opboost.budgets.release_counts import Travels
from opboost.budgets.release_terms import Terms
from opboost.columns.dataframes import column_names
from opboost.columns.private_column import PrivateColumn
from opboost.estimators.boosted_model import BoostedModel
from opboost.estimators.desensitizer import Desensitizer
from opboost.estimators.learner import FindValues, Learner, Learnt, Train
from opboost.promises import Joint, NoGuarantee
from opboost.protocol.stored_columns import StoredColumn
from opboost.randomness.streams import Rng, SecureRng
from opboost.training.denoised_rows import Choice, Denoised
from opboost.training.feature_matrix import Layout, OwnColumn, Released, check_sizes, own_columns
from opboost.training.targets import Target


class BoostedBase(Travels, BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor share."""

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
    ) -> None:
        self.mechanism = mechanism
        self.bounds = bounds
        self.categories = categories
        self.booster = booster
        self.booster_params = booster_params
        self.denoise = denoise
        self.random_state = random_state
        self.noise_rng = noise_rng
        self.verbose = verbose
        self.scale = scale
        self.mapping = mapping
        self.outside = outside
        self.missing = missing
        self.budget = budget

    def _fit(
        self,
        X: Any,
        target: Target,
        eval_set: tuple[Any, np.ndarray[Any, Any]] | None,
        early_stopping_rounds: int | None,
    ) -> None:
        release = self._desensitizer()
        table, released = release.fit_release(X)
        check_sizes(release.columns_)
        _check_lengths(len(next(iter(released.values()))[0].values), target.y)
        private = {c.name for c in release.columns_}
        own = own_columns(table, [n for n in column_names(table) if n not in private])
        layout = Layout(release.columns_, own)
        learnt = self._learner().learn(
            layout,
            table,
            dict(released),
            target,
            sent=release.sent,
            held_out=partial(_held_out, eval_set, release, layout),
            early_stopping=early_stopping_rounds,
        )
        self._settle(learnt, release)

    def _learner(self, train: Train | None = None, values: FindValues | None = None) -> Learner:
        """What trains by the parameters of now; ``train`` and ``values`` if others do that."""
        made = Learner(
            type(self).__name__,
            make_booster(self.booster, self.booster_params),
            self.denoise,
            self._seed(),
            self.verbose,
        )
        return replace(made, train=train or made.train, values=values or made.values)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _settle(self, learnt: Learnt, release: Desensitizer) -> None:
        self.denoised_, self.verdict_ = learnt.denoised, learnt.verdict
        model = learnt.model
        self._layout, self._posterior = model.layout, model.posterior
        self.trained_: Trained = model.trained
        self.desensitizer_ = release
        self.n_features_in_ = release.n_features_in_
        if hasattr(release, "feature_names_in_"):
            self.feature_names_in_ = release.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit_released(
        self,
        target: Target,
        own: Any,
        columns: tuple[PrivateColumn, ...],
        released: dict[Hashable, Sequence[Released]],
        promise: Joint,
        *,
        stored: Mapping[Hashable, Sequence[StoredColumn]] | None = None,
        sent: float | None = 1.0,
        train: Train | None = None,
        values: FindValues | None = None,
    ) -> None:
        """Train on columns that others released, in memory or on disk, beside one's own."""
        check_sizes(columns)
        names = [] if own is None else column_names(own)
        layout = Layout(columns, own_columns(own, names))
        learner = self._learner(train, values)
        if stored is not None:
            learnt = learner.learn_stored(layout, own, stored, target)
        else:
            learnt = learner.learn(layout, own, released, target, sent=sent)
        everything = (*names, *(c.name for c in columns))
        terms = Terms(columns, promise.columns_per_row, promise.caveats)
        release = Desensitizer.of_columns(
            columns, everything, named=True, rng=SecureRng(), released={terms: 1}
        )
        self._settle(learnt, release)

    def _desensitizer(self) -> Desensitizer:
        return Desensitizer(
            self.mechanism,
            bounds=self.bounds,
            categories=self.categories,
            scale=self.scale,
            mapping=self.mapping,
            outside=self.outside,
            missing=self.missing,
            budget=self.budget,
            remainder="own",
            noise_rng=self.noise_rng,
        )

    @property
    def _model(self) -> BoostedModel:
        check_is_fitted(self)
        return BoostedModel(self._layout, self.trained_, self._posterior)

    @property
    def guarantee_(self) -> Joint | NoGuarantee:
        """What is promised about one person's record, all known releases of these rows added up."""
        check_is_fitted(self)
        return self.desensitizer_.guarantee_

    @property
    def releases_(self) -> int:
        """How often any of the rows that this estimator released has been released by now."""
        check_is_fitted(self)
        return self.desensitizer_.account.releases

    @property
    def model_(self) -> Any:
        """The stock model (``xgboost.Booster``, ``lightgbm.Booster`` or a scikit-learn estimator).

        Its features are grid values, in the order of ``model_features_``.
        """
        check_is_fitted(self)
        return self.trained_.native

    @property
    def model_features_(self) -> list[str]:
        """The names of the stock model's features."""
        check_is_fitted(self)
        return self._layout.names()

    @property
    def private_columns_(self) -> tuple[PrivateColumn, ...]:
        """What is declared about the private columns, under the names that they have here."""
        check_is_fitted(self)
        return self._layout.private

    @property
    def own_columns_(self) -> tuple[OwnColumn, ...]:
        """The label party's own columns."""
        check_is_fitted(self)
        return self._layout.own

    @property
    def sent_share_(self) -> float | None:
        """The share of rows that sent each column, where predictions depend on it."""
        check_is_fitted(self)
        return None if self._posterior is None else self._posterior.sent

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each column was worth; one-hot features count for their column."""
        by_name = self._model.importances()
        return np.array([by_name[name] for name in column_order(self.desensitizer_)])

    def model_matrix(self, X: Any, *, desensitize: bool = False) -> np.ndarray[Any, Any]:
        """The rows as the stock model takes them: grid values beside own features."""
        check_is_fitted(self)
        if desensitize:
            table, released = self.desensitizer_.release(X)
            return self._layout.released_values(table, released)
        table, prepared = self.desensitizer_.prepare(X)
        return self._layout.plain_values(table, prepared)

    def _predicted(self, X: Any, desensitize: bool) -> FloatArray:
        check_is_fitted(self)
        if not desensitize:
            return self.trained_.predict(self.model_matrix(X))
        table, released = self.desensitizer_.release(X)
        return self._of_released(table, released)

    def _of_released(
        self, table: Any, released: Mapping[Hashable, Sequence[Released]]
    ) -> FloatArray:
        """Predictions for rows whose private columns were released, beside own columns."""
        return self._model.of_released(table, released)

    def save_model(
        self, path: str | Path, *, units: Literal["grid", "raw"] = "grid", strip: bool = False
    ) -> None:
        """Write the stock library's own file, which loads without us.

        ``units="raw"`` gives a model of raw values: a 32-bit raw value goes the way of its cell
        (values on an edge belong to the cell above, or below for ``mapping="paper"``).
        ``strip`` leaves out what tells how many training rows a node had.
        """
        self._model.save(Path(path), units=units, strip=strip)

    def save(self, path: str | Path) -> None:
        """Write the whole estimator (stock model and a small JSON); ``op.load`` reads it."""
        from opboost.estimators.saving import save

        check_is_fitted(self)
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trained_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = getattr(self.noise_rng, "secure", True)
        tags.input_tags.allow_nan = not (isinstance(self.missing, str) and self.missing == "raise")
        tags.input_tags.string = True
        return tags


def _held_out(
    eval_set: Any, release: Desensitizer, layout: Layout, books: Any, denoiser: Denoised | None
) -> tuple[Any, Any] | None:
    """Held-out rows as training sees rows: their private columns are released too."""
    if eval_set is None:
        return None
    X, y = eval_set
    table, released = release.release(X)
    own = layout.own_values(table, len(y))
    if denoiser is not None:
        released = denoiser.drawn(released, own, y, 1)
    values = layout.values(released, own).astype(np.float32)
    for feature, book in books.items():
        known = np.isfinite(values[:, feature])
        values[known, feature] = book.places(values[known, feature])
    return values, y


def column_order(release: Desensitizer) -> tuple[Hashable, ...]:
    """The columns of the table that a transformer was fitted on."""
    return release._plan.names


def _check_lengths(rows: int, y: np.ndarray[Any, Any]) -> None:
    if rows != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, len(y)]}"
        )
