"""Write the figures of recorded claims into the tables of several pages.

python -m tools.manual.claimed_cells
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tools.manual.blocks import DOCS

Line = dict[str, Any]
"""A recorded claim."""


class Cell(NamedTuple):
    """A cell of a table, found by the first cells of its row, and the claim that it states."""

    row: tuple[str, ...]
    column: int
    claims: str
    name: str
    form: Callable[[Line], str]


def value(line: Line) -> str:
    """Return the figure of a claim, without the sign of a rounded zero."""
    return f"{line['value']:z.3f}"


def bold(line: Line) -> str:
    """Return the figure in bold, with its range."""
    low, high = line["spread"]
    return f"**{value(line)}** ({low:.3f}–{high:.3f})"


def ranged(line: Line) -> str:
    """Return the figure with its range."""
    low, high = line["spread"]
    return f"{value(line)} ({low:.3f}–{high:.3f})"


def gain(line: Line) -> str:
    """Return a difference in bold, with its range and with signs."""
    found = (line["value"], *line["spread"])
    middle, low, high = (f"{x:+.3f}" if abs(x) >= 0.0005 else "0.000" for x in found)
    return f"**{middle}** ({low} to {high})"


def over(noisy: float, line: Line) -> str:
    """Return a score that is so much higher than that of noisy rows, with the gain's range."""
    low, high = line["spread"]
    return f"{noisy + line['value']:.3f} (gain {low:+.3f} to {high:+.3f})"


def _denoising() -> Iterator[Cell]:
    for epsilon, noisy in (("0.08", 0.877), ("0.64", 0.885), ("1.28", 0.893)):
        name = f"Clamp-map, ε={epsilon}, Adult: what denoising gains over noisy rows"
        yield Cell(("Adult (AUC)", epsilon), 5, "denoising", name, partial(over, noisy))
    for data, measure in (("Powerplant", "R²"), ("CASP", "R²"), ("Pen-digits", "accuracy")):
        for epsilon in ("0.08", "0.64", "1.28"):
            row, name = (f"{data} ({measure})", epsilon), f"Clamp-map, denoised, ε={epsilon}"
            yield Cell(row, 5, "denoising", f"{name}, {data}, paper's mapping", ranged)
            yield Cell(row, 6, "denoising", f"{name}, {data}, equal cells", ranged)


def _rows() -> Iterator[Cell]:
    for data, words in (("Industrial", "industrial stand-in, R²"), ("Census", "census, AUC")):
        for total in ("1", "4", "8"):
            for column, people in enumerate(("20,000", "60,000", "190,000"), 2):
                name = f"{data} at a record total of {total}, {people} rows"
                yield Cell((words, total), column, "record_rows", name, value)


def _partly_known() -> Iterator[Cell]:
    sets = {
        "Adult, AUC": "Adult",
        "Pen-digits, accuracy": "Pen-digits",
        "Industrial stand-in, R²": "Industrial",
    }
    for words, data in sets.items():
        name = f"{data} at a record total of 8, 30 % known: rows = 'mine' over"
        yield Cell((words,), 1, "partly_known", f"{name} the common rows", gain)
        yield Cell((words,), 2, "partly_known", f"{name} own columns alone", gain)


def _scores() -> Iterator[Cell]:
    measures = {"Powerplant": "R²", "CASP": "R²", "Pen-digits": "accuracy", "Adult": "AUC"}
    forms = {"clean rows": value, "released columns": value, "released scores": bold}
    for data, measure in measures.items():
        for total in ("1", "4", "8"):
            for column, (way, form) in enumerate(forms.items(), 2):
                name = f"{data} at a total of {total}, predicted from {way}"
                yield Cell((f"{data}, {measure}", total), column, "score_release", name, form)


PAGES: dict[str, Callable[[], Iterable[Cell]]] = {
    "denoising-results.md": _denoising,
    "record-budgets.md": _rows,
    "partly-known-rows.md": _partly_known,
    "score-release.md": _scores,
}


def recorded() -> dict[str, dict[str, Line]]:
    """Return the recorded claims, by file and name."""
    kept = json.loads((DOCS / "claims.json").read_text())
    return {file: {line["name"]: line for line in lines} for file, lines in kept.items()}


def written(text: str, cells: Iterable[Cell], found: dict[str, dict[str, Line]]) -> str:
    """Return a page with the current figures; refuse a page without one of the rows."""
    rows = [_cells(line) for line in text.splitlines()]
    for cell in cells:
        here = [row for row in rows if tuple(row[: len(cell.row)]) == cell.row]
        if len(here) != 1:
            raise ValueError(f"{len(here)} rows begin with {cell.row}.")
        here[0][cell.column] = cell.form(found[cell.claims][cell.name])
    lines = [
        "| " + " | ".join(row) + " |" if row else line
        for row, line in zip(rows, text.splitlines(), strict=True)
    ]
    return "\n".join(lines) + "\n"


def _cells(line: str) -> list[str]:
    """Return the cells of a table's row; none for other lines and for rules under titles."""
    if not line.startswith("| ") or not line.endswith(" |"):
        return []
    return [cell.strip() for cell in line[1:-1].split("|")]


if __name__ == "__main__":
    for page, cells in PAGES.items():
        path = DOCS / page
        path.write_text(written(path.read_text(), cells(), recorded()))
