"""Score a model: train a second one in the same way without some rows, and predict those.

The returned model learns from all rows; scoring does not change it.  The second model is denoised
if the first one was, and predicts released rows as the first one does.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Task, Trained
from opboost.boosting.booster import Matrix, Problem, fit_booster
from opboost.boosting.training_curve import Staged, losses_by_round
from opboost.columns.dataframes import rows_of as table_rows
from opboost.training.absent_columns import nobody_sent
from opboost.training.clear_estimate import clear_estimate
from opboost.training.column_screening import screened
from opboost.training.feature_matrix import OwnTable
from opboost.training.held_out_rows import Split, split_rows
from opboost.training.held_out_score import Figures, HeldOutScore
from opboost.training.own_trees_first import prepare_partly_known_rows
from opboost.training.posterior_prediction import DRAWS_PER_ROW, Posterior
from opboost.training.released_columns import ReleasedColumn, rows_of
from opboost.training.targets import Target
from opboost.training.task_metric import METRICS, metric
from opboost.training.train_model import HeldOut, PreparedRows, prepare_rows, train_model, values_in
from opboost.training.trained_model import TrainedModel
from opboost.training.training_settings import TrainingSettings

MAX_ESTIMATED_ROWS = 2_000
"""The score in the clear is estimated from at most this many held-out rows."""

CURVE_ROWS, CURVE_DRAWS = 500, 8
"""The number of held-out rows, and of clean rows drawn for each, for the held-out loss by round."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How the scored model was trained, and how it predicts released rows."""

    denoised: bool
    way: Literal["draws", "groups"] | None

    @classmethod
    def of(cls, model: TrainedModel) -> Recipe:
        """Return the recipe of a model that was just trained."""
        return cls(bool(model.denoised), None if model.posterior is None else model.posterior.way)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A score, and the held-out loss of the scored model after selected rounds."""

    score: HeldOutScore
    loss_by_round: dict[int, float] = field(default_factory=dict)


def train_and_score(
    release: list[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    watched: HeldOut | None,
    share: float,
) -> TrainedModel:
    """Train on released columns whose codebooks are known, and score the model if ``share`` > 0."""
    if not share:
        return train_model(release, own, target, settings, watched)
    model = train_model(list(release), own, target, settings, watched)
    recipe = Recipe.of(model)
    found = score_training(release, own, target, settings, recipe, share, watched=watched)
    return replace(model, score=found.score)


def score_training(
    release: Sequence[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    recipe: Recipe,
    share: float,
    *,
    parties: Mapping[str, Sequence[Hashable]] | None = None,
    watched: HeldOut | None = None,
) -> Scored:
    """Score training on held-out rows: with own columns, with all columns, and by party.

    Args:
        release: The released columns that the model learned from.
        own: The label party's own columns of the same rows.
        target: The labels that were learned.
        settings: How the model was trained.
        recipe: The choices made when the model was trained.
        share: The share of rows to hold out.
        parties: Which columns each party released; if several, each is also scored separately.
        watched: Validation rows for early stopping.

    A continued model is scored with the trees of the earlier one, and parties are not scored
    separately.

    Cost: training on the rows not held out; with several parties, also on each party's columns.
    """
    seed = secrets.randbits(31) if settings.seed is None else settings.seed
    split = split_rows(target, share, seed)
    names = tuple(parties or ())
    base = HeldOutScore(METRICS[target.task], len(split.held), share, names=names)
    if split.unscored:
        return Scored(replace(base, unscored=split.unscored))
    named = parties
    if settings.continue_from is not None:  # keep its column order; do not score parties separately
        place = {c.name: i for i, c in enumerate(settings.continue_from.layout.private)}
        release, parties = sorted(release, key=lambda c: place[c.private.name]), None
    denoise = False if any(c.withheld for c in release) else settings.denoise
    quiet = replace(settings, seed=seed, verbose=0, denoise=denoise)
    owners = {name: party for party, names in (named or {}).items() for name in names}
    trial = HeldOutTrial(own, target, quiet, recipe, split, watched, owners)
    alone, by_own = trial.own_alone()
    whole, losses = trial.figures(release, alone)
    several = None
    if parties is not None and len(parties) > 1:
        several = {
            name: trial.figures([c for c in release if c.private.name in set(columns)], alone)[0]
            for name, columns in parties.items()
        }
    has_own = alone is not None
    found = replace(base, own=by_own, has_own=has_own, whole=whole, parties=several)
    return Scored(found, losses)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutTrial:
    """Training runs on the rows that are not held out, and their scores on those that are."""

    own: OwnTable
    target: Target
    settings: TrainingSettings
    recipe: Recipe
    split: Split
    watched: HeldOut | None = None
    owners: Mapping[Hashable, str] = field(default_factory=dict)
    """The party of each released column, if there are parties."""

    @property
    def _seen(self) -> Target:
        return self.target.where(self.split.seen)

    @property
    def _held(self) -> Target:
        return self.target.where(self.split.held)

    def own_alone(self) -> tuple[FloatArray | None, float]:
        """Return predictions from the label party's own columns, if any, and their score."""
        task, seen = self.target.task, self._seen
        if not self.own.columns:
            return None, _of_constant(task, seen, self._held.y)
        blocks = [c.block(self.own.table) for c in self.own.columns]
        features = np.hstack([block.astype(np.float32) for block in blocks])
        names = [name for c in self.own.columns for name in c.names()]
        problem = Problem(
            features[self.split.seen],
            seen.y,
            task,
            self.target.classes,
            seen.weight,
            feature_names=names,
            seed=self.settings.seed,
        )
        trained = fit_booster(self.settings.booster, problem)
        predicted = trained.predict(features[self.split.held])
        return predicted, metric(task, predicted, self._held.y)

    def figures(
        self, release: Sequence[ReleasedColumn], alone: FloatArray | None
    ) -> tuple[Figures, dict[int, float]]:
        """Return the score of the own columns with these released ones, and the held-out loss."""
        prepared, in_codes = self._trained(rows_of(release, self.split.seen))
        return self.measured(prepared, in_codes, rows_of(release, self.split.held), alone)

    def measured(
        self,
        prepared: PreparedRows,
        in_codes: Trained,
        held: list[ReleasedColumn],
        alone: FloatArray | None,
    ) -> tuple[Figures, dict[int, float]]:
        """Return the figures, and the held-out loss by round, of a model of the other rows."""
        task, y = self.target.task, self._held.y
        table = self._table(self.split.held)
        own = prepared.layout.own_values(table, len(y))
        few = slice(0, min(len(y), CURVE_ROWS))
        if prepared.rows.denoised is None:
            if self.settings.continue_from is None:
                matrix, _ = prepared.layout.codes(list(held), own)
            else:
                matrix = prepared.layout.values(held, own)
            measured = metric(task, _predicted(prepared, in_codes, matrix, held), y)
            return Figures(measured), losses_by_round(in_codes, matrix[few], 1, y[few], task)
        model = prepared.finished(in_codes, values_in(prepared.books, in_codes))
        model = replace(model, posterior=self._posterior(prepared))
        measured = metric(task, model.of_released(table, held), y)
        # There is no estimate: a row that a party does not know has no clean values there.
        if prepared.own_rounds:
            return Figures(measured), {}

        def guessed(rows: slice, draws: int) -> Matrix:
            assert prepared.rows.denoised is not None
            drawn = prepared.rows.denoised.guessed(rows_of(held, rows), own[rows], draws)
            return prepared.layout.values(drawn, np.repeat(own[rows], draws, axis=0))

        some = slice(0, min(len(y), MAX_ESTIMATED_ROWS))
        found = model.trained.predict(guessed(some, DRAWS_PER_ROW))
        by_row = found.reshape(-1, DRAWS_PER_ROW, *found.shape[1:])
        beside = None if alone is None else alone[some]
        estimate = clear_estimate(task, by_row, beside, y[some])
        clean = guessed(few, CURVE_DRAWS)
        losses = losses_by_round(model.trained, clean, CURVE_DRAWS, y[few], task)
        return Figures(measured, estimate.value, estimate.error), losses

    def _trained(self, release: list[ReleasedColumn]) -> tuple[PreparedRows, Trained]:
        """Train by the recipe on the rows that are not held out; the model splits on codes."""
        seen = self._seen
        if not self.recipe.denoised and self.settings.denoise is not False:
            release = screened(release, seen)
        own = OwnTable(self._table(self.split.seen), self.own.columns)
        settings = replace(self.settings, denoise=self.recipe.denoised)
        parties = [self.owners[c.private.name] for c in release] if self.owners else []
        watched = self.watched and self.watched.of_columns(c.private for c in release)
        if any(c.absent is not None for c in release):
            prepared = prepare_partly_known_rows(release, own, seen, settings, parties, watched)
            return prepared, fit_booster(prepared.booster or settings.booster, prepared.problem)
        prepared = prepare_rows(release, own, seen, settings, parties)
        if watched is not None:
            prepared = prepared.with_held_out(watched)
        return prepared, fit_booster(settings.booster, prepared.problem)

    def _posterior(self, prepared: PreparedRows) -> Posterior | None:
        """Return the posterior that predicts released rows, as set by the recipe."""
        posterior, way = prepared.rows.posterior, self.recipe.way
        if posterior is None or way is None:
            return None
        return replace(posterior, way=way)

    def _table(self, rows: IntArray) -> Any:
        return None if self.own.table is None else table_rows(self.own.table, rows)


def _predicted(
    prepared: PreparedRows, in_codes: Trained, matrix: Matrix, held: Sequence[ReleasedColumn]
) -> FloatArray:
    """Predict noisy rows in codes; where no party sent a value, use only trees of own columns."""
    found = in_codes.predict(matrix)
    nobody = nobody_sent(held)
    if prepared.own_rounds and nobody.any():
        assert isinstance(in_codes, Staged)
        found[nobody] = next(iter(in_codes.staged(matrix[nobody], [prepared.own_rounds])))
    return found


def _of_constant(task: Task, seen: Target, y: np.ndarray[Any, Any]) -> float:
    """Return the score of predicting one constant for every row."""
    if task == "multiclass":
        return float((y == np.bincount(seen.y).argmax()).mean())
    return 0.5 if task == "binary" else 0.0
