"""A ledger's answers as text and CSV; a narrow terminal never cuts off a name or a time."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from opboost.cli.common import stdout
from opboost.errors import shown

if TYPE_CHECKING:
    from opboost.ledger.person_answers import Answer, Cell

_INDENT = 7 * " "
_RELEASES = ("entry", "at", "closed", "closed_at", "kind", "what", "recipient", "job", "columns")
_COUNTS = ("rows", "new_cells", "old_cells")
_CELLS = ("attribute", "guarantee", "sent", "amount", "charged", "output", "means")


def print_summary(found: Mapping[str, Any]) -> None:
    """Print the releases and what was spent; the last line is the highest total of any person."""
    _print("Releases" if found["releases"] else "Nothing was released yet.")
    renewed = [{**p, "renewed": p["attribute"] or "all attributes"} for p in found["periods"][1:]]
    for line in sorted([*found["releases"], *renewed], key=_number):
        if "renewed" in line:
            _print_event(line, f"new period of {line['renewed']}")
            continue
        _print_event(line, f"{line['recipient']}: {line['what']}")
        _print(f"job: {line['job']}", _INDENT)
        if line["columns"]:
            _print(f"columns: {', '.join(line['columns'])}", _INDENT)
        if line.get("rows") is not None:
            rows, new, known = (f"{line.get(k) or 0:,}" for k in _COUNTS)
            _print(f"{rows} rows, {new} new cells, {known} known cells", _INDENT)
    _print_spent("Most spent on any one person", found["spent"])
    if (record := found["record"]) is not None:
        _print(
            f"Record total of this period: {record['total']:g} per person, over all jobs; "
            f"{record['columns_per_row']} of {len(record['columns'])} columns are sent for each "
            f"person (plan fixed by entry {record['entry']})"
        )
    if any(period["changed"] == "redraw" for period in found["periods"]):
        _print(
            "No bound over time: changed values are drawn again, so two releases show who changed."
        )
    _print(f"Highest total for any one person: {_total(found['spent'][-1])}")


def print_answer(answer: Answer, person: str) -> None:
    """Print what was revealed about a person; the last line is their total."""
    _print(f"What was revealed about the person {person}")
    if answer.forgotten is not None:
        _print(
            f"Forgotten at {answer.forgotten}: what the ledger remembered about this person was "
            "erased, and releases since then send nothing about them."
        )
    elif not answer.remembered:
        _print("The ledger remembers nothing about this person: no release included this ID.")
    elif not answer.releases:
        _print("None of the selected releases included this person.")
    for release in answer.releases:
        _print_event(asdict(release), f"{release.recipient}: release")
        _print(f"job: {release.job}", _INDENT)
        for cell in release.cells:
            _print(_cell(cell), _INDENT)
            if cell.sent:
                _print(f"promise: {cell.guarantee}", _INDENT + "  ")
    if answer.migrated is not None:
        _print(
            f"Version 0.1, in use until {answer.migrated}, did not record repeated draws: its "
            "releases that drew nothing new about this person are not listed."
        )
    if answer.alignments:
        _print("Alignments, which covered everybody in the table at that time:")
    for line in answer.alignments:
        _print_event(line, f"{line['recipient']}: {line['what']}")
    if answer.forgotten is not None:
        _print("Total for this person: erased, so it is no longer known")
        return
    if len(answer.spent) > 1:
        _print_spent("Spent on this person", answer.spent)
    _print(f"Total for this person: {_total(answer.spent[-1])}")


def _cell(cell: Cell) -> str:
    if not cell.sent:
        return f"{cell.attribute}: not sent"
    cost = f"charged {_level(cell.charged)}" if cell.charged else "as before, nothing charged"
    return f"{cell.attribute}: noisy value {cell.means}; {cost}"


def _print_event(line: Mapping[str, Any], words: str) -> None:
    _print(f"{line.get('closed_at', line['at'])} {words}", f"{_number(line):>5}  ")


def _number(line: Mapping[str, Any]) -> int:
    """Return the number of the entry that ended an event."""
    found: int = line.get("closed", line["entry"])
    return found


def _print(line: str, indent: str = "") -> None:
    """Print a line of any length: a terminal wraps it, and a file keeps it as one line."""
    stdout().print(indent + _printable(line), soft_wrap=True)


def _printable(text: str) -> str:
    """Return a complete text, with every character that a terminal would act on spelt out."""
    return shown(text, most=max(len(text), 2000) * 12)


def _print_spent(title: str, lines: Iterable[Mapping[str, Any]]) -> None:
    table = Table(title=title)
    lines = list(lines)
    table.add_column("attribute", overflow="fold")
    numbers = ["people"] if "people" in lines[0] else []
    for name in (*numbers, "spent", "cap"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("left", justify="right", overflow="fold")
    for line in lines:
        cap = "none" if line["cap"] is None else f"{line['cap']:g}"
        counts = [f"{line[name]:,}" for name in numbers]
        row = [_printable(line["attribute"]), *counts, _level(_amount(line)), cap, _left(line)]
        table.add_row(*row)
    stdout().print(table)


def _left(line: Mapping[str, Any]) -> str:
    if line["exceeded"]:
        return "EXCEEDED"
    return "" if line["left"] is None else f"{line['left']:g}"


def _level(amount: float) -> str:
    return "no bound" if math.isinf(amount) else f"{amount:g}"


def _total(line: Mapping[str, Any]) -> str:
    spent = _level(_amount(line))
    if line["cap"] is None:
        return f"{spent} (no cap)"
    rest = "EXCEEDED" if line["exceeded"] else f"{line['left']:g} left"
    return f"{spent} of {line['cap']:g} ({rest})"


def _amount(line: Mapping[str, Any]) -> float:
    """Return what was spent on the selected person, or else the most spent on any person."""
    found: float = line["spent"] if "spent" in line else line["most"]
    return found


def releases_csv(found: Mapping[str, Any]) -> str:
    """Return the releases of a summary as CSV."""
    names = (*_RELEASES, *_COUNTS)
    lines = ({**line, "columns": ", ".join(line["columns"])} for line in found["releases"])
    return as_csv(names, lines)


def answer_csv(answer: Answer) -> str:
    """Return what was revealed about a person as CSV: one line per column and release."""
    about = ("entry", "at", "recipient", "job")
    lines = (
        {name: getattr(release, name) for name in about}
        | {name: getattr(cell, name) for name in _CELLS}
        | {"output": "" if cell.output is None else json.dumps(cell.output, ensure_ascii=False)}
        for release in answer.releases
        for cell in release.cells
    )
    return as_csv((*about, *_CELLS), lines)


def as_csv(names: Iterable[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """Return lines as CSV with a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(names), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()
