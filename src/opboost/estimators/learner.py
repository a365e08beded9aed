"""How a boosted estimator learns from released columns: as they came, denoised, or from disk."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opboost.boosting import Problem, Trained
from opboost.boosting.booster import Booster, Replace
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.denoise import Verdict
from opboost.estimators.boosted_model import BoostedModel
from opboost.protocol.stored_columns import StoredColumn
from opboost.training.denoised_rows import Choice, Denoised, decoded, learnable
from opboost.training.denoised_rows import train as train_by
from opboost.training.feature_matrix import Layout, Released
from opboost.training.targets import Target

Books = Mapping[int, Codebook | None]
"""The codebook of each feature that has an order; None where it is withheld."""

HeldOut = Callable[[Books, Denoised | None], tuple[Any, Any] | None]
"""Held-out rows as training sees rows, given the codebooks and how rows were denoised."""

Train = Callable[[Booster, Problem], Trained]
"""Trains, or knows the model already."""

FindValues = Callable[[Trained, Books], Mapping[int, Replace]]
"""Finds the values behind the cuts of a model."""


def _from_books(trained: Trained, books: Books) -> dict[int, Replace]:
    """The values behind cuts, from codebooks that are all known."""
    known = {feature: book for feature, book in books.items() if book is not None}
    return {f: b.last_of if trained.left_up_to else b.value_of for f, b in known.items()}


@dataclass(frozen=True, slots=True)
class Learnt:
    """A model, whether its rows were denoised, and the held-out losses that decided on it."""

    model: BoostedModel
    denoised: bool
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Learner:
    """Trains one model; ``name`` is the estimator's in what is told."""

    name: str
    booster: Booster
    denoise: Choice
    seed: int | None
    verbose: int
    train: Train = train_by
    values: FindValues = _from_books

    def learn(
        self,
        layout: Layout,
        table: Any,
        released: dict[Hashable, Sequence[Released]],
        target: Target,
        *,
        sent: float | None,
        held_out: HeldOut = lambda books, denoiser: None,
        early_stopping: int | None = None,
    ) -> Learnt:
        """Train on codes, of the rows as they came or of posterior draws; then put values in the
        place of cuts.

        ``sent`` is the share of rows that send each column, None where that differs.
        """
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
            booster=self.booster,
            sent=1.0 if sent is None else sent,
            weight=target.weight,
            seed=secrets.randbits(31) if self.seed is None else self.seed,
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
            self.seed,
        )
        told = f"{rows.draws} draws of each row" if rows.denoiser else "rows as they came"
        self._say(f"{len(target.y):,} rows, {codes.shape[1]} features; training on {told}")
        model = BoostedModel(layout, self._trained(problem, books), rows.posterior)
        return Learnt(model, rows.denoiser is not None, rows.verdict)

    def learn_stored(
        self,
        layout: Layout,
        table: Any,
        stored: Mapping[Hashable, Sequence[StoredColumn]],
        target: Target,
    ) -> Learnt:
        """The same for columns that stay on disk: rows as they came, a block at a time."""
        if self.denoise is not False:
            self._not_denoised("rows stay on disk")
        blocks, books = layout.blocks(stored, table, len(target.y))
        problem = Problem(
            blocks,
            target.y,
            target.task,
            target.classes,
            target.weight,
            feature_names=layout.names(),
            seed=self.seed,
        )
        self._say(f"{blocks.shape[0]:,} rows, {blocks.shape[1]} features; training from disk")
        return Learnt(BoostedModel(layout, self._trained(problem, books), None), False, None)

    def _trained(self, problem: Problem, books: Books) -> Trained:
        """Train on codes, and put values in the place of cuts."""
        trained = self.train(self.booster, problem)
        return trained.replaced(self.values(trained, books))

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

    def _not_denoised(self, why: str) -> None:
        print(f"{self.name}: denoising is off, because {why}.", file=sys.stderr)

    def _say(self, words: str) -> None:
        if self.verbose:
            print(f"{self.name}: {words}", file=sys.stderr)
