"""Write the blocks of a 0.1 ledger as runs, by the rules of migration.py."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, IntArray, Words
from opboost.ledger.database import damaged
from opboost.ledger.format1 import Block, Content, Format1, Names, Piece, key_name, names_of, said
from opboost.ledger.key_file import KeyFile
from opboost.ledger.packed_draws import Draws
from opboost.ledger.run_files import Run, RunColumn, RunWriter
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON

Ids = tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]
"""IDs as version 0.1 spelt them (as in the table, trimmed), and as the new ledger does."""


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The position of each word in a list."""

    words: Words
    order: IntArray

    @classmethod
    def of(cls, words: Words) -> _Index:
        order = np.argsort(words)
        return cls(words[order], order)

    def find(self, wanted: Words) -> IntArray:
        """Return the position of each wanted word, or -1."""
        if not len(self.words):
            return np.full(len(wanted), -1)
        place = np.minimum(np.searchsorted(self.words, wanted), len(self.words) - 1)
        return np.where(self.words[place] == wanted, self.order[place], -1)


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """People by their old names, one per spelling of an ID, and by their new name.

    ``person`` is the person of each spelling; ``handles`` are the handles of each person.
    """

    by_cell: dict[str, _Index]
    by_charge: dict[str, _Index]
    person: IntArray
    handles: Words

    @classmethod
    def of(cls, ids: Iterable[Ids], keys: KeyFile) -> People:
        """Read all IDs; a repeated spelling counts once."""
        nobody: Words = np.empty(0, dtype=np.uint64)
        then = {key: [Names(nobody, nobody)] for key in keys.keys}
        now: list[Words] = [nobody.reshape(0, 2)]
        for was, spelt in ids:
            listed = was.to_pylist()
            for key, found in then.items():
                found.append(names_of(key, listed))
            now.append(keys.oldest.people(spelt))
        names = {
            key_name(key): np.column_stack(
                [np.concatenate([n.in_cells for n in f]), np.concatenate([n.in_charges for n in f])]
            )
            for key, f in then.items()
        }
        _, first = np.unique(_pairs(names[key_name(keys.newest)]), return_index=True)
        kept = np.sort(first)
        words = np.concatenate(now)[kept]
        _, one, person = np.unique(_pairs(words), return_index=True, return_inverse=True)
        return cls(
            {name: _Index.of(pair[kept, 0]) for name, pair in names.items()},
            {name: _Index.of(pair[kept, 1]) for name, pair in names.items()},
            person,
            keys.newest.handles(words[one]),
        )

    def __len__(self) -> int:
        return len(self.person)


def _pairs(words: Words) -> Any:
    """Return pairs of words, each as one value that can be sorted."""
    return np.ascontiguousarray(words, dtype="<u8").view("V16").reshape(-1)


