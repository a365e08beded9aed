"""Rewrite runs: change their handles, leave out some people, or merge several into one.

One entry of the chain makes the whole change take effect; files that are no longer named are
removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.ledger import release_members
from opboost.ledger.chain import Entry
from opboost.ledger.run_files import Run, RunFile, RunWriter
from opboost.ledger.store import Ledger

_CHUNK_RECORDS = 1 << 16
"""The number of records copied at a time."""


def _same(handles: Words) -> Words:
    return handles


def _all(handles: Words) -> BoolArray:
    return np.ones(len(handles), dtype=np.bool_)


@dataclass
class Rewriting:
    """A change of runs in progress.

    ``renamed`` maps old handles to new ones, ``keep`` says who stays.
    """

    ledger: Ledger
    renamed: Callable[[Words], Words] = _same
    keep: Callable[[Words], BoolArray] = _all
    _new: list[Run] = field(default_factory=list)
    _gone: list[str] = field(default_factory=list)
    _moved: dict[str, tuple[Run, IntArray]] = field(default_factory=dict)
    _own: list[Run] = field(default_factory=list)

    def write(self, group: Sequence[Run]) -> None:
        """Write some runs of the same columns as one.

        Raises :class:`Repeated` if two of them have a record of the same person.
        """
        path = self.ledger.new_run_path()
        writer = RunWriter(path.parent, group[0].columns, group[0].stored)
        try:
            for file in map(self.ledger.run_file, group):
                for start in range(0, file.run.count, _CHUNK_RECORDS):
                    piece = slice(start, start + _CHUNK_RECORDS)
                    here = np.flatnonzero(self.keep(file.handles[piece])) + start
                    handles = self.renamed(file.handles[here])
                    writer.add(handles, file.decided(here), file.sent(here), file.draws[here])
            made = writer.finish(path, min(run.committed for run in group))
        finally:
            writer.close()
        made = replace(made, merged=len(group) > 1 or group[0].merged)
        new = RunFile(made, path)
        for run in group:
            old = self.ledger.run_file(run)
            self._moved[run.file] = (made, new.places(self.renamed(old.handles)))
            self._gone.append(run.file)
            if made.merged and not run.merged:
                self._own.append(run)
        self._new.append(made)

    def commit(
        self, kind: str, tombstones: Words, key: str, *, wipe: bool = False, **more: Any
    ) -> Entry:
        """Append the entry, with ``more`` in it, and remove the old files.

        With ``wipe``, the old files are overwritten first.
        """
        ledger = self.ledger
        body = {
            "runs": [run.as_json() for run in self._new],
            "gone": self._gone,
            "members": [[n, m.as_json()] for n, m in self._members().items()],
            "tombstones": [bytes(t).hex() for t in tombstones.astype("<u8").view(np.uint8)],
            "to": key,
            **more,
        }
        with ledger.writing():
            entry = ledger.append(kind, body)
        ledger.forget_files(self._gone)
        ledger.clear(wipe=wipe)
        return entry

    def _members(self) -> dict[int, release_members.Members]:
        """Return the people of each release, by their positions in the new runs."""
        members = self.ledger.members()
        folder = self.ledger.runs_folder
        found = {n: release_members.read(folder, m) for n, m in members.items()}
        for run in self._own:
            found.setdefault(run.committed, {})[run.file] = np.ones(run.count, dtype=np.bool_)
        return {
            number: release_members.write(self.ledger.new_run_path(), self._moved_bits(bits))
            for number, bits in found.items()
        }

    def _moved_bits(self, bits: dict[str, BoolArray]) -> dict[str, BoolArray]:
        moved: dict[str, BoolArray] = {}
        for name, old in bits.items():
            if name not in self._moved:
                moved[name] = old
                continue
            run, places = self._moved[name]
            here = moved.setdefault(run.file, np.zeros(run.count, dtype=np.bool_))
            here[places[old & (places >= 0)]] = True
        return moved
