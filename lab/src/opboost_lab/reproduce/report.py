"""``report.html``: one file, nothing fetched from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from opboost_lab.reproduce.finding import Artefact, Finding, Grid, Note
from opboost_lab.reproduce.machine import Machine
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.writing import shown

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #d5dae0;
  --paper: #fff; --band: #f5f7f9; --mark: #0072b2; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #a3adb8;
  --line: #39424c; --paper: #14181d; --band: #1d232a; --mark: #56b4e9; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .3rem; border-top: 1px solid var(--line);
  padding-top: 1.2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.label { font: .85rem ui-monospace, monospace; color: var(--soft); }
.soft { color: var(--soft); }
.bad { color: var(--bad); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; margin: .4rem 0; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
@media (min-width: 60rem) { td:first-child { white-space: nowrap; } }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--band); }
td { font-variant-numeric: tabular-nums; }
.words :is(th, td):nth-child(2) { text-align: left; }
figure { margin: .8rem 0; }
figure img { width: 100%; background: #fff; border-radius: 4px; }
a { color: var(--mark); }
nav { columns: 3 14rem; font-size: .9rem; }
ul { padding-left: 1.2rem; }
@media print { body { max-width: none; } nav { display: none; } .wide { overflow: visible; }
  table { font-size: .62rem; } th, td { padding: .12rem .3rem; }
  td:first-child { white-space: normal; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """An artefact and what was found, or why nothing was."""

    artefact: Artefact
    finding: Finding | None
    problem: str = ""


def page(shown_: Sequence[Shown], scope: Scope, machine: Machine, seconds: float, out: Path) -> str:
    """The whole report."""
    body = "\n".join(_section(s, out) for s in shown_)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>OpBoost: {title(scope)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><header><h1>{title(scope).capitalize()}</h1>
<p class="soft">{escape(about(scope, machine, seconds))}</p></header>
<main>{_summary(shown_)}
<nav aria-label="Contents">{"".join(_link(s) for s in shown_)}</nav>
{body}</main></body></html>
"""


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


def _summary(all_shown: Sequence[Shown]) -> str:
    lines = []
    for s in all_shown:
        if s.finding is None:
            lines.append(
                f'<li>{_name(s)}: <span class="bad">FAILED</span> {escape(s.problem)}</li>'
            )
        else:
            lines.append(f"<li>{_name(s)}: {escape(s.finding.summary)}</li>")
    grid = headlines(all_shown)
    table = _table(grid, "words") if grid.rows else ""
    return (
        f"{_minute(all_shown)}<h3>One by one</h3><ul>{''.join(lines)}</ul>"
        f"<h3>In figures</h3>{table}"
    )


def _minute(all_shown: Sequence[Shown]) -> str:
    """What a busy person reads: few artefacts, a sentence each, and how many failed."""
    short = [
        f"<li>{escape(s.finding.short)}</li>" for s in all_shown if s.finding and s.finding.short
    ]
    failed = sum(s.finding is None for s in all_shown)
    if failed:
        short.append(f'<li><span class="bad">{failed} of {len(all_shown)} FAILED.</span></li>')
    return f"<h3>In a minute</h3><ul>{''.join(short)}</ul>" if short else ""


def _name(s: Shown) -> str:
    return f'<a href="#{s.artefact.slug}">{escape(s.artefact.title)}</a>'


def _link(s: Shown) -> str:
    label = escape(s.artefact.label)
    return f'<div><a href="#{s.artefact.slug}">{label}</a></div>'


def _section(s: Shown, out: Path) -> str:
    head = (
        f'<section id="{s.artefact.slug}"><h2>{escape(s.artefact.title)} '
        f'<span class="label">{escape(s.artefact.label)}</span></h2>'
    )
    if s.finding is None:
        return f'{head}<p class="bad">FAILED: {escape(s.problem)}</p></section>'
    picture = _picture(s, out) if s.finding.panels else ""
    grids = "".join(_table(g) for g in s.finding.grids)
    notes = "".join(f"<li>{_note(n)}</li>" for n in s.finding.notes)
    return f"{head}<p>{escape(s.finding.summary)}</p>{picture}{grids}<ul>{notes}</ul></section>"


def _note(note: Note) -> str:
    return escape(note.text) + (f" (Erratum {note.erratum}.)" if note.erratum else "")


def _picture(s: Shown, out: Path) -> str:
    assert s.finding is not None
    data = base64.b64encode((out / s.artefact.slug / "figure.svg").read_bytes()).decode()
    panels = "; ".join(p.title for p in s.finding.panels)
    alt = escape(f"{s.artefact.title}. {panels}. The points are in data.csv.", quote=True)
    return f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}"></figure>'


def _unbroken(text: str) -> str:
    """Escaped, with no line broken inside an equation."""
    return escape(text).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _table(grid: Grid, look: str = "") -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in grid.header)
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{_unbroken(shown(c, grid.digits, grid.wide))}</td>" for c in row)
        + "</tr>"
        for row in grid.rows
    )
    title = f"<h3>{escape(grid.title)}</h3>" if grid.title else ""
    note = f'<p class="soft">{escape(grid.note)}</p>' if grid.note else ""
    return (
        f'{title}<div class="wide"><table class="{look}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )
