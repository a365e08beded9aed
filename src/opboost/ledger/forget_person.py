"""Erase what the ledger remembers about one person, and leave a tombstone.

A tombstone holds the person's handle, a keyed one-way function of the ID.  Later releases send
nothing about that person and charge nothing, in every period and under every key
(:class:`~opboost.ledger.lookup.Lookup`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, Words
from opboost.ledger.lookup import have_tombstones
from opboost.ledger.rewriting import Rewriting
from opboost.ledger.store import Ledger
from opboost.storage import atomic_files

KEPT = "ledger-0.1.0.sqlite"
"""The ledger of version 0.1.0 that a migration keeps."""


@dataclass(frozen=True, slots=True)
class Erased:
    """How many records were removed, and the number of the entry, if one was needed."""

    records: int
    entry: int | None


def erase(ledger: Ledger, person: bytes, outputs: Mapping[str, str] | None = None) -> Erased:
    """Remove a person's records from all runs, and leave a tombstone; the caller holds the lock.

    ``person`` is an ID as the ledger spells it; an unknown person gets a tombstone as well.
    ``outputs`` gives the new digest of each stored release from which a row was removed.  A
    second call finishes an interrupted one, and adds no entry if nothing is left to do.
    """
    ledger.clear(wipe=True)
    handle = ledger.handles(ledger.people([person]))
    stones = ledger.tombstones()
    holding = [r for r in ledger.runs() if ledger.run_file(r).places(handle)[0] >= 0]
    known = bool(_alike(stones, handle).any())
    if known and not holding and not outputs:
        return Erased(0, None)
    change = Rewriting(ledger, keep=lambda handles: ~_alike(handles, handle))
    for run in holding:
        change.write([run])
    entry = change.commit(
        "forget",
        stones if known else np.vstack([stones, handle]),
        ledger.storage_key.name,
        wipe=True,
        outputs=dict(outputs or {}),
    )
    return Erased(len(holding), entry.number)


def forgotten(
    ledger: Ledger, person: bytes | None = None
) -> Callable[[pa.LargeBinaryArray], BoolArray]:
    """Return a test for IDs of forgotten people; ``person``, about to be forgotten, counts too."""
    stones = ledger.tombstones()
    if person is not None:
        stones = np.vstack([stones, ledger.handles(ledger.people([person]))])
        stones = stones[np.argsort(stones[:, 0])]
    if not len(stones):
        return lambda ids: np.zeros(len(ids), dtype=np.bool_)
    return lambda ids: have_tombstones(stones, ledger.handles(ledger.people(ids)))


def kept_files(ledger: Ledger) -> list[Path]:
    """Return the files of a 0.1.0 ledger that a migration kept, with its journal."""
    return sorted(ledger.folder.glob(f"{KEPT}*"))


def remove_kept(ledger: Ledger) -> int:
    """Remove the kept ledger of version 0.1.0 as a whole, and return how many files it had.

    It stores hashes of IDs as they were spelt at that time.  Another spelling has another hash, so
    a search for one person may fail.
    """
    files = kept_files(ledger)
    for path in files:
        atomic_files.wipe(path)
    return len(files)


def _alike(handles: Words, handle: Words) -> BoolArray:
    return np.asarray((handles == handle).all(axis=1))
