"""Train when feature parties know only some rows: first trees of own columns, then other trees.

The first trees learn from all rows and read only own columns, so columns that were not sent need
not be guessed.  The trees that are then added read all columns and learn from the rows that at
least one feature party knows.  Rows that none of them knows are predicted by the first trees only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opboost._typing import IntArray
from opboost.boosting import Problem, Trained
from opboost.boosting.booster import Booster, Matrix, fit_booster
from opboost.boosting.training_curve import Staged
from opboost.columns.dataframes import rows_of as table_rows
from opboost.errors import ParameterError
from opboost.training.absent_columns import nobody_sent
from opboost.training.feature_matrix import OwnTable
from opboost.training.partner_rounds import KnownPart, SomeRounds, partner_rounds
from opboost.training.released_columns import ReleasedColumn, rows_of
from opboost.training.targets import Target
from opboost.training.train_model import HeldOut, PreparedRows, prepare_rows
from opboost.training.training_settings import TrainingSettings


def check_adds_trees(booster: str | Booster) -> None:
    """Refuse a booster that cannot add trees to a model of other rows.

    >>> check_adds_trees("xgboost")
    >>> check_adds_trees("gbdt")
    Traceback (most recent call last):
    opboost.errors.ParameterError: rows='mine' adds trees to those of own columns, which booster ...
    """
    named = booster if isinstance(booster, str) else type(booster).__name__
    if getattr(booster, "CONTINUES", None) is None and booster not in ("xgboost", "lightgbm"):
        raise ParameterError(
            f"rows='mine' adds trees to those of own columns, which booster {named!r} cannot do. "
            "Use 'xgboost' or 'lightgbm' on this machine, or rows='common'."
        )


def prepare_partly_known_rows(
    release: Sequence[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    parties: Sequence[str] = (),
    watched: HeldOut | None = None,
) -> PreparedRows:
    """Train trees of own columns on all rows; prepare the known rows for the trees added later.

    ``watched`` holds validation rows for early stopping, for both kinds of trees.
    """
    known = ~nobody_sent(release)
    places = np.flatnonzero(known)
    table = None if own.table is None else table_rows(own.table, places)
    some = [column.where(known) for column in release]
    part = target.where(known)
    prepared = prepare_rows(list(some), OwnTable(table, own.columns), part, settings, parties)
    rows = prepared.rows
    if rows.denoised is not None:  # only trees, not label groups, predict released rows
        rows = replace(rows, posterior=rows.denoised.posterior(part, "draws"))
    features = prepared.layout.own_values(table, len(places))
    shown = KnownPart(
        prepared.layout, some, features, part, rows.denoised, rows.draws, settings.seed or 0
    )

    def trial(held: IntArray) -> Trained:
        others = np.delete(np.arange(len(known)), places[held])
        return _own_trees(prepared, own, target, others, settings)

    first = _own_trees(prepared, own, target, np.arange(len(known)), settings, watched)
    rounds = partner_rounds(shown, trial, settings.booster, _rounds(first))
    settings.say(f"{rounds} rounds with the columns of feature parties are added")
    prepared = replace(
        prepared,
        rows=rows,
        problem=replace(prepared.problem, continue_from=first),
        own_rounds=_rounds(first),
        booster=SomeRounds(settings.booster, rounds),
    )
    return prepared if watched is None else prepared.with_held_out(_known_part(watched))


def _own_trees(
    prepared: PreparedRows,
    own: OwnTable,
    target: Target,
    rows: IntArray,
    settings: TrainingSettings,
    watched: HeldOut | None = None,
) -> Trained:
    """Train trees of own columns on some rows, with all private features of the model missing."""
    layout = prepared.layout

    def matrix(table: object, rows: int) -> Matrix:
        features = layout.own_values(table, rows)
        whole = np.full((rows, len(layout.names())), np.nan, dtype=np.float32)
        whole[:, whole.shape[1] - features.shape[1] :] = features
        return whole

    held = None
    if watched is not None:
        held = (matrix(watched.table, len(watched.y)), watched.y)
    seen = target.where(rows)
    problem = Problem(
        matrix(own.table, len(target.y))[rows],
        seen.y,
        seen.task,
        seen.classes,
        seen.weight,
        eval_set=held,
        early_stopping=None if held is None else settings.early_stopping,
        feature_names=layout.names(),
        seed=settings.seed,
        groups=prepared.problem.groups,
    )
    return fit_booster(settings.booster, problem)


def _known_part(watched: HeldOut) -> HeldOut:
    """Return the watched rows that at least one party knows."""
    known = ~nobody_sent(watched.release)
    if not known.any():
        return watched
    table = watched.table
    return HeldOut(
        rows_of(watched.release, known),
        None if table is None else table_rows(table, np.flatnonzero(known)),
        watched.y[known],
    )


def _rounds(first: Trained) -> int:
    return first.rounds if isinstance(first, Staged) else 0
