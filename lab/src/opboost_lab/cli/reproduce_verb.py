"""``opboost reproduce``: the paper's tables and figures next to ours."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout, steps_progress
from opboost.errors import ParameterError

if TYPE_CHECKING:
    from opboost_lab.reproduce.finding import Artefact
    from opboost_lab.reproduce.report import Shown
    from opboost_lab.reproduce.reproduction import Reproduction


def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Labels of the paper, e.g. fig:adult_class; all; list.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Few seeds and levels: minutes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repeats of each measurement.")] = None,
    out: Annotated[Path, typer.Option(help="Where report, figures and results go.")] = Path(
        "reproduction"
    ),
    kept: Annotated[
        bool, typer.Option("--kept", help="Measure nothing; report on what was measured before.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="A file of results: they count as measured, and new ones are added."),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Your own CSV or Parquet, in learning experiments.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Its label column.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Its declared bounds (TOML).")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Reproduce tables and figures of the paper; what was measured before is not run again.

    \b
    Examples:
      opboost reproduce list
      opboost reproduce all --quick
      opboost reproduce tab:op-prob-t
      opboost reproduce fig:adult_class --table loans.csv --label default -c loans.toml
    """
    from opboost_lab.data import datasets
    from opboost_lab.reproduce import MODULES, STATEMENTS, artefact
    from opboost_lab.reproduce.reproduction import reproduce as run
    from opboost_lab.reproduce.source import checked
    from opboost_lab.reproduce.task import OwnTable, Scope

    if names == ["list"]:
        _list([artefact(known) for known in MODULES | STATEMENTS], format)
        return
    if (table is None) != (label is None):
        raise ParameterError("--table and --label belong together; give both.")
    if config is not None and table is None:
        raise ParameterError("-c declares the bounds of a table; give --table and --label too.")
    chosen = [artefact(n) for n in (MODULES | STATEMENTS if "all" in names else names)]
    own = OwnTable(table, label, config) if table and label else None
    scope = Scope(quick, seeds, own, bundled=quick and own is None and not datasets.available())
    if own is not None:
        chosen = [a for a in chosen if a.learning]
        if not chosen:
            raise ParameterError("None of these trains a model; --table is for those that do.")
        for said in checked(own):
            stderr().print(f"WARNING: {said}")
        chosen = list({tuple(a.tasks(scope)): a for a in reversed(chosen)}.values())[::-1]
    with steps_progress() as told:

        def progress(done: float, total: float, what: str) -> None:
            told("measuring", round(done), round(total))

        found = run(chosen, scope, out, progress, kept=kept, results=results)
    if format is Format.json:
        print_json([_line(s) for s in found.shown])
    else:
        _print(found)
    stderr().print(f"Report: {found.report}")
    if found.failed:
        sys.exit(1)


def _list(known: list[Artefact], format: Format) -> None:
    """Print what can be reproduced: label, title, rough time, and the data it needs."""
    from opboost_lab.reproduce.task import Scope

    lines: list[dict[str, Any]] = [
        {
            "label": a.label,
            "title": a.title,
            "data": list(a.needs),
            "quick_seconds": round(sum(t.cost for t in a.tasks(Scope(quick=True, bundled=True)))),
            "own_table": a.learning,
        }
        for a in known
    ]
    if format is Format.json:
        print_json(lines)
        return
    shown = Table()
    for title in ("label", "title", "quick, about", "data of the paper"):
        justify: Literal["left", "right"] = "right" if title == "quick, about" else "left"
        shown.add_column(title, justify=justify, no_wrap=title == "label", overflow="fold")
    for line in lines:
        seconds = line["quick_seconds"]
        about = f"{max(seconds, 1)} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        shown.add_row(line["label"], line["title"], about, ", ".join(line["data"]) or "none")
    stdout().print(shown)


def _line(shown: Shown) -> dict[str, object]:
    known = {"label": shown.artefact.label, "title": shown.artefact.title}
    if shown.finding is None:
        return {**known, "failed": shown.problem}
    headlines = [asdict(h) | {"ratio": h.ratio} for h in shown.finding.headlines]
    notes = [asdict(n) for n in shown.finding.notes]
    return {**known, "summary": shown.finding.summary, "headlines": headlines, "notes": notes}


FIGURES = ("paper", "ours", "ratio", "best", "plain", "on the grid")


def _print(found: Reproduction) -> None:
    from opboost_lab.reproduce.writing import shown as cell

    out = stdout()
    for s in found.shown:
        said = f"FAILED: {s.problem}" if s.finding is None else s.finding.summary
        out.print(f"{s.artefact.label}: {said}", soft_wrap=True)
        for h in s.finding.headlines if s.finding else ():
            given = (h.paper, h.ours, h.ratio, h.best, h.plain, h.on_grid)
            named = dict(zip(FIGURES, given, strict=True))
            values = ", ".join(f"{k} {cell(v)}" for k, v in named.items() if v is not None)
            out.print(f"  {h.what}: {values}", soft_wrap=True)
