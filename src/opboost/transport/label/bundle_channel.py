"""The label party's channel to a feature party that sends bundles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opboost.errors import WireError
from opboost.parties.alignment import Match, PsiPeer
from opboost.transport.label.job_folder_channel import JobFolderChannel


class Paused(Exception):
    """The job cannot go on before a party has sent something."""


class BundleChannel(JobFolderChannel):
    """The channel to a party that does not connect: what has not come yet is not waited for."""

    def __init__(self, job: Path, party: str) -> None:
        super().__init__(job, party, wait=0.0)

    def met(self, side: PsiPeer) -> Match:
        """What is common with the party, if its points have come."""
        try:
            return self._met(side)
        except WireError as error:
            raise WireError(
                f"The points of party {self.party!r} cannot be used: {error} Begin a new run of "
                "the job with --again."
            ) from None

    def refuse(self, why: str) -> None:
        """Nothing to do: no bundle is written, and people tell each other why."""

    def _until(self, there: Callable[[], bool], what: str) -> None:
        if not there():
            raise Paused(self.party)
