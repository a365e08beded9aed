"""The label party's channel to a feature party that sends bundles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opboost.errors import WireError
from opboost.parties.alignment import Match, PsiPeer
from opboost.transport.label.job_folder_channel import JobFolderChannel


class Paused(Exception):
    """The job has to wait until a party has sent something."""


class BundleChannel(JobFolderChannel):
    """The channel to a party that does not connect; it raises :class:`Paused`, and never waits."""

    def __init__(self, job: Path, party: str) -> None:
        super().__init__(job, party, wait=0.0)

    def met(self, side: PsiPeer) -> Match:
        """Return the rows in common with the party, if its points have arrived."""
        try:
            return self._met(side)
        except WireError as error:
            raise WireError(
                f"The points of party {self.party!r} cannot be used: {error} Begin a new run of "
                "the job with --again."
            ) from None

    def refuse(self, why: str) -> None:
        """Do nothing: bundles carry no refusal, so people have to pass the reason on."""

    def _until(self, there: Callable[[], bool], what: str) -> None:
        if not there():
            raise Paused(self.party)
