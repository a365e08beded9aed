"""What the boosted classifier and regressor share: releasing, training, predicting, saving."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from opboost._typing import BoolArray, FloatArray
from opboost.boosting import Trained
from opboost.boosting.booster import Booster, Exportable, Matrix, StockFeature
from opboost.boosting.label_rules import check_label
from opboost.budgets.budget import Budget, RecordBudget
from opboost.budgets.record_plan import RecordPlan, stated_budget
from opboost.budgets.release_counts import Travels
from opboost.budgets.release_terms import Counted
from opboost.columns.dataframes import is_frame, table_like
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.errors import ParameterError
from opboost.estimators.desensitizer import Desensitizer
from opboost.estimators.remembered_table import Release
from opboost.promises import Joint, NoGuarantee
from opboost.randomness.streams import Rng, SecureRng
from opboost.training.column_origins import Origins
from opboost.training.column_weights import column_weights
from opboost.training.continued_model import check_same_columns, check_same_labels
from opboost.training.denoised_rows import Choice
from opboost.training.feature_matrix import OwnColumn, OwnTable
from opboost.training.held_out_score import HeldOutScore, checked_share
from opboost.training.onnx_file import onnx_inputs, save_onnx
from opboost.training.released_columns import ReleasedColumn, from_sample
from opboost.training.score_training import train_and_score
from opboost.training.stock_features import (
    Units,
    raw_values,
    stock_columns,
    stock_features,
)
from opboost.training.targets import Target
from opboost.training.train_model import HeldOut
from opboost.training.trained_model import TrainedModel
from opboost.training.training_settings import TrainingSettings

Fitted = TypeVar("Fitted", bound="BoostedBase")


class BoostedBase(Travels, BaseEstimator):  # type: ignore[misc]
    """The base class of the boosted classifier and regressor."""

    label_column_: str | None = None
    """The name of the label column, if the model was trained on a file."""

    scores_later_: float = 0.0
    """The most that scores released for predictions may reveal about a person, in addition."""

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
        self.held_out = held_out

    def _fit(
        self,
        X: Any,
        target: Target,
        eval_set: tuple[Any, np.ndarray[Any, Any]] | None,
        early_stopping_rounds: int | None,
        continue_from: BoostedBase | None = None,
    ) -> None:
        share = checked_share(self.held_out)
        earlier = None if continue_from is None else continue_from.trained_model_
        settings = TrainingSettings.of(
            self.booster,
            self.booster_params,
            self.denoise,
            self.random_state,
            early_stopping=early_stopping_rounds,
            verbose=self.verbose,
            name=type(self).__name__,
            continue_from=earlier,
        )
        if earlier is not None:
            check_same_labels(earlier, target.labels, target.task)
        if target.labels is None:
            check_label(self.booster_params, target.y)
        release = self._desensitizer()
        budget = stated_budget(self.budget)
        if isinstance(budget, RecordBudget) and budget.awaits_weights:
            budget.check_pilot_rows(len(target.y))

        def weigh(shown: Release, first: BoolArray) -> dict[Hashable, float]:
            pilot = from_sample(release.columns_, shown, release.sent)
            return column_weights(pilot, target.where(first))

        def check(table: Any, private: Sequence[PrivateColumn]) -> None:
            if earlier is not None:  # a refused table is not counted as released
                own = OwnTable.of(table, without=[c.name for c in private])
                check_same_columns(earlier, private, own)

        table, released = release.fit_release(X, weigh, check)
        columns = from_sample(release.columns_, released, release.sent)
        _check_lengths(len(columns[0]), target.y)
        own = OwnTable.of(table, without=[c.name for c in release.columns_])
        held_out = None
        if eval_set is not None:  # its private columns are released too
            seen, held = _released(release, eval_set[0])
            held_out = HeldOut(held, seen, eval_set[1])
        model = train_and_score(columns, own, target, settings, held_out, share)
        if continue_from is not None:
            release.account.add_earlier(continue_from.desensitizer_.account.counted())
        self._hold(model, release)

    def _hold(
        self, model: TrainedModel, release: Desensitizer, origins: Origins | None = None
    ) -> None:
        """Adopt a finished model and the release that it was trained on."""
        self._model, self.origins_ = model, origins or Origins()
        self.__dict__.pop("_stock", None)
        if model.denoised is not None:
            self.denoised_, self.verdict_ = model.denoised, model.verdict
        if model.labels is not None:
            self.classes_ = model.labels
        self.desensitizer_ = release
        self.n_features_in_ = release.n_features_in_
        if hasattr(release, "feature_names_in_"):
            self.feature_names_in_ = release.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _desensitizer(self) -> Desensitizer:
        budget = self.budget
        if isinstance(budget, RecordBudget) and budget.task is None:
            budget = replace(budget, task="classify" if is_classifier(self) else "regress")
        return Desensitizer(
            self.mechanism,
            bounds=self.bounds,
            categories=self.categories,
            scale=self.scale,
            mapping=self.mapping,
            outside=self.outside,
            missing=self.missing,
            budget=budget,
            remainder="own",
            noise_rng=self.noise_rng,
        )

    @property
    def trained_model_(self) -> TrainedModel:
        """The model, the layout of its features, and how it predicts desensitised rows."""
        check_is_fitted(self)
        return self._model

    @property
    def held_out_score_(self) -> HeldOutScore | None:
        """The score of the model on held-out rows; None if no rows were held out."""
        return self.trained_model_.score

    @property
    def trained_(self) -> Trained:
        """The stock model, wrapped in the interface that all boosters share."""
        return self.trained_model_.trained

    @property
    def guarantee_(self) -> Joint | NoGuarantee:
        """What is promised about one person's record over all known releases of these rows."""
        check_is_fitted(self)
        return self.desensitizer_.guarantee_

    @property
    def plan_(self) -> RecordPlan | None:
        """The plan of a record budget: which columns are sent for a person, and how."""
        check_is_fitted(self)
        return self.desensitizer_.plan_

    @property
    def column_weights_(self) -> dict[Hashable, float] | None:
        """The column weights that a pilot found (``Budget.record(4, pilot=0.1)``), or None."""
        check_is_fitted(self)
        return self.desensitizer_.column_weights_

    @property
    def releases_(self) -> int:
        """The largest number of times that any one row has been released so far."""
        check_is_fitted(self)
        return self.desensitizer_.account.releases

    @property
    def model_(self) -> Any:
        """The stock model (``xgboost.Booster``, ``lightgbm.Booster`` or a scikit-learn estimator).

        It takes tables with the training table's columns: the same names, in the same order, in
        raw units.  :meth:`model_matrix` says which columns it expects in another form.
        """
        return self.stock_model()

    def stock_model(self, *, units: Units = "raw") -> Any:
        """Return the stock model in raw units, or in the grid values of released rows.

        If you passed a booster object of your own, its model stays as it was trained: in grid
        values, private columns first.
        """
        if not isinstance(self.trained_, Exportable):
            return self.trained_.native
        return self._exported(units).native

    @property
    def model_features_(self) -> list[str]:
        """The names of the stock model's features."""
        if not isinstance(self.trained_, Exportable):
            return self.trained_model_.layout.names()
        return [f.name for f in self._stock_features("raw")]

    def _stock_features(self, units: Units) -> list[StockFeature]:
        trained = self.trained_
        if not isinstance(trained, Exportable):
            raise ParameterError(
                f"A model of your own booster ({type(trained).__name__}) has no form in other "
                "units: it has no exported(). Use clf.stock_model(), in grid values."
            )
        layout, order = self.trained_model_.layout, column_order(self.desensitizer_)
        return stock_features(trained, layout, order, self.origins_, units)

    def _is_named(self, features: Sequence[StockFeature]) -> bool:
        """Return whether the stock model stores feature names; a model for arrays does not."""
        names = [str(name) for name in column_order(self.desensitizer_)]
        return hasattr(self, "feature_names_in_") or [f.name for f in features] != names

    def _exported(self, units: Units) -> Trained:
        """Return the stock model in these units, built on first use."""
        made: dict[str, Trained] = self.__dict__.setdefault("_stock", {})
        if units not in made:
            features = self._stock_features(units)
            assert isinstance(self.trained_, Exportable)
            made[units] = self.trained_.exported(features, named=self._is_named(features))
        return made[units]

    @property
    def private_columns_(self) -> tuple[PrivateColumn, ...]:
        """The declarations of the private columns, under the names of the training table."""
        return self.trained_model_.layout.private

    @property
    def own_columns_(self) -> tuple[OwnColumn, ...]:
        """The label party's own columns."""
        return self.trained_model_.layout.own

    @property
    def sent_shares_(self) -> dict[Hashable, float] | None:
        """The share of rows for which each column is sent; None if predictions ignore it."""
        return self.trained_model_.sent_shares()

    @property
    def feature_importances_(self) -> FloatArray:
        """The importance of each column; one-hot features count towards their column."""
        by_name = self.trained_model_.importances()
        return np.array([by_name[name] for name in column_order(self.desensitizer_)])

    def model_matrix(self, X: Any, *, units: Units = "raw", desensitize: bool = False) -> Any:
        """Return the rows in the form that the stock model expects: a table of its features.

        Numbers stay in raw units under their name.  A column of categories becomes one feature per
        category (``city=north``).  Ordered categories, and columns whose party withholds its units,
        become cell numbers (``size (grid)``); with ``units="grid"``, all numeric private columns
        do.  ``desensitize`` releases the private columns first, which gives grid values.
        """
        features = self._stock_features(units)
        if desensitize:
            if units != "grid":
                raise ParameterError(
                    "Released rows hold grid values. Add units='grid' to desensitize=True; "
                    "clf.stock_model(units='grid') is the model that takes them."
                )
            matrix, raw = self._released_values(X), {}
        else:
            table, prepared = self.desensitizer_.prepare(X)
            matrix = self._plain_values(table, prepared)
            layout = self.trained_model_.layout
            raw = raw_values(layout, self.origins_, table, prepared) if units == "raw" else {}
        columns = stock_columns(features, matrix, raw)
        if not is_frame(X) and not self._is_named(features):
            return np.column_stack(list(columns.values()))
        return table_like(X, columns)

    def _plain_values(self, table: Any, prepared: Mapping[Hashable, Prepared]) -> Matrix:
        """Return the rows, without noise, as features in grid values."""
        model = self.trained_model_
        floats = getattr(model.trained, "floats", np.float32)
        return model.layout.plain_values(table, prepared, floats)

    def _released_values(self, X: Any) -> Matrix:
        """Release the rows, and return them as the features of the model in grid values."""
        layout = self.trained_model_.layout
        table, columns = _released(self.desensitizer_, X)
        return layout.values(columns, layout.own_values(table, len(columns[0])))

    def _predicted(self, X: Any, desensitize: bool) -> FloatArray:
        model = self.trained_model_
        if not desensitize:
            return model.of_matrix(self._plain_values(*self.desensitizer_.prepare(X)))
        return model.of_released(*_released(self.desensitizer_, X))

    def save_model(self, path: str | Path, *, units: Units = "raw", strip: bool = False) -> None:
        """Write the stock library's own file, which loads without OpBoost.

        Given a table with the training table's columns, the library predicts every row as
        ``predict`` does, or refuses the table; ``model_matrix`` then builds a table that it
        accepts.  ``units="grid"`` gives a model of grid values, for released rows.  ``strip``
        leaves out statistics that reveal how many training rows reached a node.
        """
        self._exported(units).save(Path(path), strip=strip)

    def save_onnx(self, path: str | Path) -> None:
        """Write an ONNX file that takes the columns of a table in raw units.

        This needs ``opboost[onnx]`` and a booster that exposes its trees; a booster of your own is
        refused.  The file predicts what ``predict`` does, up to the rounding of 32-bit floats.
        ``onnx_inputs`` builds its inputs.
        """
        check_is_fitted(self)
        order = column_order(self.desensitizer_)
        save_onnx(self.trained_model_, order, self.guarantee_, Path(path))

    def onnx_inputs(self, X: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Return a table as the inputs of the file that ``save_onnx`` writes, by column.

        Numbers are doubles with NaN for a missing value, dates are days since 1970-01-01 in UTC,
        and categories are whole numbers, or text with "" for a missing value.
        """
        check_is_fitted(self)
        release = self.desensitizer_
        table = release.validated(X)
        return onnx_inputs(self.trained_model_.layout, column_order(release), table)

    def save(self, path: str | Path) -> None:
        """Write the whole estimator (stock model and a small JSON file); ``op.load`` reads it."""
        from opboost.estimators.saving import save

        check_is_fitted(self)
        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_stock"}  # rebuilt on use

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = getattr(self.noise_rng, "secure", True)
        tags.input_tags.allow_nan = not (isinstance(self.missing, str) and self.missing == "raise")
        tags.input_tags.string = True
        return tags


def fitted(
    estimator: Fitted, model: TrainedModel, release: Desensitizer, origins: Origins
) -> Fitted:
    """Return the estimator, fitted with a model that was trained or saved elsewhere."""
    estimator._hold(model, release, origins)
    return estimator


def fitted_to_parties(
    estimator: Fitted,
    model: TrainedModel,
    names: tuple[Hashable, ...],
    released: Counted,
    origins: Origins,
) -> Fitted:
    """Return the estimator, with a model trained on columns that parties released.

    ``names`` are the columns of its table; ``released`` counts the parties' releases.
    """
    release = Desensitizer.of_columns(
        model.layout.private, names, named=True, rng=SecureRng(), released=released
    )
    return fitted(estimator, model, release, origins)


def _released(release: Desensitizer, X: Any) -> tuple[Any, list[ReleasedColumn]]:
    """Release the private columns of a table; return the table and the released columns."""
    table, released = release.release(X)
    return table, from_sample(release.columns_, released, release.sent)


def column_order(release: Desensitizer) -> tuple[Hashable, ...]:
    """Return the columns of the table that a transformer was fitted on."""
    return release._plan.names


def _check_lengths(rows: int, y: np.ndarray[Any, Any]) -> None:
    if rows != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, len(y)]}"
        )
