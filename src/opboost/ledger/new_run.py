"""The run that a release adds to the ledger: records of people, each of whom may stand once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from opboost._typing import BoolArray, Words
from opboost.columns.duplicate_ids import DuplicateIds
from opboost.errors import DataError
from opboost.ledger.packed_draws import Draws
from opboost.ledger.run_files import Repeated, Run, RunColumn, RunWriter
from opboost.ledger.store import Ledger


class NewRun:
    """Collects records in files of its own until they are written as one run."""

    def __init__(self, ledger: Ledger, columns: Sequence[RunColumn], stored: str) -> None:
        self.path = ledger.new_run_path()
        with ExitStack() as stack:
            self._writer = RunWriter(self.path.parent, columns, stored)
            stack.callback(self._writer.close)
            self._seen = stack.enter_context(DuplicateIds(ledger.folder))
            self._files = stack.pop_all()

    def __enter__(self) -> NewRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.close()

    @property
    def draw_bytes(self) -> int:
        """Bytes of one person's draws."""
        return self._writer.run.draw_bytes

    def slots(self) -> list[slice]:
        """Where the draw of each column lies in a person's draws."""
        return self._writer.run.slots()

    @property
    def next_path(self) -> Path:
        """The file beside the run, for whom of earlier runs the release is about."""
        return self.path.with_name(f"{int(self.path.name) + 1:06d}")

    def see(self, handles: Words) -> None:
        """Note people about whom the run has no record; they may not come again either."""
        self._seen.add(handles)

    def add(
        self,
        handles: Words,
        decided: BoolArray,
        sent: BoolArray,
        draws: Draws,
        recorded: BoolArray,
    ) -> None:
        """Write records for people of whom something is decided now.

        Of all others, the look-up counts those twice who are ``recorded``; the rest is seen here.
        """
        some = decided.any(axis=1)
        if some.all():
            self._writer.add(handles, decided, sent, draws)
            return
        self.see(handles[~some & ~recorded])
        if some.any():
            self._writer.add(handles[some], decided[some], sent[some], draws[some])

    def check_seen(self, repeats: int) -> None:
        """Refuse people who came twice; ``repeats`` are rows of those with an earlier record."""
        if twice := self._seen.repeats() + repeats:
            raise repeated_ids(twice)

    def finish(self, number: int) -> Run | None:
        """Write the run under the number of its entry; None where nobody has a record."""
        if not self._writer.count:
            return None
        try:
            return self._writer.finish(self.path, number)
        except Repeated as repeated:
            raise repeated_ids(repeated.args[0]) from None

    def discard(self) -> None:
        """Remove the run's file, if it was written."""
        self.path.unlink(missing_ok=True)


def repeated_ids(rows: int) -> DataError:
    """The refusal of rows whose ID stands in an earlier row."""
    return DataError(
        f"{rows:,} rows repeat an ID of an earlier row",
        hint="An ID stands for one person, however it is spelt: keep one row of each. Where "
        'IDs are case-sensitive, begin the ledger with ids = "exact" in [ledger].',
    )
