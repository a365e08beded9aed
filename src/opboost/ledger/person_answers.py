"""What was revealed about one person: in which releases, to whom, when, and with what promise.

Nothing here writes to the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opboost._typing import BoolArray, Words
from opboost.columns.column_specs import column_from_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import DataError
from opboost.grid import NumericMapping, OrdinalMapping
from opboost.ledger import release_members
from opboost.ledger.chain import Entry
from opboost.ledger.ledger_summary import ALL, events, level, spent_line
from opboost.ledger.lookup import spent
from opboost.ledger.packed_draws import Draws, from_bytes
from opboost.ledger.run_files import Run
from opboost.ledger.store import Ledger
from opboost.ledger.verify_ledger import check_chain
from opboost.mechanisms import NominalMechanism


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a release, for one person.

    ``amount`` is the charge for the draw; ``charged`` is what this release added to the person's
    total: nothing, if it repeated an earlier draw.  ``output`` is the noisy value by the
    name of its released column, None if the ledger does not hold it; ``means`` says it in words.
    """

    attribute: str
    guarantee: str
    sent: bool
    amount: float
    charged: float
    output: dict[str, Any] | None
    means: str


@dataclass(frozen=True, slots=True)
class PersonRelease:
    """A committed release that included the person."""

    entry: int
    at: str
    recipient: str
    job: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that a ledger knows was revealed about one person.

    ``remembered`` says whether any release included the person.  ``spent`` has a line per attribute
    and one for all together, over all recipients and periods.  ``forgotten`` is when the person was
    erased; ``spent`` is then empty, because it is no longer known.  ``migrated`` is when the ledger
    was migrated from version 0.1, which did not record whose draws were sent again.
    """

    remembered: bool
    releases: tuple[PersonRelease, ...]
    alignments: tuple[dict[str, Any], ...]
    spent: tuple[dict[str, Any], ...]
    forgotten: str | None
    migrated: str | None


def about_person(
    ledger: Ledger, person: bytes, recipient: str | None = None, attribute: str | None = None
) -> Answer:
    """Return what was revealed about a person, whose ID is spelt as ``ledger.ids`` says.

    ``recipient`` and ``attribute`` filter the releases; what was spent covers all of them.  A
    ledger whose chain does not verify is refused.
    """
    return ledger.consistently(lambda: _about(ledger, person, recipient, attribute))


def _about(ledger: Ledger, person: bytes, recipient: str | None, attribute: str | None) -> Answer:
    check_chain(ledger)
    chosen = {line.get("closed") for line in events(ledger, recipient, attribute)}
    people = ledger.people([person])
    history = _History(ledger, ledger.handles(people))
    releases = [
        _only(release, attribute)
        for entry in ledger.entries("commit")
        if entry.number in chosen and (release := history.release(entry))
    ]
    aligned = [line for line in events(ledger, recipient) if line["kind"] == "align"]
    forgotten = _forgotten(ledger, people)
    return Answer(
        remembered=bool(history.records),
        releases=tuple(releases),
        alignments=tuple(aligned),
        spent=history.spent() if forgotten is None else (),
        forgotten=forgotten,
        migrated=next((entry.at for entry in ledger.entries("migrate")), None),
    )


def _only(release: PersonRelease, attribute: str | None) -> PersonRelease:
    cells = tuple(c for c in release.cells if attribute in (None, c.attribute))
    return replace(release, cells=cells)


def _forgotten(ledger: Ledger, people: Words) -> str | None:
    """Return when the person's tombstone was set; it is stored under the key used then."""
    for entry in ledger.entries("forget"):
        key = ledger.key_of(entry.body["to"])
        if key is not None and key.handles(people).tobytes().hex() in entry.body["tombstones"]:
            return entry.at
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Record:
    """The person's record in a run.

    ``drawn`` is the entry of the release that wrote it; ``releases`` are the entries of all
    releases that sent it.
    """

    run: Run
    drawn: int
    releases: frozenset[int]
    decided: BoolArray
    sent: BoolArray
    draws: Draws

    def column(self, attribute: str, mechanism: str) -> int | None:
        """Return the position of a column that the record decides, or None."""
        for k, column in enumerate(self.run.columns):
            if (column.attribute, column.mechanism) == (attribute, mechanism) and self.decided[k]:
                return k
        return None