class Choices:
    """The columns chosen for each spelling's row, by plan (columns per row, attributes)."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._packed: dict[str, Draws] = {}
        self._known: dict[str, BoolArray] = {}

    def add(self, plan: str, content: Content) -> None:
        """Add a block of choices; the first choice of a spelling counts."""
        if plan not in self._packed:
            count, width = len(self._people), content.drawn.shape[1]
            self._packed[plan] = np.zeros((count, width), dtype=np.uint8)
            self._known[plan] = np.zeros(count, dtype=np.bool_)
        found = self._people.by_cell[content.key].find(content.people)
        rows = np.flatnonzero(found >= 0)
        new = rows[~self._known[plan][found[rows]]]
        self._packed[plan][found[new]] = content.drawn[new]
        self._known[plan][found[new]] = True

    def plans(self, attributes: Sequence[str]) -> list[str]:
        """Return the known plans for these attributes."""
        every = (_plan(count, attributes) for count in range(1, len(attributes) + 1))
        return [plan for plan in every if plan in self._packed]

    def left_out(self, plan: str, attributes: Sequence[str], spellings: IntArray) -> BoolArray:
        """Return which columns a plan left out of each row; none if that is unknown."""
        width = len(attributes)
        chosen = np.empty((len(spellings), width), dtype=np.bool_)
        packed = self._packed[plan][spellings]
        chosen[:, np.argsort(attributes)] = np.unpackbits(packed, axis=1, count=width)
        return ~chosen & self._known[plan][spellings, None]


def _plan(columns_per_row: int, attributes: Sequence[str]) -> str:
    """Return the name that version 0.1 gave a choice of columns."""
    plain = json.dumps([columns_per_row, *sorted(attributes)])
    return hashlib.sha256(plain.encode()).hexdigest()


def survey(old: Format1, people: People, choices: Choices) -> int:
    """Collect all choices of columns, and return how many unknown people were charged."""
    unknown: dict[str, list[Words]] = defaultdict(list)
    for block in (block for piece in old.pieces() for block in piece.blocks):
        if block.is_choice:
            choices.add(block.mechanism, old.content(block))
        elif block.table == "charges":
            key, charged, _ = old.content(block)
            unknown[key].append(charged[people.by_charge[key].find(charged) < 0])
    return sum(len(np.unique(np.concatenate(words))) for words in unknown.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """The content of one piece of a release, one row per known spelling."""

    spellings: IntArray
    sent: BoolArray
    draws: Draws


class Runs:
    """A writer of runs with the content of an old ledger's blocks."""

    def __init__(self, old: Format1, people: People, choices: Choices, folder: Path) -> None:
        self._old, self._people, self._choices, self._folder = old, people, choices, folder
        folder.mkdir(mode=0o700)
        entries = list(old.entries())
        self._reserved = {e.number: said(e) for e in entries if e.kind == "reserve"}
        self._committed = {said(e)["reservation"]: e.number for e in entries if e.kind == "commit"}
        self._last = len(entries) + len(old.open_reservations())
        self._remembered = np.zeros(len(people.handles), dtype=np.bool_)

    def people(self) -> int:
        """Return how many people have a record in the written runs."""
        return int(self._remembered.sum())

    def written(self) -> list[Run]:
        """Write all runs; the draws that count come first."""
        found: dict[int, list[Piece]] = defaultdict(list)
        for piece in self._old.pieces():
            found[piece.reservation].append(piece)
        runs: list[Run] = []
        for reservation in sorted(found, key=lambda r: (self._committed_as(r), r)):
            runs += self._release(reservation, found[reservation], len(runs))
        return runs

    def _committed_as(self, reservation: int) -> int:
        """Return the entry that committed a release; the migration's if it was never finished."""
        return self._committed.get(reservation, self._last)

    def _release(self, reservation: int, pieces: list[Piece], before: int) -> list[Run]:
        """Return one run for a release, and more if somebody has several records in it."""
        reserved = self._reserved[reservation]
        stored = reserved["job"].removeprefix("release ") if pieces[0].stored else ""
        columns = _columns(reserved, pieces)
        plan = self._plan(columns, pieces)
        earlier = np.zeros(len(self._people.handles), dtype=np.int64)
        with ExitStack() as stack:
            writers: list[RunWriter] = []
            for piece in pieces:
                records = self._records(columns, piece)
                decided = self._decided(columns, plan, piece, records)
                person = self._people.person[records.spellings]
                layers = earlier[person] + _repeats(person)
                np.add.at(earlier, person, 1)
                self._remembered[person] = True
                for layer in range(int(layers.max(initial=-1)) + 1):
                    if layer == len(writers):
                        writers.append(RunWriter(self._folder, columns, stored))
                        stack.callback(writers[-1].close)
                    here = layers == layer
                    handles = self._people.handles[person[here]]
                    writers[layer].add(
                        handles, decided[here], records.sent[here], records.draws[here]
                    )
            return [
                writer.finish(self._folder / f"{number:06d}", self._committed_as(reservation))
                for number, writer in enumerate(writers, before + 1)
            ]

    def _plan(self, columns: Sequence[RunColumn], pieces: list[Piece]) -> str | None:
        """Return the choice of columns that a release followed, as far as the old ledger knows it.

        A release that drew no choice may have followed an earlier one.  In that case, it charged
        nothing for the columns left out.
        """
        attributes = [c.attribute for c in columns]
        plans = self._choices.plans(attributes)
        own = {b.mechanism for piece in pieces for b in piece.blocks if b.is_choice}
        for plan in plans:
            if plan in own:
                return plan
        if pieces[0].stored or not plans:
            return None
        records = [self._records(columns, piece) for piece in pieces]
        for plan in plans:
            left_out = (self._choices.left_out(plan, attributes, r.spellings) for r in records)
            if not any((out & r.sent).any() for out, r in zip(left_out, records, strict=True)):
                return plan
        return None

    def _records(self, columns: Sequence[RunColumn], piece: Piece) -> _Records:
        """Return the records of a piece for known spellings."""
        nobody: IntArray = np.empty(0, dtype=np.int64)
        nothing: Draws = np.empty((0, 0), dtype=np.uint8)
        charged, chosen = [nobody] * len(columns), [nobody]
        drawn = [(nobody, nothing)] * len(columns)
        for j, block in _by_column(columns, piece):
            key, people, draws = self._old.content(block)
            index = self._people.by_charge if block.table == "charges" else self._people.by_cell
            found = index[key].find(people)
            here = found >= 0
            if block.is_choice:
                chosen.append(found[here])
            elif block.table == "charges":
                charged[j] = found[here]
            else:
                drawn[j] = found[here], draws[here]
        spellings = np.unique(np.concatenate([*charged, *chosen]))
        sent = np.zeros((len(spellings), len(columns)), dtype=np.bool_)
        out = [np.zeros((len(spellings), c.width), dtype=np.uint8) for c in columns]
        for j, (found, draws) in enumerate(drawn):
            sent[np.searchsorted(spellings, charged[j]), j] = True
            if not piece.stored and not np.array_equal(np.sort(found), np.sort(charged[j])):
                raise damaged("The ledger charged for cells other than those it drew")
            if len(found):
                out[j][np.searchsorted(spellings, found)] = draws
        return _Records(spellings, sent, np.hstack(out))

    def _decided(
        self, columns: Sequence[RunColumn], plan: str | None, piece: Piece, records: _Records
    ) -> BoolArray:
        """Return what is decided for each spelling: what was sent, and what was left out."""
        if piece.stored:
            return np.ones_like(records.sent)
        if plan is None:
            return records.sent
        attributes = [c.attribute for c in columns]
        left_out = self._choices.left_out(plan, attributes, records.spellings)
        return np.asarray(records.sent | left_out)


def _columns(reserved: dict[str, Any], pieces: list[Piece]) -> list[RunColumn]:
    """Return the columns of a release; a column without draws takes no space."""
    declared = [
        RunColumn(c["attribute"], c["mechanism"], _amount(c["amount"]), 0)
        for c in reserved["columns"]
    ]
    widths = [0] * len(declared)
    for j, block in (found for piece in pieces for found in _by_column(declared, piece)):
        if block.table == "noise" and not block.is_choice:
            widths[j] = block.width
    return [replace(c, width=width) for c, width in zip(declared, widths, strict=True)]


def _by_column(columns: Sequence[RunColumn], piece: Piece) -> list[tuple[int, Block]]:
    """Return the blocks of a piece with their column's number (meaningless for a choice).

    Columns are in order, and a column's charge comes before its noise.
    """
    found, last = [], -1
    for block in piece.blocks:
        if block.table == "charges":
            wanted = (block.attribute, block.amount)
            rest = enumerate(columns[last + 1 :], last + 1)
            last = next(j for j, c in rest if (c.attribute, c.amount) == wanted)
        found.append((last, block))
    return found


def _amount(text: str) -> int:
    return UNBOUNDED if text == "unbounded" else int(Fraction(text) * UNITS_PER_EPSILON)


def _repeats(person: IntArray) -> IntArray:
    """Return how often each value occurs earlier in the list."""
    order = np.argsort(person, kind="stable")
    ordered = person[order]
    first = np.searchsorted(ordered, ordered)
    found = np.empty(len(person), dtype=np.int64)
    found[order] = np.arange(len(person)) - first
    return found
