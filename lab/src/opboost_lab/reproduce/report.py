"""``report.html``: one file, nothing fetched from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import Artefact, Finding
from opboost_lab.reproduce.machine import Machine
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.writing import shown


@dataclass(frozen=True, slots=True)
class Shown:
    """An artefact and what was found, or why nothing was."""

    artefact: Artefact
    finding: Finding | None
    problem: str = ""


def page(
    all_shown: Sequence[Shown], scope: Scope, machine: Machine, seconds: float, out: Path
) -> str:
    """The whole report, from ``report.html.jinja``."""
    made = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined
    )
    made.filters |= {"shown": shown, "unbroken": _unbroken}
    found = [(s.artefact.slug, s.finding) for s in all_shown if s.finding is not None]
    return made.get_template("report.html.jinja").render(
        title=title(scope),
        about=about(scope, machine, seconds),
        all_shown=all_shown,
        short=[finding.short for _, finding in found if finding.short],
        failed=len(all_shown) - len(found),
        headlines=headlines(all_shown),
        pictures={slug: _picture(out / slug) for slug, finding in found if finding.panels},
    )


def _unbroken(text: str) -> str:
    """A cell with no line broken inside an equation."""
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _picture(folder: Path) -> str:
    data = base64.b64encode((folder / "figure.svg").read_bytes()).decode()
    return f"data:image/svg+xml;base64,{data}"


def title(scope: Scope) -> str:
    """Return the report's title; it says where other data stand in for the paper's."""
    if scope.table is not None:
        return "the paper's methods on your table"
    return "the paper, reproduced" + (", on stand-in data" if scope.bundled else "")


def about(scope: Scope, machine: Machine, seconds: float) -> str:
    """What was run, and on what."""
    how = "a quick look" if scope.quick else "the full settings"
    seeds = f"{len(scope.repeats())} seeds"
    data = "; bundled data stand in for the paper's" if scope.bundled else ""
    memory = f", {machine.memory_gb:g} GiB" if machine.memory_gb else ""
    versions = ", ".join(f"{k} {v}" for k, v in machine.versions.items())
    load = ", ".join(f"{v:.1f}" for v in machine.load)
    return (
        f"OpBoost {machine.opboost}: {how}, {seeds}{data}. {machine.processor}, {machine.cores} "
        f"cores{memory}, Python {machine.python}, {versions}; load averages {load}; "
        f"{seconds:,.0f} s for what was not known yet."
    )


def headlines(all_shown: Sequence[Shown]) -> Grid:
    """The summary's table: paper, ours and ratio of what the artefacts put first."""
    header = (
        "where", "what", "paper", "ours, its method", "ours / paper", "ours, best", "plain, raw",
        "plain, grid",
    )  # fmt: skip
    rows = tuple(
        (s.artefact.label, h.what, h.paper, h.ours, h.ratio, h.best, h.plain, h.on_grid)
        for s in all_shown
        if s.finding
        for h in s.finding.headlines
    )
    return Grid("", header, rows, wide=True)