class _History:
    """All records of a person, and the releases that sent them."""

    def __init__(self, ledger: Ledger, handle: Words) -> None:
        self._ledger, self._handle = ledger, handle
        self.records = _records(ledger, handle)
        self._renewals = [(e.number, e.body["attribute"]) for e in ledger.entries("renew")]
        self._migrated = next((e.number for e in ledger.entries("migrate")), -1)

    def release(self, entry: Entry) -> PersonRelease | None:
        """Return what a committed release sent about the person; None if they were not in it."""
        if not any(entry.number in record.releases for record in self.records):
            return None
        body = entry.body
        reserved = self._ledger.entry(body["reservation"])
        if reserved is None or reserved.kind != "reserve":
            raise entry.damaged()
        cells = tuple(self._cell(reserved, c, entry) for c in reserved.body["columns"])
        return PersonRelease(entry.number, entry.at, body["recipient"], body["job"], cells)

    def spent(self) -> tuple[dict[str, Any], ...]:
        """Return what was spent on the person, by attribute and in all."""
        caps, files = self._ledger.caps, [self._ledger.run_file(r.run) for r in self.records]
        sent = {r.run.columns[k].attribute for r in self.records for k in np.flatnonzero(r.sent)}
        reads = self._ledger.score_reads()
        sent |= {name for score in sent for name in reads.get(score, ())}
        amounts = [(n, int(spent(files, self._handle, n, reads)[0])) for n in sorted(sent)]
        lines = [_line(name, amount, caps.attribute) for name, amount in amounts]
        return (*lines, _line(ALL, int(spent(files, self._handle, None, reads)[0]), caps.person))

    def _cell(self, reserved: Entry, column: dict[str, Any], committed: Entry) -> Cell:
        attribute, mechanism = column["attribute"], column.get("mechanism")
        if not isinstance(mechanism, str):
            raise reserved.damaged()
        guarantee = str(column.get("guarantee"))
        number, stored = committed.number, committed.body.get("sent")
        if stored is None:
            standing = self._standing(attribute, mechanism, number)
        else:  # a stored release is sent unchanged, whatever was drawn or renewed since
            standing = self._columns(attribute, mechanism)
            standing = [(r, k) for r, k in standing if r.run.stored == stored]
        found = [(r, k) for r, k in standing if r.sent[k]]
        if not found:
            return Cell(attribute, guarantee, False, 0.0, 0.0, None, "not sent")
        record, k = found[0]
        amount = level(record.run.columns[k].amount)
        own = [r.run.columns[c].amount for r, c in found if r.drawn == number]
        charged = level(sum(own))
        if len(own) > 1 or (stored is not None and len(found) > 1):
            output, words = None, f"{len(found)} draws, one for each spelling of the ID"
        elif len(found) > 1:
            output, words = None, f"one of {len(found)} draws"
        elif record.run.stored:
            output, words = None, f"kept in the stored release {record.run.stored}"
        else:
            output, words = _output(reserved, column, record, k)
        return Cell(attribute, guarantee, True, amount, charged, output, words)

    def _standing(self, attribute: str, mechanism: str, number: int) -> list[tuple[_Record, int]]:
        """Return the records that a release may have used for a cell: its own, or the earliest.

        If changed values were redrawn, the release may have repeated any of the period's earlier
        draws.  An earlier decision not to send applies whatever the value is.  If version 0.1 knew
        a person's ID in two spellings, there may be two records from one release.
        """
        renewed = (n for n, a in self._renewals if n < number and a in ("", attribute))
        begun = max(renewed, default=-1)
        columns = self._columns(attribute, mechanism)
        found = [(record, k) for record, k in columns if begun < record.drawn <= number]
        own = [(record, k) for record, k in found if record.drawn == number]
        if own or number < self._migrated:
            return own or found
        redrawn = any(r.run.columns[k].tagged for r, k in found) and found[0][0].sent[found[0][1]]
        return found if redrawn else found[:1]

    def _columns(self, attribute: str, mechanism: str) -> list[tuple[_Record, int]]:
        """Return all records that decide a cell, with the cell's position in each."""
        places = ((record, record.column(attribute, mechanism)) for record in self.records)
        return [(record, k) for record, k in places if k is not None]


def _records(ledger: Ledger, handle: Words) -> list[_Record]:
    """Return the person's records, in the order in which they were drawn."""
    files = [ledger.run_file(run) for run in ledger.runs()]
    places = {f.run.file: p for f in files if (p := int(f.places(handle)[0])) >= 0}
    again: dict[str, set[int]] = {name: set() for name in places}
    for number, members in ledger.members().items():
        bits = release_members.read(ledger.runs_folder, members)
        for name, place in places.items():
            if name in bits and bits[name][place]:
                again[name].add(number)
    found = []
    for file in files:
        run = file.run
        if run.file not in places:
            continue
        drawn = min(again[run.file], default=run.committed) if run.merged else run.committed
        here = np.array([places[run.file]])
        bits_of = file.decided(here)[0], file.sent(here)[0]
        releases = frozenset({drawn} | again[run.file])
        found.append(_Record(run, drawn, releases, *bits_of, file.draws[here]))
    return sorted(found, key=lambda record: record.drawn)


def _line(attribute: str, amount: int, cap: float | None) -> dict[str, Any]:
    line = spent_line(attribute, 1, amount, cap)
    rest = {name: line[name] for name in ("cap", "left", "exceeded")}
    return {"attribute": attribute, "spent": line["most"], **rest}


def _output(
    reserved: Entry, column: dict[str, Any], record: _Record, k: int
) -> tuple[dict[str, Any], str]:
    """Return the noisy value that a record holds, by released column, and its meaning."""
    declared = column.get("declared")
    if not isinstance(declared, dict):
        raise reserved.damaged()
    try:
        private = column_from_dict({**declared, "name": column["attribute"]})
    except (DataError, ValueError):
        raise reserved.damaged() from None
    slot = record.run.slots()[k]
    drawn = record.draws[:, slot.start : slot.start + record.run.columns[k].width]
    out = from_bytes(private, drawn)
    if out[0].missing is not None and out[0].missing[0]:
        return {str(out[0].name): None}, "missing"
    values = {str(c.name): c.values[0].item() for c in out}
    return values, _in_words(private, list(values.values()))


def _in_words(column: PrivateColumn, values: list[int]) -> str:
    if isinstance(column.mechanism, NominalMechanism):
        pairs = zip(column.mechanism.categories, values, strict=True)
        return ", ".join(str(category) for category, bit in pairs if bit) or "no category"
    (cell,) = values
    grid = column.mechanism.domain
    where = f"cell {cell} of {grid.L}..{grid.R}"
    if isinstance(column.mapping, OrdinalMapping):
        return f"{column.mapping.to_raw([cell])[0]} ({where})"
    if isinstance(column.mapping, NumericMapping):
        lower, upper = column.mapping.interval(grid.clamp(cell))
        return f"{lower:g} to {upper:g} ({where})"
    return where
