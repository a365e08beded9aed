"""``reproduction.md``: the report as a page of a repository's documentation, the answer first."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from opboost_lab.reproduce.finding import AGREES
from opboost_lab.reproduce.report import Shown, headlines
from opboost_lab.reproduce.writing import markdown

MOST_ROWS, MOST_COLUMNS = 14, 9
"""Larger tables are in the report alone."""


def digest(all_shown: Sequence[Shown], about: str) -> str:
    """The answer, a line on the run, the table of headlines, and what was found one by one."""
    made = Environment(loader=PackageLoader(__package__, ""), undefined=StrictUndefined)
    made.filters["markdown"] = markdown
    found = {s.artefact.label: s.finding for s in all_shown}
    said = {label: f.said for label, f in found.items() if f and f.said}

    def by_verdict(verdict: str) -> list[str]:
        cases = ((label, s) for label, s in said.items() if s.verdict == verdict)
        return [f"`{label}` ({s.held} of {s.cases})" for label, s in cases]

    return made.get_template("reproduction.md.jinja").render(
        all_shown=all_shown,
        about=about,
        agrees=f"{AGREES:.0%}",
        missing=[f"`{label}`" for label, finding in found.items() if finding is None],
        short=[f.short for f in found.values() if f and f.short],
        said=said,
        by_verdict=by_verdict,
        headlines=headlines(all_shown),
        most_rows=MOST_ROWS,
        most_columns=MOST_COLUMNS,
    )
