"""Score a model whose columns stay on disk: the steps of ``score_training.py``, in blocks.

Parties are not scored separately.  Held-out rows, at most 10,000, are read into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import Blocks, Booster, Matrix, Problem, fit_booster
from opboost.boosting.training_curve import losses_by_round
from opboost.columns.dataframes import rows_of as table_rows
from opboost.columns.private_column import PrivateColumn
from opboost.training.feature_matrix import OwnTable
from opboost.training.held_out_rows import split_rows
from opboost.training.held_out_score import Figures, HeldOutScore
from opboost.training.posterior_prediction import pieces
from opboost.training.score_training import CURVE_ROWS, HeldOutTrial, Recipe, Scored
from opboost.training.stored_rows import ColumnOnDisk, PickedRows, StoredRows
from opboost.training.targets import Target
from opboost.training.task_metric import METRICS, metric
from opboost.training.train_model import PreparedRows, prepare_stored_rows
from opboost.training.training_settings import TrainingSettings


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedOnDisk:
    """The columns that a job received into files.

    Attributes:
        private: The declaration of each column.
        stored: The files of each column.
        sent: The share of rows for which each column is sent.
        owners: The party of each column.
    """

    private: Sequence[PrivateColumn]
    stored: Mapping[Hashable, Sequence[ColumnOnDisk]]
    sent: Mapping[Hashable, float]
    owners: Sequence[str]

    def prepared(
        self, own: OwnTable, target: Target, settings: TrainingSettings, scratch: Path | None = None
    ) -> PreparedRows:
        """Turn the columns into a problem for a booster."""
        return prepare_stored_rows(
            self.private, self.stored, self.sent, own, target, settings, self.owners, scratch
        )

    def at(self, places: IntArray) -> ReceivedOnDisk:
        """Return the rows at these ascending places; the result reads them from the same files."""
        stored = {
            name: [PickedRows(c, places) for c in parts] for name, parts in self.stored.items()
        }
        return replace(self, stored=stored)


def score_stored(
    received: ReceivedOnDisk,
    problem: Problem,
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    recipe: Recipe,
    share: float,
) -> Scored:
    """Score own columns, and all columns, on held-out rows.

    ``problem`` is what the scored model learned from.  If it learned from draws, the rows that are
    not held out are denoised again, because its draws depend on the labels of held-out rows.
    Cost: training once more, and with denoising as much disk space again as the draws take.
    """
    assert settings.seed is not None
    split = split_rows(target, share, settings.seed)
    names = tuple(dict.fromkeys(received.owners))
    base = HeldOutScore(METRICS[target.task], len(split.held), share, names=names)
    if split.unscored:
        return Scored(replace(base, unscored=split.unscored))
    within = replace(settings, booster=_in_memory(settings.booster), verbose=0)
    trial = HeldOutTrial(own, target, within, recipe, split)
    alone, by_own = trial.own_alone()
    if recipe.denoised:
        whole, losses = _denoised(received, trial, settings, alone)
    else:
        whole, losses = _noisy(problem, trial, settings.booster)
    return Scored(replace(base, own=by_own, has_own=alone is not None, whole=whole), losses)


def _noisy(
    problem: Problem, trial: HeldOutTrial, booster: Booster
) -> tuple[Figures, dict[int, float]]:
    """Return the figures of a model of noisy rows; ``problem`` includes the held-out rows."""
    assert isinstance(problem.X, Blocks)
    target, split = trial.target, trial.split
    seen, y, task = target.where(split.seen), target.where(split.held).y, target.task
    some = replace(problem, X=_rows_on_disk(problem.X, split.seen), y=seen.y, weight=seen.weight)
    trained = fit_booster(booster, some)
    matrix = np.concatenate([_picked(problem.X, split.held[here]) for here in pieces(len(y))])
    losses = losses_by_round(trained, matrix[:CURVE_ROWS], 1, y[:CURVE_ROWS], task)
    return Figures(metric(task, trained.predict(matrix), y)), losses


def _denoised(
    received: ReceivedOnDisk,
    trial: HeldOutTrial,
    settings: TrainingSettings,
    alone: FloatArray | None,
) -> tuple[Figures, dict[int, float]]:
    """Return the figures of a model trained on draws made without the held-out rows."""
    split, target = trial.split, trial.target
    table = trial.own.table
    own = OwnTable(None if table is None else table_rows(table, split.seen), trial.own.columns)
    again = replace(settings, denoise=True, verbose=0)
    with tempfile.TemporaryDirectory(dir=_folder(received), prefix="score-") as scratch:
        others = received.at(split.seen)
        prepared = others.prepared(own, target.where(split.seen), again, Path(scratch))
        trained = fit_booster(settings.booster, prepared.problem)
        whole = StoredRows(prepared.layout, received.stored, received.sent, table, len(target.y))
        held, _ = whole.take(split.held)
        return trial.measured(prepared, trained, held, alone)


def _folder(received: ReceivedOnDisk) -> Path:
    return next(c.file.parent for columns in received.stored.values() for c in columns)


def _in_memory(booster: Booster) -> Booster:
    """Return the booster without its settings for disk: own columns are in memory."""
    params = getattr(booster, "params", {})
    if "rows_a_tree" not in params:
        return booster
    kept = {name: value for name, value in params.items() if name != "rows_a_tree"}
    kind: Any = type(booster)
    made: Booster = kind(kept)
    return made


def _rows_on_disk(whole: Blocks, rows: IntArray) -> Blocks:
    """Return some rows of blocks, in their order."""
    return replace(
        whole,
        shape=(len(rows), whole.shape[1]),
        read=lambda here: _picked(whole, rows[here]),
    )


def _picked(whole: Blocks, rows: IntArray) -> Matrix:
    """Return the rows at ascending places, read together with those between them."""
    first = int(rows[0])
    return np.asarray(whole.read(slice(first, int(rows[-1]) + 1))[rows - first])
