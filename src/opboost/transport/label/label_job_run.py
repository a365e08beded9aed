"""One run of the label party's side of a job, over the network or by bundles."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opboost.config.job_file import LabelConfig
from opboost.protocol.messages import Welcome
from opboost.transport.label.job_folder import JobRecord
from opboost.transport.label.job_folder_channel import JobFolderChannel
from opboost.transport.label.job_terms import welcome_of
from opboost.transport.label.label_goals import Goal, Reached
from opboost.transport.label.label_job import Data, alignment_figures, check_data, label_party
from opboost.transport.shared.logs import Log

if TYPE_CHECKING:
    from opboost.parties.label.label_party import LabelParty


@dataclass(frozen=True, slots=True)
class LabelJobRun:
    """The label party with its table and its channels, in any phase of a job."""

    config: LabelConfig
    folder: Path
    record: JobRecord
    data: Data
    channels: Sequence[JobFolderChannel]
    started: float = field(default_factory=time.monotonic)
    log: Log | None = None
    """Where a networked run logs the duration of the alignment.  None in a job by bundles,
    where the duration would include the time in which people carry bundles."""

    def __post_init__(self) -> None:
        """Refuse a table whose rows are not those with which the job began."""
        check_data(self.record, self.data)

    @property
    def welcome(self) -> Welcome:
        """The job's first message, without the parts that differ by party."""
        return welcome_of(self.record)

    def seconds(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self.started

    def reach(self, goal: Goal) -> Reached:
        """Align rows unless they are given, then reach the job's goal."""
        begun = time.monotonic()
        party = self.aligned()
        if self.record.align == "given":
            return goal.reach(party, self, {})
        figures = alignment_figures(self.folder, self.record)
        if self.log is not None:
            figures["seconds"] = round(time.monotonic() - begun, 3)
            self.log.write("aligned", job=self.record.job, **figures)
        return goal.reach(party, self, {"align": figures})

    def aligned(self) -> LabelParty:
        """Return the label party with the common rows only, or with all rows if they are given."""
        party = label_party(self.config, self.data)
        if self.record.align == "given":
            return party
        return party.align(self.channels, self.welcome, self.folder)
