"""The run that a release adds to the ledger: records of people, at most one per person."""

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
    """A collector of records, which are kept in temporary files and then written as one run."""

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
        """The number of bytes of one person's draws."""
        return self._writer.run.draw_bytes

    def slots(self) -> list[slice]:
        """Return the position of each column's draw in a person's draws."""
        return self._writer.run.slots()

    @property
    def next_path(self) -> Path:
        """The path of the file that lists the people of earlier runs in the release."""
        return self.path.with_name(f"{int(self.path.name) + 1:06d}")

    def see(self, handles: Words) -> None:
        """Note people who get no record in the run, so that repeats of them are found, too."""
        self._seen.add(handles)

    def add(
        self,
        handles: Words,
        decided: BoolArray,
        sent: BoolArray,
        draws: Draws,
        recorded: BoolArray,
    ) -> None:
        """Write records for people for whom something is newly decided.

        The others get no record.  The look-up counts repeats of those who are ``recorded``; this
        method notes the rest for :meth:`check_seen`.
        """
        some = decided.any(axis=1)
        if some.all():
            self._writer.add(handles, decided, sent, draws)
            return
        self.see(handles[~some & ~recorded])
        if some.any():
            self._writer.add(handles[some], decided[some], sent[some], draws[some])

    def check_seen(self, repeats: int) -> None:
        """Refuse people who occur twice; ``repeats`` counts those that the look-up found."""
        if twice := self._seen.repeats() + repeats:
            raise repeated_ids(twice)

    def finish(self, number: int) -> Run | None:
        """Write the run under the number of its entry; return None if it has no record."""
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
    """Return the error for rows whose ID occurs in an earlier row."""
    return DataError(
        f"{rows:,} rows repeat an ID of an earlier row",
        hint="An ID means one person, however it is spelt: keep one row per person. If IDs are "
        'case-sensitive, create the ledger with ids = "exact" in [ledger].',
    )
