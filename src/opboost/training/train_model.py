"""From released columns and labels to a model: prepare rows, fit, find values, replace cuts.

:func:`train_model` does these steps in sequence if codebooks give the values behind all cuts.  A
label party does them one by one: in between, it keeps the model, whose cuts are still codes, on
disk and asks feature parties for values.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opboost.boosting import Problem, Trained
from opboost.boosting.booster import Booster, Matrix, Replace, fit_booster
from opboost.columns.private_column import PrivateColumn
from opboost.runtime.threads import threads_limited
from opboost.training.column_screening import screened
from opboost.training.continued_model import check_same_labels, continued_layout
from opboost.training.denoised_rows import TrainingRows, training_rows
from opboost.training.denoised_stored_rows import stored_training_rows
from opboost.training.feature_matrix import Books, Layout, OwnTable, check_sizes
from opboost.training.released_columns import ReleasedColumn
from opboost.training.stored_rows import ColumnOnDisk, StoredRows, stacked_blocks
from opboost.training.targets import Target
from opboost.training.trained_model import TrainedModel
from opboost.training.training_settings import TrainingSettings


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Validation rows, which only monitor training; they are released like the training rows."""

    release: list[ReleasedColumn]
    table: Any
    y: np.ndarray[Any, Any]

    def of_columns(self, private: Iterable[PrivateColumn]) -> HeldOut:
        """Return the same rows with only these private columns, in this order."""
        came = {c.private.name: c for c in self.release}
        return replace(self, release=[came[c.name] for c in private])


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRows:
    """The booster's training problem, in codes; their codebooks; and how the rows were made."""

    layout: Layout
    problem: Problem
    books: Books
    rows: TrainingRows
    labels: np.ndarray[Any, Any] | None
    own_rounds: int = 0
    """The number of rounds of the continued model, whose trees read only own columns."""
    booster: Booster | None = None
    """The booster to train instead of the one in the settings, or None."""

    def with_held_out(self, held: HeldOut) -> PreparedRows:
        """Return the same problem with validation rows, coded with the problem's codebooks."""
        own = self.layout.own_values(held.table, len(held.y))
        release = held.of_columns(self.layout.private).release
        if self.rows.denoised is not None:
            release = self.rows.denoised.drawn(release, own, held.y, 1)
        values: Matrix = self.layout.values(release, own).astype(np.float32)
        for feature, book in self.books.items():
            if book is not None:
                known = np.isfinite(values[:, feature])
                values[known, feature] = book.places(values[known, feature])
        return replace(self, problem=replace(self.problem, eval_set=(values, held.y)))

    def finished(self, trained: Trained, values: Mapping[int, Replace]) -> TrainedModel:
        """Return the model in grid values: each cut between codes becomes the value behind it."""
        return TrainedModel(
            self.layout,
            trained.replaced(values),
            self.rows.posterior,
            self.labels,
            self.rows.denoised is not None,
            self.rows.verdict,
            own_rounds=self.own_rounds,
        )


