"""The goal of a job: to train a model, or to predict rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.transport.label.job_folder import is_done
from opboost.transport.label.label_checks import check_label_side
from opboost.transport.label.label_job import (
    Data,
    label_party,
    read_manifest,
    with_ids,
    write_model,
    write_predicted,
)

if TYPE_CHECKING:
    from opboost.parties.label.label_party import Estimator, LabelParty
    from opboost.transport.label.label_job_run import LabelJobRun


@dataclass(frozen=True, slots=True)
class Reached:
    """The outcome of a finished job."""

    manifest: dict[str, Any]
    predictions: pa.Table | None = None
    """IDs with predictions, in the order of the table."""


class Goal(Protocol):
    """What the label party does with the columns that arrive."""

    def known(self, folder: Path) -> Reached | None:
        """Return the outcome of an earlier run if it is still valid, otherwise None."""
        ...

    def needs_nobody(self, folder: Path) -> bool:
        """Return whether the outcome can be recomputed without the feature parties."""
        ...

    def check(self, data: Data) -> None:
        """Refuse a table with which the goal cannot be reached."""
        ...

    def leave_terms(self, run: LabelJobRun) -> None:
        """Write the terms for each party before it can connect."""
        ...

    def reach(self, party: LabelParty, run: LabelJobRun, alignment: dict[str, Any]) -> Reached:
        """Reach the goal with a label party whose rows are aligned, and write the manifest."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingGoal:
    """The goal to train a model and save it where the label party's file says."""

    config: LabelConfig

    def known(self, folder: Path) -> Reached | None:
        """Return the manifest of a finished job if its model still exists."""
        if not is_done(folder) or not self.config.model.exists():
            return None
        return Reached(read_manifest(folder))

    def needs_nobody(self, folder: Path) -> bool:
        """Return False: the label server is open even while a removed model is trained again."""
        return False

    def check(self, data: Data) -> None:
        """Refuse a label, a booster or a disk with which no model could be written."""
        check_label_side(self.config, data)

    def leave_terms(self, run: LabelJobRun) -> None:
        """Write for every party which columns and values the model needs."""
        config = self.config
        if config.continue_from is not None or config.train.early_stopping is not None:
            label_party(config, run.data).agree(run.channels, run.welcome)
            return
        for channel in run.channels:
            channel.agree(run.welcome)

    def reach(self, party: LabelParty, run: LabelJobRun, alignment: dict[str, Any]) -> Reached:
        """Answer the pilots that have arrived, train, ask for split values, and save the model."""
        for channel in run.channels:  # with bundles, no pilot waits for another party's release
            channel.answer_pilot(party.weigher(channel, run.welcome))
        model = party.train_model(run.channels, welcome=run.welcome, state=run.folder)
        return Reached(
            write_model(self.config, run.folder, run.record, model, run.seconds(), alignment)
        )


@dataclass(frozen=True, slots=True)
class PredictionGoal:
    """The goal to predict the rows of a table with a model that was saved as ``model``."""

    estimator: Estimator
    model: Path
    release: Literal["columns", "score"] = "columns"
    without: tuple[str, ...] = ()
    """Parties of the model that do not take part."""

    def known(self, folder: Path) -> Reached | None:
        """Return None: predictions are not kept but computed again from the received columns."""
        return None

    def needs_nobody(self, folder: Path) -> bool:
        """Return whether the job is done, so that every column has arrived."""
        return is_done(folder)

    def check(self, data: Data) -> None:
        """Refuse a table that lacks own columns of the model."""
        from opboost.parties.label.predictions import check_own

        check_own(self.estimator, data.features)

    def leave_terms(self, run: LabelJobRun) -> None:
        """Write for every party whether its columns are wanted, or which score."""
        from opboost.parties.label.score_query import score_task

        for channel in run.channels:
            if self.release == "score":
                task = score_task(self.estimator, channel.party, run.record.job)
                channel.want_score(task)
            else:
                channel.want_columns()

    def reach(self, party: LabelParty, run: LabelJobRun, alignment: dict[str, Any]) -> Reached:
        """Predict the rows that all parties have, and score them if the table has their label."""
        from opboost.files.train_and_predict import score_line

        found = party.predict(
            self.estimator,
            run.channels,
            welcome=run.welcome,
            state=run.folder,
            release=self.release,
            without=self.without,
        )
        rows = run.data.features
        here = None if rows is None else rows.take(pa.array(found.rows))
        score = score_line(self.estimator, here, found.table())
        manifest = write_predicted(
            run.folder, run.record, found, self.model, run.seconds(), alignment, score
        )
        return Reached(manifest, with_ids(run.data, found))
