"""A summary of a ledger: its releases, and the most that was spent on one person."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

from opboost.errors import ConfigError
from opboost.ledger.chain import Entry
from opboost.ledger.frozen_plan import frozen_plan
from opboost.ledger.person_totals import totals
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Ledger

ALL = "all together"
"""The name of the line about all attributes."""

UNFINISHED = ", never finished"


def summary(
    ledger: Ledger, recipient: str | None = None, attribute: str | None = None
) -> dict[str, Any]:
    """Return alignments, releases and answers in order, and what was spent per attribute.

    ``recipient`` and ``attribute`` filter the releases; ``attribute`` also filters what was spent.
    A name that occurs in no entry is refused.
    """
    return ledger.consistently(lambda: _summary(ledger, recipient, attribute))


def _summary(ledger: Ledger, recipient: str | None, attribute: str | None) -> dict[str, Any]:
    lines = events(ledger, recipient, attribute)
    found = totals(ledger)
    everything = found.pop("")
    cap = ledger.caps.attribute
    spent = [
        spent_line(name, of.people, of.most, cap)
        for name, of in found.items()
        if attribute in (None, name)
    ]
    spent.append(spent_line(ALL, everything.people, everything.most, ledger.caps.person))
    return {
        "releases": lines,
        "spent": spent,
        "cap_attribute": cap,
        "changed": ledger.changed,
        "periods": periods(ledger),
        "record": _record(ledger),
    }


def _record(ledger: Ledger) -> dict[str, Any] | None:
    """Return the record plan that the period's first release fixed, or None."""
    plan = frozen_plan(ledger)
    if plan is None:
        return None
    return {
        "total": plan.total,
        "columns_per_row": plan.columns_per_row,
        "columns": list(plan.columns),
        "entry": plan.entry,
        "digest": plan.digest,
    }


def spent_line(attribute: str, people: int, most: int, cap: float | None) -> dict[str, Any]:
    """Return a line with the amount spent, its cap, and what is left; ``most`` is in billionths."""
    line = {"attribute": attribute, "people": people, "most": level(most), "cap": cap}
    if cap is None:
        return {**line, "left": None, "exceeded": False}
    room = int(Fraction(repr(float(cap))) * UNITS_PER_EPSILON)
    return {**line, "left": max(room - most, 0) / UNITS_PER_EPSILON, "exceeded": most > room}


def level(amount: int) -> float:
    """Return billionths as a level; infinity if something had no bound."""
    return inf if amount >= UNBOUNDED else amount / UNITS_PER_EPSILON


def periods(ledger: Ledger) -> list[dict[str, Any]]:
    """Return when each period began, its attribute ('' for all) and its rule for changed values."""
    found = []
    for entry in ledger.entries("open", "renew"):
        attribute, changed = entry.body.get("attribute", ""), entry.body.get("changed")
        if changed is None:
            raise entry.damaged()
        line = {"entry": entry.number, "at": entry.at, "attribute": attribute}
        found.append(line | {"changed": changed})
    return found


def events(
    ledger: Ledger, recipient: str | None = None, attribute: str | None = None
) -> list[dict[str, Any]]:
    """Return a line for everything that was sent or about to be sent, in order.

    A release is ``closed`` by the entry that committed or aborted it; until then, nothing was sent.
    """
    migrated = max((entry.number for entry in ledger.entries("migrate")), default=-1)
    found = _Events(migrated)
    for entry in ledger.entries("align", "aligned", "reserve", "commit", "abort", "answer"):
        found.add(entry)
    lines = found.lines
    _check_named("recipient", recipient, {line["recipient"] for line in lines})
    _check_named("attribute", attribute, {a for line in lines for a in line["columns"]})
    return [
        line
        for line in lines
        if recipient in (None, line["recipient"])
        and (attribute is None or attribute in line["columns"])
    ]


def _check_named(what: str, wanted: str | None, known: set[str]) -> None:
    if wanted is not None and wanted not in known:
        listed = ", ".join(sorted(known)) or "none yet"
        raise ConfigError(f"No release of the ledger names the {what} {wanted!r}. Known: {listed}.")


class _Events:
    """The lines of the summary; a later entry can complete the line of an earlier one.

    Reservations before the entry ``migrated`` that were never finished count as spent.
    """

    def __init__(self, migrated: int) -> None:
        self._migrated = migrated
        self.lines: list[dict[str, Any]] = []
        self._releases: dict[int, dict[str, Any]] = {}
        self._psi_sessions: dict[str, dict[str, Any]] = {}
        self._released: dict[str, dict[str, str]] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry's line, or complete an earlier one."""
        body = entry.body
        if entry.kind == "aligned":
            if body["job"] not in self._psi_sessions:
                raise entry.damaged()
            psi_session = self._psi_sessions[body["job"]]
            sizes = psi_session["what"].removesuffix(UNFINISHED)
            psi_session["what"] = f"{sizes}: {body['common']:,} in common"
            return
        if entry.kind in ("commit", "abort"):
            self._close(entry, body)
            return
        line = {
            "entry": entry.number,
            "at": entry.at,
            "kind": entry.kind,
            "job": body["job"],
            "recipient": body["recipient"],
            "columns": [],
        }
        self.lines.append(line)
        if entry.kind == "reserve":
            self._reserve(entry, line)
        elif entry.kind == "align":
            sizes = f"alignment of {body['rows']:,} rows with {body['theirs']:,}"
            line["what"] = sizes + UNFINISHED
            self._psi_sessions[body["job"]] = line
        else:
            line["columns"] = self._asked(body)
            line["what"] = f"split values: {sum(body['cuts'].values())} cuts"

    def _reserve(self, entry: Entry, line: dict[str, Any]) -> None:
        columns = entry.body["columns"]
        line["columns"] = list(dict.fromkeys(c["attribute"] for c in columns))
        so_far = "nothing was sent" if entry.number > self._migrated else "counts as spent"
        line["what"] = f"reserved, not finished: {so_far}"
        self._releases[entry.number] = line
        released = [c["attribute"] for c in columns for _ in range(_width(c))]
        self._released[line["job"]] = {str(place): a for place, a in enumerate(released)}

    def _close(self, entry: Entry, body: dict[str, Any]) -> None:
        line = self._releases.get(body["reservation"])
        if line is None:
            raise entry.damaged()
        what = "release" if entry.kind == "commit" else f"aborted ({body['reason']})"
        counts = {k: body.get(k) for k in ("rows", "new_cells", "old_cells")}
        line.update(counts, kind=entry.kind, what=what)
        line.update(closed=entry.number, closed_at=entry.at)

    def _asked(self, body: dict[str, Any]) -> list[str]:
        """Return the attributes of a query's cuts; the query names released columns by position."""
        released = self._released.get(body["job"], {})
        return list(dict.fromkeys(released[p] for p in body["cuts"] if p in released))


def _width(column: dict[str, Any]) -> int:
    """Return how many released columns a reserved column becomes."""
    declared = column.get("declared")
    mechanism = declared.get("mechanism") if isinstance(declared, dict) else None
    categories = mechanism.get("categories") if isinstance(mechanism, dict) else None
    return len(categories) if isinstance(categories, list) else 1
