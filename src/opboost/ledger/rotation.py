"""A new key: all stored names are encrypted anew, in one step of the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.ledger import members
from opboost.ledger.runs import Run, RunFile, RunWriter
from opboost.ledger.store import Ledger

Keep = Callable[[Words], BoolArray]
"""Given handles: which of them stay."""


def rotate(ledger: Ledger) -> None:
    """Encrypt stored names under the key file's newest key, unless they are; only under the lock.

    People stay who they are: the oldest key names them.
    """
    old, new = ledger.storage_key, ledger.key
    if old.name == new.name:
        return

    def renamed(handles: Words) -> Words:
        return new.handles(old.people_behind(handles))

    stones = renamed(ledger.tombstones())
    rewrite(ledger, "rotate", stones, new.name, renamed=renamed)


def rewrite(
    ledger: Ledger,
    kind: str,
    tombstones: Words,
    key: str,
    *,
    renamed: Callable[[Words], Words] = lambda handles: handles,
    keep: Keep = lambda handles: np.ones(len(handles), dtype=np.bool_),
) -> None:
    """Write every run anew, with other handles or fewer people, and say so in one entry."""
    runs, gone, orders = [], [], {}
    for run in ledger.runs():
        written, order = _rewritten(ledger, run, renamed, keep)
        runs.append(written)
        gone.append(run.file)
        orders[run.file] = (written, order)
    told = [[number, _members(ledger, m, orders)] for number, m in ledger.members().items()]
    body = {
        "runs": [run.as_json() for run in runs],
        "gone": gone,
        "members": told,
        "tombstones": [bytes(t).hex() for t in tombstones.astype("<u8").view(np.uint8)],
        "to": key,
    }
    with ledger.writing():
        ledger.append(kind, body)
    ledger.clear()


def _rewritten(
    ledger: Ledger, run: Run, renamed: Callable[[Words], Words], keep: Keep
) -> tuple[Run, IntArray]:
    """The run's new file, and which record of the old one each of its records was."""
    file = ledger.run_file(run)
    path = ledger.new_run_path()
    writer = RunWriter(path.parent, run.columns, run.stored)
    try:
        for piece in file.pieces():
            here = np.flatnonzero(keep(file.handles[piece])) + piece.start
            writer.add(
                renamed(file.handles[here]), file.decided(here), file.sent(here), file.draws[here]
            )
        written = writer.finish(path, run.committed)
    finally:
        writer.close()
    stay = np.flatnonzero(keep(file.handles))
    new = RunFile(written, path)
    places = new.places(renamed(file.handles[stay]))
    order = np.empty(written.count, dtype=np.int64)
    order[places] = stay
    return written, order


def _members(
    ledger: Ledger, told: members.Members, orders: dict[str, tuple[Run, IntArray]]
) -> dict[str, Any]:
    found = members.read(ledger.runs_folder, told)
    moved: dict[str, BoolArray] = {}
    for name, bits in found.items():
        run, order = orders[name]
        moved[run.file] = bits[order]
    return members.write(ledger.new_run_path(), moved).as_json()
