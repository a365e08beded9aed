"""Totals over all runs: how many people were charged, and the most charged to one person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.ledger.lookup import charged_amounts, is_about
from opboost.ledger.run_files import RunFile
from opboost.ledger.score_charge import Reads
from opboost.ledger.store import UNBOUNDED, Ledger


@dataclass(frozen=True, slots=True)
class Spent:
    """How many people were charged, and the most charged to one person, in billionths."""

    people: int
    most: int


def totals(ledger: Ledger) -> dict[str, Spent]:
    """Return what was spent in all periods, per attribute; the key '' is for all together.

    Cost: memory for a 256th of the people at a time.
    """
    files = [ledger.run_file(run) for run in ledger.runs()]
    reads = ledger.score_reads()
    read = {name for score in reads.values() for name in score}
    names = sorted({c.attribute for f in files for c in f.run.columns} | read)
    found = {name: Spent(0, 0) for name in [*names, ""]}
    for bucket in _buckets(files):
        for name in found:
            here = bucket.spent(name or None, reads)
            if len(here):
                before = found[name]
                most = max(before.most, int(here.max()))
                found[name] = Spent(before.people + len(here), most)
    return {name: spent for name, spent in found.items() if spent.people or not name}


@dataclass(frozen=True, slots=True, eq=False)
class _Bucket:
    """The records of some people in all runs; ``person`` numbers the person of each row."""

    parts: list[tuple[RunFile, BoolArray]]
    person: IntArray
    people: int

    def spent(self, attribute: str | None, reads: Reads) -> IntArray:
        """Return what was spent on each person about whom something was sent."""
        total = np.zeros(self.people, dtype=np.int64)
        unbounded, sent = (np.zeros(self.people, dtype=np.bool_) for _ in range(2))
        start = 0
        for file, bits in self.parts:
            person = self.person[start : start + len(bits)]
            start += len(bits)
            amounts = charged_amounts(file.run, attribute, reads)
            endless = amounts >= UNBOUNDED
            here = [
                attribute is None or is_about(c.attribute, attribute, reads)
                for c in file.run.columns
            ]
            # A run has one record for a person, so no index repeats.
            total[person] += bits @ np.where(endless, 0, amounts)
            unbounded[person] |= bits[:, endless].any(axis=1)
            sent[person] |= bits[:, here].any(axis=1)
        return np.where(unbounded, UNBOUNDED, total)[sent]


def _buckets(files: list[RunFile]) -> Iterator[_Bucket]:
    for slices in zip(*(f.pieces() for f in files), strict=True):
        handles = np.concatenate([f.handles[s] for f, s in zip(files, slices, strict=True)])
        _, person = np.unique(
            np.ascontiguousarray(handles).view("V16").reshape(-1), return_inverse=True
        )
        parts = [(f, f.sent(s)) for f, s in zip(files, slices, strict=True)]
        yield _Bucket(parts, person, int(person.max(initial=-1)) + 1)
