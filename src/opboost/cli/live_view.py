"""A live view of a label party's job in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from opboost.cli.signals import end_if_requested

if TYPE_CHECKING:
    from opboost.config.job_file import Job


REFUSALS = {
    "cap": "a cap on what is spent on a person",
    "declaration": "its declaration of columns",
    "rows": "the rows of its table",
}
"""Why a party refuses to release, in words, by the kind of its reason."""


class LiveView:
    """A table of the parties, redrawn while the job runs; shows nothing without a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True) if console.is_terminal else None
        self.drawn = False
        self._refusals: dict[str, str] = {}

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def opened(self, job: Job, address: str) -> None:
        """Print which parties the job serves, and on which address."""
        parties = ", ".join(job.feature_parties)
        self._console.print(f"Job {job.name!r}: serving {parties} on {address}")

    def update(self, where: dict[str, Any]) -> None:
        """Draw the state of the job."""
        end_if_requested()
        self.drawn = True
        self._tell_refusals(where)
        if self._live:
            self._live.update(table_of(where))

    def _tell_refusals(self, where: dict[str, Any]) -> None:
        """Print once, even without a terminal, that a party refuses to release."""
        refusals = {name: party["refusal"] for name, party in where["parties"].items()}
        for name, reason in refusals.items():
            if reason and self._refusals.get(name) != reason:
                self._console.print(
                    f"{name} refuses to release ({REFUSALS[reason]}); its own message says more. "
                    f"This job continues once {name} has corrected that and joins again."
                )
        self._refusals = refusals


def table_of(where: dict[str, Any]) -> Table:
    """Return the state of a job as a table, one line per party."""
    table = Table(title=f"{where['job']}: {where['phase']}, {where['rows']:,} rows")
    for title in ("party", "phase", "aligned", "columns", "bytes"):
        table.add_column(title, justify="right" if title in ("columns", "bytes") else "left")
    for name, party in where["parties"].items():
        done = f"{party['columns']} of {party['columns_due'] or '?'}"
        bar = ProgressBar(total=1.0, completed=party["aligned"], width=20)
        phase = f"{party['phase']}: {party['refusal']}" if party["refusal"] else party["phase"]
        table.add_row(name, phase, bar, done, f"{party['bytes']:,}")
    return table
