"""The reports on a run: ``report.html``, which loads nothing else, and ``reproduction.md``."""

import base64
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from opboost import __version__
from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import AGREES, Artefact, Finding, Note, Words
from opboost_lab.reproduce.task import Scope
from opboost_lab.reproduce.writing import markdown, shown

MOST_ROWS, MOST_COLUMNS = 14, 9
"""Larger tables are only in ``report.html``."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "numba", "pyarrow")
"""Libraries whose versions the report states."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An artefact and its finding, or why there is none."""

    artefact: Artefact
    finding: Finding | None
    problem: str = ""


def page(all_shown: Sequence[Shown], scope: Scope, seconds: float, out: Path) -> str:
    """Return the whole report, from ``report.html.jinja``."""
    found = [(s.artefact.slug, s.finding) for s in all_shown if s.finding is not None]
    return _rendered(
        "report.html.jinja",
        autoescape=True,
        title=title(scope),
        about=about(scope, seconds),
        all_shown=all_shown,
        short=[finding.short for _, finding in found if finding.short],
        failed=len(all_shown) - len(found),
        headlines=headlines(all_shown),
        pictures={slug: _picture(out / slug) for slug, finding in found if finding.panels},
    )


def digest(all_shown: Sequence[Shown], scope: Scope, seconds: float) -> str:
    """Return the report as a page of documentation, with the answer first."""
    found = {s.artefact.label: s.finding for s in all_shown}
    said = {label: f.said for label, f in found.items() if f and f.said}

    notes: dict[Note, list[str]] = {}
    for label, finding in found.items():
        for note in finding.notes if finding else ():
            notes.setdefault(note, []).append(f"`{label}`")

    def by_verdict(verdict: str) -> list[str]:
        cases = ((label, s) for label, s in said.items() if s.verdict == verdict)
        return [f"`{label}` ({s.held} of {s.cases})" for label, s in cases]

    return _rendered(
        "reproduction.md.jinja",
        all_shown=all_shown,
        about=about(scope, seconds),
        agrees=f"{AGREES:.0%}",
        short=[f.short for f in found.values() if f and f.short],
        said=said,
        by_verdict=by_verdict,
        notes=notes,
        headlines=headlines(all_shown),
        most_rows=MOST_ROWS,
        most_columns=MOST_COLUMNS,
    )


def _rendered(template: str, *, autoescape: bool = False, **values: object) -> str:
    loader = PackageLoader(__package__, "")
    made = Environment(loader=loader, autoescape=autoescape, undefined=StrictUndefined)
    made.filters |= {"shown": shown, "unbroken": _unbroken, "markdown": markdown}
    return made.get_template(template).render(**values)


def _unbroken(text: str) -> str:
    """Return a cell whose equations do not break over lines."""
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _picture(folder: Path) -> str:
    data = base64.b64encode((folder / "figure.svg").read_bytes()).decode()
    return f"data:image/svg+xml;base64,{data}"


def title(scope: Scope) -> str:
    """Return the report's title, which says if other data stand in for the paper's."""
    if scope.table is not None:
        return "the paper's methods on your table"
    return "the paper, reproduced" + (", on stand-in data" if scope.bundled else "")


def about(scope: Scope, seconds: float) -> str:
    """Return what was run, and on which machine."""
    how = "a quick look" if scope.quick else "the full settings"
    data = "; bundled data replace the paper's" if scope.bundled else ""
    return (
        f"OpBoost {__version__}: {how}, {len(scope.repeats())} seeds{data}. {machine()}; "
        f"{seconds:,.0f} s for what was not measured before."
    )


def headlines(all_shown: Sequence[Shown]) -> Grid:
    """Return the summary's table: the headlines with the paper's figure, ours and the ratio."""
    rows = tuple(
        (s.artefact.label, h.what, h.paper, h.ours, h.ratio, h.best, h.plain, h.on_grid)
        for s in all_shown
        if s.finding
        for h in s.finding.headlines
    )
    return Grid("", Words("report").header(), rows, wide=True)


def machine() -> str:
    """Return this machine's hardware, versions and load, but not its name."""
    parts = [_processor(), f"{os.cpu_count() or 1} cores{_memory()}"]
    parts.append(f"Python {platform.python_version()}")
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            parts.append(f"{name} {version(name)}")
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return f"{', '.join(parts)}; load averages {', '.join(f'{v:.1f}' for v in load)}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return f", {round(size / 2**30, 1):g} GiB"
    except (AttributeError, ValueError, OSError):
        return ""
