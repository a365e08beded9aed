"""What boosted classifier and regressor share: releasing, learning, predicting, saving."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from opboost._typing import FloatArray
from opboost.boosting import Problem, Trained, make_booster
from opboost.boosting.booster import Booster, Replace
from opboost.budgets.budget import Budget
from opboost.budgets.release_counts import Travels
from opboost.budgets.release_terms import Terms
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.dataframes import column_names
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ParameterError
from opboost.estimators.desensitizer import Desensitizer
from opboost.promises import Joint, NoGuarantee
from opboost.protocol.stored_columns import StoredColumn
from opboost.randomness.streams import Rng, SecureRng
from opboost.training.denoised_rows import Choice, Denoised, decoded, learnable
from opboost.training.denoised_rows import train as train_by
from opboost.training.feature_matrix import Layout, OwnColumn, Released, check_sizes, own_columns
from opboost.training.targets import Target

Books = Mapping[int, Codebook | None]
"""The codebook of each feature that has an order; None where it is withheld."""

HeldOut = Callable[[Books, "Denoised | None"], tuple[Any, Any] | None]
"""Held-out rows as training sees rows, given the codebooks and how rows were denoised."""


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
        self._learn(
            layout,
            table,
            dict(released),
            target,
            sent=release.sent,
            held_out=lambda books, denoiser: self._held_out(
                eval_set, release, layout, books, denoiser
            ),
            early_stopping=early_stopping_rounds,
        )
        self._settle(release)

    def _learn(
        self,
        layout: Layout,
        table: Any,
        released: dict[Hashable, Sequence[Released]],
        target: Target,
        *,
        sent: float | None,
        held_out: HeldOut = lambda books, denoiser: None,
        early_stopping: int | None = None,
        train: Callable[[Booster, Problem], Trained] | None = None,
        values: Callable[[Trained, Books], Mapping[int, Replace]] | None = None,
    ) -> None:
        """Train on codes, of the rows as they came or of posterior draws; then put values in the
        place of cuts.

        ``sent`` is the share of rows that send each column, None where that differs.  ``values``
        finds values where codebooks do not tell; ``train`` may know the model already.
        """
        booster = make_booster(self.booster, self.booster_params)
        seed = self._seed()
        own = layout.own_values(table, len(target.y))
        denoise = self.denoise if self._may_denoise(released, sent) else False
        rows = learnable(
            layout,
            released if denoise is False else decoded(layout, released),
            own,
            target.y,
            task=target.task,
            classes=target.classes,
            denoise=denoise,
            booster=booster,
            sent=1.0 if sent is None else sent,
            weight=target.weight,
            seed=secrets.randbits(31) if seed is None else seed,
            verbose=self.verbose,
        )
        codes, books = layout.coded(rows.released, rows.repeated(own))
        problem = Problem(
            codes,
            rows.repeated(target.y),
            target.task,
            target.classes,
            rows.repeated(target.weight),
            held_out(books, rows.denoiser),
            early_stopping,
            layout.names(),
            seed,
        )
        told = f"{rows.draws} draws of each row" if rows.denoiser else "rows as they came"
        self._say(f"{len(target.y):,} rows, {codes.shape[1]} features; training on {told}")
        self.denoised_ = rows.denoiser is not None
        self.verdict_ = rows.verdict
        self._posterior = rows.posterior
        trained = (train or train_by)(booster, problem)
        self._finish(layout, trained, books, values)

    def _learn_stored(
        self,
        layout: Layout,
        table: Any,
        stored: Mapping[Hashable, Sequence[StoredColumn]],
        target: Target,
        *,
        train: Callable[[Booster, Problem], Trained] | None,
        values: Callable[[Trained, Books], Mapping[int, Replace]] | None,
    ) -> None:
        """The same for columns that stay on disk: rows as they came, a block at a time."""
        if self.denoise is not False:
            self._not_denoised("rows stay on disk")
        booster = make_booster(self.booster, self.booster_params)
        blocks, books = layout.blocks(stored, table, len(target.y))
        problem = Problem(
            blocks,
            target.y,
            target.task,
            target.classes,
            target.weight,
            feature_names=layout.names(),
            seed=self._seed(),
        )
        self._say(f"{blocks.shape[0]:,} rows, {blocks.shape[1]} features; training from disk")
        self.denoised_, self.verdict_, self._posterior = False, None, None
        trained = (train or train_by)(booster, problem)
        self._finish(layout, trained, books, values)

    def _finish(
        self,
        layout: Layout,
        trained: Trained,
        books: Books,
        values: Callable[[Trained, Books], Mapping[int, Replace]] | None,
    ) -> None:
        """Put values in the place of cuts."""
        self.trained_: Trained = trained.replaced((values or _from_books)(trained, books))
        self._layout = layout

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _not_denoised(self, why: str) -> None:
        print(f"{type(self).__name__}: denoising is off, because {why}.", file=sys.stderr)

    def _may_denoise(
        self, released: Mapping[Hashable, Sequence[Released]], sent: float | None
    ) -> bool:
        """Whether the rows tell enough to be denoised; if not, and it was asked for, say why."""
        if self.denoise is False:
            return False
        columns = [c for columns in released.values() for c in columns]
        if any(isinstance(c, CodedColumn) and c.book is None for c in columns):
            why = "a party withholds its codebook"
        elif sent is None:
            why = "parties release different shares of their columns a row"
        else:
            return True
        self._not_denoised(why)
        return False

    def _settle(self, release: Desensitizer) -> None:
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
        train: Callable[[Booster, Problem], Trained] | None = None,
        values: Callable[[Trained, Books], Mapping[int, Replace]] | None = None,
    ) -> None:
        """Train on columns that others released, in memory or on disk, beside one's own."""
        check_sizes(columns)
        names = [] if own is None else column_names(own)
        layout = Layout(columns, own_columns(own, names))
        if stored is not None:
            self._learn_stored(layout, own, stored, target, train=train, values=values)
        else:
            self._learn(layout, own, released, target, sent=sent, train=train, values=values)
        everything = (*names, *(c.name for c in columns))
        terms = Terms(columns, promise.columns_per_row, promise.caveats)
        self._settle(
            Desensitizer.of_columns(
                columns, everything, named=True, rng=SecureRng(), released={terms: 1}
            )
        )

    def _say(self, words: str) -> None:
        if self.verbose:
            print(f"{type(self).__name__}: {words}", file=sys.stderr)

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

    def _held_out(
        self,
        eval_set: Any,
        release: Desensitizer,
        layout: Layout,
        books: Any,
        denoiser: Denoised | None,
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
        check_is_fitted(self)
        score = self.trained_.importance()
        by_name: dict[Hashable, float] = {}
        place = 0
        for name, width in self._layout.widths():
            by_name[name] = float(score[place : place + width].sum())
            place += width
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
        check_is_fitted(self)
        values = decoded(self._layout, released)
        if self._posterior is None:
            return self.trained_.predict(self._layout.released_values(table, values))
        rows = len(next(iter(values.values()))[0].values)
        own = self._layout.own_values(table, rows)
        return self._posterior.predict(self.trained_, values, own)

    def save_model(
        self, path: str | Path, *, units: Literal["grid", "raw"] = "grid", strip: bool = False
    ) -> None:
        """Write the stock library's own file, which loads without us.

        ``units="raw"`` gives a model of raw values: a 32-bit raw value goes the way of its cell
        (values on an edge belong to the cell above, or below for ``mapping="paper"``).
        ``strip`` leaves out what tells how many training rows a node had.
        """
        check_is_fitted(self)
        trained = self.trained_
        if units == "raw":
            trained = trained.replaced(self._layout.raw_units(trained.left_up_to))
        elif units != "grid":
            raise ParameterError(f"units must be 'grid' or 'raw'; got {units!r}.")
        trained.save(Path(path), strip=strip)

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


def _from_books(trained: Trained, books: Books) -> dict[int, Replace]:
    """The values behind cuts, from codebooks that are all known."""
    known = {feature: book for feature, book in books.items() if book is not None}
    return {f: b.last_of if trained.left_up_to else b.value_of for f, b in known.items()}


def column_order(release: Desensitizer) -> tuple[Hashable, ...]:
    """The columns of the table that a transformer was fitted on."""
    return release._plan.names


def _check_lengths(rows: int, y: np.ndarray[Any, Any]) -> None:
    if rows != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, len(y)]}"
        )
