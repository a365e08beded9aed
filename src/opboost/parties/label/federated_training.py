"""Train on the parties' releases and the label party's rows, and fill in the split values."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opboost.config.sections import DEFAULT_HELD_OUT, Memory
from opboost.errors import DataError, ParameterError
from opboost.parties.channel import Channel
from opboost.parties.label.known_rows import check_some_known
from opboost.parties.label.label_rows import LabelRows, where
from opboost.parties.label.model_in_codes import digest_of, first_books, trained_once
from opboost.parties.label.model_with_parties import ESTIMATORS, ModelWithParties
from opboost.parties.label.received_release import (
    ReceivedRelease,
    origins,
    promise,
    scores_later,
    seed,
    sent_by_all,
    stored_by_all,
)
from opboost.parties.label.score_once import scored_once
from opboost.parties.label.split_query import Ask, ask_nothing, split_values
from opboost.parties.label.training_rehearsal import rehearse_training
from opboost.training.feature_matrix import Books, OwnTable
from opboost.training.held_out_rows import Split, split_rows
from opboost.training.own_trees_first import prepare_partly_known_rows
from opboost.training.released_columns import ReleasedColumn
from opboost.training.released_columns import rows_of as release_rows
from opboost.training.score_by_party import score_parts
from opboost.training.score_stored_rows import ReceivedOnDisk, score_stored
from opboost.training.score_training import Recipe, Scored, score_training
from opboost.training.targets import LabelKind, Target
from opboost.training.train_model import HeldOut, PreparedRows, prepare_watched_rows
from opboost.training.trained_model import TrainedModel
from opboost.training.training_settings import Structure, TrainingSettings

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

    Estimator = OpBoostClassifier | OpBoostRegressor


@dataclass(frozen=True, slots=True, eq=False)
class FederatedTraining:
    """The training of a label party; ``op.LabelParty`` explains each setting.

    Attributes:
        settings: The estimator's booster, booster_params, denoise and random_state.
    """

    kind: LabelKind
    settings: dict[str, Any]
    ask: Ask
    memory: Memory
    structure: Structure
    held_out: float
    early_stopping: int | None
    continue_from: Estimator | None
    smallest_leaf: int

    def target(self, y: Any) -> Target:
        """Return the label as a target of this kind."""
        return Target.of_numbers(y) if self.kind == "regress" else Target.of_classes(y)

    def rehearse(self, y: Any) -> None:
        """Refuse a label or a booster that cannot be trained."""
        self.check_watching(y)
        rehearse_training(self.settings["booster"], self.settings["booster_params"], self.target(y))

    def check_watching(self, y: Any) -> None:
        """Refuse labels with too few rows to hold any out for early stopping."""
        if self.early_stopping is not None:
            self._watched_split(self.target(y), 0)

    def train(
        self,
        channels: Sequence[Channel],
        offers: list[ReceivedRelease],
        rows: LabelRows,
        state: Path | None,
    ) -> ModelWithParties:
        """Receive every release, train, ask for split values, and put them into the model.

        ``state`` is a folder that keeps the model in codes until its split values arrive.
        """
        with self._scratch_folder(state) as disk:
            return self._trained(channels, offers, rows, state, disk)

    def _trained(
        self,
        channels: Sequence[Channel],
        offers: list[ReceivedRelease],
        rows: LabelRows,
        state: Path | None,
        disk: Path | None,
    ) -> ModelWithParties:
        """Receive columns, prepare rows, fit, ask for the values of the cuts, and put them in."""
        release = rows.released(offers) if disk is None else []
        stored = {} if disk is None else {n: c for o in offers for n, c in o.stored(disk).items()}
        y, own, there = rows.y, rows.own, None
        if rows.choice == "mine":
            check_some_known(release, y)
            own = rows.own_with_presence(offers, release)
        else:
            there = sent_by_all(offers, release) if disk is None else stored_by_all(offers, stored)
        if there is not None:
            own, y = where(own, there), where(y, there)
            release = release_rows(release, there)
            stored = {name: [c.where(there) for c in columns] for name, columns in stored.items()}
        params = dict(self.settings)
        if params["random_state"] is None:  # the same codes give the same model
            params["random_state"] = seed(offers)
        continued = self.continue_from
        earlier = None if continued is None else continued.trained_model_
        settings = TrainingSettings.of(
            **params,
            name=ESTIMATORS[self.kind],
            continue_from=earlier,
            structure=self.structure,
            early_stopping=self.early_stopping,
        )
        owners = [o.channel.party for o in offers for _ in o.private]
        target, watched = self.target(y), None
        if self.early_stopping is not None:
            split = self._watching(target, release, settings.seed)
            held = release_rows(release, split.held)
            watched = HeldOut(held, where(own, split.held), target.y[split.held])
            release, own = release_rows(release, split.seen), where(own, split.seen)
            target = target.where(split.seen)
        private = tuple(c for offer in offers for c in offer.private)
        if disk is None:
            prepare = prepare_watched_rows if rows.choice == "common" else prepare_partly_known_rows
            prepared = prepare(list(release), OwnTable.of(own), target, settings, owners, watched)
        else:
            sent = {c.name: offer.sent for offer in offers for c in offer.private}
            received = ReceivedOnDisk(private, stored, sent, owners)
            prepared = received.prepared(OwnTable.of(own), target, settings)
        folder = self._model_folder(state, rows)
        trained = trained_once(prepared.booster or settings.booster, prepared.problem, folder)
        books = first_books(prepared.books, folder)
        if earlier is None:
            values = split_values(offers, trained, books, self.ask)
        else:
            ask_nothing(offers)
            values = {}
        model = prepared.finished(trained, values)
        model = self._with_scores(model, prepared, books)
        for channel in channels:
            channel.close()
        promised = promise(offers)
        if self.held_out:

            def scored() -> Scored:
                table, share, recipe = OwnTable.of(own), self.held_out, Recipe.of(model)
                if disk is not None:
                    problem = prepared.problem
                    return score_stored(received, problem, table, target, settings, recipe, share)
                parties = {o.channel.party: [c.name for c in o.private] for o in offers}
                return score_training(
                    release,
                    table,
                    target,
                    settings,
                    recipe,
                    share,
                    parties=parties,
                    watched=watched,
                )

            score = scored_once(scored, self.held_out, folder)
            model = replace(model, score=score)
            if state is None:  # with a job folder, the command prints the score
                print(score.line(total=promised.total + scores_later(offers)), file=sys.stderr)
        before = None if continued is None else continued.desensitizer_.account.counted()
        later = scores_later(offers)
        return ModelWithParties(
            self.kind, params, model, promised, origins(offers), later, before or {}
        )

    def _watching(
        self, target: Target, release: Sequence[ReleasedColumn], seed: int | None
    ) -> Split:
        """Return which rows are held out for early stopping, and which the model learns from."""
        if any(c.withheld for c in release):
            raise ParameterError(
                "early_stopping needs the values of released codes, and a party withholds them "
                "(codebook = 'cuts'). Leave early_stopping out, or ask that party for codebook = "
                "'full'."
            )
        return self._watched_split(target, seed or 0)

    def _watched_split(self, target: Target, seed: int) -> Split:
        """Hold out rows for early stopping; their number depends only on the labels."""
        split = split_rows(target, self.held_out or DEFAULT_HELD_OUT, seed)
        if split.unscored:
            raise DataError(
                f"Training cannot stop early: {split.unscored}",
                hint="Leave early_stopping out.",
            )
        return split

    def _with_scores(
        self, model: TrainedModel, prepared: PreparedRows, books: Books
    ) -> TrainedModel:
        """Return the model with the score tasks that parties get in predictions by score."""
        known = all(book is not None for book in books.values())
        if not model.layout.parties or not known or self.continue_from is not None:
            return model
        draws, problem = prepared.rows.draws, prepared.problem
        with suppress(ParameterError):  # not every objective has scores
            parts = score_parts(
                model.layout, model.trained, problem, books, draws, self.smallest_leaf
            )
            return replace(model, scores=parts)
        return model

    @contextmanager
    def _scratch_folder(self, state: Path | None) -> Iterator[Path | None]:
        """Yield a folder for codes and bins while a model is trained from disk.

        A kill leaves a ``.part`` folder, which the next run deletes.
        """
        if self.memory == "internal":
            yield None
            return
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=state, prefix=".training-", suffix=".part") as folder:
            yield Path(folder)

    def _model_folder(self, state: Path | None, rows: LabelRows) -> Path | None:
        """Return the folder that keeps the model in codes, which depends on the settings."""
        if state is None:
            return None
        given: list[Any] = [*sorted(self.settings.items(), key=lambda i: i[0]), self.memory]
        if self.continue_from is not None:
            given.append(digest_of(self.continue_from.trained_))
        settings = repr(given)
        if self.structure != "free":
            settings += self.structure
        if rows.choice != "common":
            settings += f"{rows.choice} {rows.presence}"
        if self.early_stopping is not None:
            settings += f"{self.early_stopping} {self.held_out}"
        return state / f"trained-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"


def checked_rounds(rounds: int | None, memory: Memory) -> int | None:
    """Return a valid number of early-stopping rounds; refuse any other."""
    if rounds is None:
        return None
    if type(rounds) is not int or rounds < 1:
        raise ParameterError(
            f"early_stopping_rounds must be a whole number, 1 or more, or None; got {rounds!r}."
        )
    if memory == "external":
        raise ParameterError("Early stopping needs rows in memory: leave memory='external' out.")
    return rounds