def train_model(
    release: list[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    held_out: HeldOut | None = None,
) -> TrainedModel:
    """Train on released columns whose codebooks are known, and on own columns.

    The list ``release`` is emptied: see :func:`prepare_rows`.

    >>> import opboost as op
    >>> from opboost.training.released_columns import from_sample
    >>> grid, rng = op.Domain(0, 9), np.random.default_rng(0)
    >>> column = op.PrivateColumn(0, op.NumericMapping(grid, (0, 1)), op.ClampMap(grid, 2.0))
    >>> table = rng.random((400, 1))
    >>> noisy = column.release(column.prepare(table), op.SeededRng(1))
    >>> release = from_sample([column], {0: noisy}, sent=1.0)
    >>> settings = TrainingSettings.of("hist-gbdt", None, denoise=False, random_state=0)
    >>> target = Target.of_classes(table[:, 0] > 0.5)
    >>> model = train_model(release, OwnTable.of(None), target, settings)
    >>> model.layout.names(), model.denoised
    (['0'], False)
    """
    prepared = prepare_rows(release, own, target, settings)
    if held_out is not None:
        prepared = prepared.with_held_out(held_out)
    trained = fit_booster(settings.booster, prepared.problem)
    return prepared.finished(trained, values_in(prepared.books, trained))


def prepare_rows(
    release: list[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    parties: Sequence[str] = (),
) -> PreparedRows:
    """Turn released columns into a problem for a booster: noisy rows, or posterior draws.

    The list ``release`` is emptied on the way, so that no column is in memory twice.  ``parties``
    names the party of each column if each tree uses the columns of one party.
    """
    earlier = settings.continue_from
    if earlier is None:
        layout = _layout([c.private for c in release], own, parties, settings)
    else:
        check_same_labels(earlier, target.labels, target.task)
        layout = continued_layout(earlier, release, own)
    features = layout.own_values(own.table, len(target.y))
    denoise = settings.denoise
    if any(c.withheld for c in release):
        settings.say_not_denoised("a party withholds its codebook")
        denoise = False
    if denoise is not False:
        release[:] = screened(release, target)
    with threads_limited(len(target.y) * len(layout.names())):
        rows = training_rows(
            layout,
            release,
            features,
            target,
            denoise=denoise,
            booster=settings.booster,
            seed=secrets.randbits(31) if settings.seed is None else settings.seed,
            verbose=settings.verbose,
        )
    if earlier is None:
        codes, books = layout.codes(rows.release, rows.repeated(features))
    else:  # the continued model's trees are in grid values already
        codes, books = layout.values(rows.release, rows.repeated(features)), {}
    problem = Problem(
        codes,
        rows.repeated(target.y),
        target.task,
        target.classes,
        rows.repeated(target.weight),
        early_stopping=settings.early_stopping,
        feature_names=layout.names(),
        seed=settings.seed,
        continue_from=None if earlier is None else earlier.trained,
        groups=groups_of(layout),
    )
    told = f"{rows.draws} draws of each row" if rows.denoised else "noisy rows"
    settings.say(f"{len(target.y):,} rows, {codes.shape[1]} features; training on {told}")
    return PreparedRows(layout, problem, books, rows, target.labels)


def prepare_watched_rows(
    release: list[ReleasedColumn],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    parties: Sequence[str] = (),
    watched: HeldOut | None = None,
) -> PreparedRows:
    """Prepare rows as :func:`prepare_rows` does, and add validation rows if there are any."""
    prepared = prepare_rows(release, own, target, settings, parties)
    return prepared if watched is None else prepared.with_held_out(watched)


def prepare_stored_rows(
    private: Sequence[PrivateColumn],
    stored: Mapping[Hashable, Sequence[ColumnOnDisk]],
    sent: Mapping[Hashable, float],
    own: OwnTable,
    target: Target,
    settings: TrainingSettings,
    parties: Sequence[str] = (),
    scratch: Path | None = None,
) -> PreparedRows:
    """Prepare columns that stay on disk: noisy rows or draws, one block at a time.

    ``sent`` is the share of rows for which each column is sent.  Draws are written to ``scratch``,
    or to the folder of the columns.
    """
    layout = _layout(private, own, parties, settings)
    rows = StoredRows(layout, stored, sent, own.table, len(target.y), scratch=scratch)
    denoise = settings.denoise
    if rows.withheld:
        settings.say_not_denoised("a party withholds its codebook")
        denoise = False
    made, draws = stored_training_rows(
        rows,
        target,
        denoise=denoise,
        booster=settings.booster,
        seed=secrets.randbits(31) if settings.seed is None else settings.seed,
        verbose=settings.verbose,
    )
    blocks, books = stacked_blocks(draws)
    problem = Problem(
        blocks,
        made.repeated(target.y),
        target.task,
        target.classes,
        made.repeated(target.weight),
        early_stopping=settings.early_stopping,
        feature_names=rows.layout.names(),
        seed=settings.seed,
        groups=groups_of(rows.layout),
    )
    told = f"{made.draws} draws of each row" if made.denoised else "noisy rows"
    settings.say(f"{rows.count:,} rows, {blocks.shape[1]} features; training on {told}, from disk")
    return PreparedRows(rows.layout, problem, books, made, target.labels)


def values_in(books: Books, trained: Trained) -> dict[int, Replace]:
    """Return the values behind the cuts of features whose codebooks are known."""
    known = {feature: book for feature, book in books.items() if book is not None}
    return {f: b.last_of if trained.left_up_to else b.value_of for f, b in known.items()}


def _layout(
    private: Sequence[PrivateColumn],
    own: OwnTable,
    parties: Sequence[str],
    settings: TrainingSettings,
) -> Layout:
    check_sizes(private)
    kept = tuple(parties) if settings.structure == "by-party" else ()
    return Layout(tuple(private), own.columns, kept)


def groups_of(layout: Layout) -> tuple[tuple[int, ...], ...] | None:
    """Return the groups of features that may occur together in one tree; None if all may."""
    if not layout.parties:
        return None
    return tuple(group for group in layout.groups().values() if group)
