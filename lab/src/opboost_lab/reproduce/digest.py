"""``reproduction.md``: the report's sentences and headlines, for a repository's documentation."""

from __future__ import annotations

from collections.abc import Sequence

from opboost_lab.reproduce.finding import Grid, Note
from opboost_lab.reproduce.report import Shown, headlines
from opboost_lab.reproduce.writing import markdown


def digest(all_shown: Sequence[Shown], about: str) -> str:
    """A line on the run, the table of headlines, and what was found artefact by artefact."""
    short = [f"- {s.finding.short}" for s in all_shown if s.finding and s.finding.short]
    minute = ["## In a minute", "", *short, ""] if short else []
    lines = [
        about,
        "",
        *minute,
        "## In figures",
        "",
        markdown(headlines(all_shown)),
        "",
        "## In words",
    ]
    for shown in all_shown:
        lines += ["", f"### {shown.artefact.title} (`{shown.artefact.label}`)", ""]
        if shown.finding is None:
            lines.append(f"**FAILED**: {shown.problem}")
            continue
        lines += [shown.finding.summary, *_notes(shown.finding.notes)]
        lines += [line for grid in _small(shown.finding.grids) for line in _table(grid)]
    return "\n".join(lines) + "\n"


MOST_ROWS, MOST_COLUMNS = 14, 9
"""Larger tables are in the report alone."""


def _small(grids: Sequence[Grid]) -> list[Grid]:
    return [g for g in grids if len(g.rows) <= MOST_ROWS and len(g.header) <= MOST_COLUMNS]


def _notes(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return ["", *(f"- {n.text}" + (f" (Erratum {n.erratum}.)" if n.erratum else "") for n in notes)]


def _table(grid: Grid) -> list[str]:
    note = ["", grid.note] if grid.note else []
    return ["", f"**{grid.title}**", "", markdown(grid), *note]
