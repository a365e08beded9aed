"""Merge many small runs into one, so that a ledger with many releases stays fast."""

from __future__ import annotations

from contextlib import suppress

from opboost.ledger.rewriting import Rewriting
from opboost.ledger.run_files import Repeated, Run
from opboost.ledger.store import Ledger

MAX_ALIKE_RUNS = 8
"""The number of runs of the same columns and period that are merged into one."""


def merge_runs(ledger: Ledger, most: int = MAX_ALIKE_RUNS) -> None:
    """Merge runs of the same columns and period if there are many; the caller holds the lock.

    The ledger still knows who was in which release.  Runs that hold two draws of one cell are not
    merged; a cell has two if it was redrawn because its value had changed.
    """
    change = Rewriting(ledger)
    merged = False
    for group in _groups(ledger):
        if len(group) >= most:
            with suppress(Repeated):
                change.write(group)
                merged = True
    if merged:
        change.commit("merge", ledger.tombstones(), ledger.storage_key.name)


def _groups(ledger: Ledger) -> list[list[Run]]:
    renewals = [e.number for e in ledger.entries("renew")]
    found: dict[object, list[Run]] = {}
    for run in ledger.runs():
        if not run.stored and not any(c.tagged for c in run.columns):
            period = sum(number < run.committed for number in renewals)
            found.setdefault((run.columns, period), []).append(run)
    return list(found.values())
