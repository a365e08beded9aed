"""Many small runs become one, so that a ledger of many releases stays as fast as one of few."""

from __future__ import annotations

from contextlib import suppress

from opboost.ledger.rewriting import Rewriting
from opboost.ledger.run_files import Repeated, Run
from opboost.ledger.store import Ledger

MAX_ALIKE_RUNS = 8
"""This many runs of the same columns and period are merged into one."""


def merge_runs(ledger: Ledger, most: int = MAX_ALIKE_RUNS) -> None:
    """Merge runs of the same columns and period, if there are many; only under the lock.

    Who was in which release stays known.  Runs with two draws of one cell (values that are drawn
    anew when they change) are left as they are.
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
