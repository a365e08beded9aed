"""``opboost bench``: speed, side by side with peers, as ratios."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout
from opboost.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from opboost_lab.bench.sampling import Result, Timing

Found = TypeVar("Found")
NAMES = ("sampling", "train", "federation", "load", "peers", "scale")


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}, all.")],
    peers: Annotated[bool, typer.Option(help="Install and time other libraries.")] = True,
    quick: Annotated[bool, typer.Option(help="Short columns and small grids only.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; the median counts.")] = 5,
    all_peers: Annotated[
        bool, typer.Option("--all-peers", help="Try peers that take long to install, too.")
    ] = False,
    limit: Annotated[
        float, typer.Option(min=1, help="Seconds that a peer may take to install, and to run.")
    ] = 600.0,
    page: Annotated[
        Path | None, typer.Option(help="peers: write the results page, in Markdown.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="peers: keep results in this file; measure what it lacks.")
    ] = None,
    rows: Annotated[
        list[int] | None, typer.Option(min=1000, help="scale: rows to measure; repeat it.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Time this library and its peers in one run; sampling on one core.

    \b
    Examples:
      opboost bench sampling --quick --no-peers
      opboost bench federation --repeats 3
      opboost bench peers --all-peers --limit 900 --results peers.json --page peers.md
      opboost bench all --format json
    """
    if name not in (*NAMES, "all"):
        raise ParameterError(f"No benchmark is called {name!r}. There are: {', '.join(NAMES)}.")
    if page is not None and (not peers or not page.parent.is_dir()):
        raise ParameterError(
            f"--page {page} needs the rows of all peers and a folder that exists. "
            "Leave out --no-peers, and make the folder first."
        )
    console = stderr()
    report: dict[str, object] = {}
    if name in ("sampling", "all"):
        report["sampling"] = _sampling(console, peers, quick, repeats, format)
    if name in ("train", "all"):
        report["train"] = _train(quick, repeats, format)
    if name in ("federation", "all"):
        report["federation"] = _federation(console, quick, repeats, format)
    if name in ("load", "all"):
        report["load"] = _load(console, quick, format)
    if name in ("peers", "all"):
        report["peers"] = _federated_peers(
            console, peers, quick, repeats, all_peers, limit, results, page, format
        )
    if name in ("scale", "all"):
        report["scale"] = _scale(console, rows or (), quick, min(repeats, 3), format)
    if format is Format.json:
        print_json({"machine": _machine(), **report})
    else:
        console.print(_machine())


def _sampling(
    console: Console, peers: bool, quick: bool, repeats: int, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.sampling import cases, run

    chosen = cases(grids=(10, 100), sizes=(10**5,)) if quick else cases()
    results = followed(run(chosen, repeats, peers), "sampling", len(chosen), console)
    if format is Format.text:
        for result in results:
            stdout().print(_table(result))
    return [asdict(r) for r in results]


def _train(quick: bool, repeats: int, format: Format) -> list[dict[str, object]]:
    from opboost_lab.bench.training import SIZES, run

    results = run(SIZES[:1] if quick else SIZES, repeats)
    for times in results if format is Format.text else ():
        rows = [
            {
                "": t.way,
                "seconds": t.seconds,
                "× plain xgboost": t.seconds / times[-1].seconds,
                "MB for fit": t.fit_mb,
                "MB in all": t.process_mb,
            }
            for t in times
        ]
        title = f"fit, {times[0].rows:,} rows × {times[0].columns} columns, 80 trees"
        says = "opboost: desensitising included; wall time, median"
        stdout().print(figure_table(title, rows, says))
    return [asdict(t) for times in results for t in times]


def _federation(
    console: Console, quick: bool, repeats: int, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.federation import SIZES, run

    found, rows = [], []
    for size in SIZES[:1] if quick else SIZES:
        with console.status("federation") if console.is_terminal else nullcontext():
            runs = [run(size) for _ in range(repeats if size.rows < 10**5 else 1)]
        found += [asdict(r) | {"more": r.more} for r in runs]
        middle = sorted(runs, key=lambda r: r.more)[len(runs) // 2]
        rows.append(
            {
                "rows × columns": f"{size.rows:,} × {size.own + size.theirs * size.parties}",
                "parties": size.parties,
                "seconds": middle.seconds,
                "plain": f"{middle.plain:.2f} ({middle.training:.2f})",
                "more": middle.more,
                "kB a party": max(middle.up.values()) / 1000,
                "AUC": middle.auc,
                "plain AUC": middle.plain_auc,
            }
        )
    if format is Format.text:
        says = (
            "seconds: from starting all processes to the model; plain: one program that reads the "
            "joined table and trains (its training alone); kB: counted on the socket, with TLS; "
            "median"
        )
        stdout().print(figure_table("A whole networked job, 80 trees of depth 3", rows, says))
    return found


def _load(console: Console, quick: bool, format: Format) -> dict[str, object]:
    from opboost_lab.bench.load import LIMIT_MB, LOAD, QUICK, run

    with console.status("load") if console.is_terminal else nullcontext():
        found = run(QUICK if quick else LOAD)
    load, times = found.load, found.parties.values()
    figures = {
        "seconds until the last column was there": found.sending,
        "seconds of the fastest party": min(times),
        "slowest over fastest": found.starved,
        "MB sent": found.bytes / 1e6,
        "million values a second": found.values_a_second / 1e6,
        "× a plain Flight call, without TLS, checks or disk": found.over_flight,
        f"MB of the gate, limit {LIMIT_MB} more than it starts with": found.gate_mb,
        "MB of the label party, training included": found.label_mb,
        "seconds to desensitise, all parties, two at a time": found.preparing,
    }
    if format is Format.text:
        title = f"{load.parties} parties send {load.rows:,} rows × {load.columns} columns at once"
        rows = [{"": words, "figure": value} for words, value in figures.items()]
        stdout().print(figure_table(title, rows))
    more = ("sending", "starved", "over_flight")
    return asdict(found) | {name: getattr(found, name) for name in more}


def _scale(
    console: Console, rows: Sequence[int], quick: bool, repeats: int, format: Format
) -> dict[str, object]:
    """Measure the points, and fit how they grow."""
    from opboost_lab.bench.scaling import ROWS, growth, points, run

    chosen = points(rows or (ROWS[:2] if quick else ROWS))
    found = followed(run(chosen, repeats), "scale", len(chosen), console)
    exponents = {
        "seconds in all": growth(found),
        "seconds of the feature parties": growth(found, lambda m: m.feature_seconds),
        "seconds of the label party": growth(found, lambda m: m.label_seconds),
        "bytes": growth(found, lambda m: m.bytes),
    }
    if format is Format.text:
        varied = ("rows", "columns", "trees", "parties", "cells")
        lines = [
            {
                "changed": m.axis,
                **{name: int(getattr(m.point, name)) for name in varied},
                **m.released,
                **m.trained,
                "bits a value": 8 * m.bytes / m.point.values,
                "MB feature": m.feature_mb,
                "MB label": m.label_mb,
            }
            for m in found
        ]
        says = (
            "seconds of one processor by stage, the fastest try; MB: peak of the process, of which "
            f"{found[0].start_mb:.0f} before it sees a row"
        )
        stdout().print(figure_table("Time and memory", lines, says))
        growths = [{"": name, "exponent": e} for name, e in exponents.items()]
        title = "Growth in rows × columns: exponent, target at most 1.05"
        stdout().print(figure_table(title, growths))
    return {"points": [asdict(m) for m in found], "growth": exponents}


def _federated_peers(
    console: Console,
    peers: bool,
    quick: bool,
    repeats: int,
    heavy: bool,
    limit: float,
    kept: Path | None,
    page: Path | None,
    format: Format,
) -> list[dict[str, object]]:
    from opboost_lab.bench import federated_peers as bench
    from opboost_lab.bench.peer_results import Results, load_or_begin
    from opboost_lab.bench.peer_table import page as rendered
    from opboost_lab.bench.peer_table import table
    from opboost_lab.data.datasets import has

    size = bench.QUICK if quick else bench.SIZE
    tables = {"synthetic": bench.synthetic(size)}
    if not quick and has("adult_train"):
        tables["Adult"] = bench.adult()
    chosen = tuple(p for p in bench.PEERS if peers or not p.requirements)
    limits = {"install_limit": limit, "run_limit": limit}
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    title = f"{size.rows:,} rows × {size.own} + {size.theirs} columns"
    results = load_or_begin(kept, Results(title, repeats, machine), bench.PEERS)
    found = {ran.peer.name: ran for ran in results.ran}
    measured = {name: ran for name, ran in found.items() if not ran.problem}
    for ran in bench.run(chosen, tables, repeats=repeats, heavy=heavy, measured=measured, **limits):
        console.print(f"{ran.peer.name}: {ran.problem or f'{ran.seconds:.2f} s'}")
        found[ran.peer.name] = ran
        known = tuple(found[peer.name] for peer in bench.PEERS if peer.name in found)
        results = replace(results, ran=known)
        if kept is not None:
            results.save(kept)
    if format is Format.text:
        stdout().print(table(results.ran), soft_wrap=True, markup=False, highlight=False)
    if page is not None:
        page.write_text(rendered(results), encoding="utf-8")
    return [asdict(ran) for ran in results.ran]


def _machine() -> str:
    load = ", ".join(f"{v:.2f}" for v in os.getloadavg()) if hasattr(os, "getloadavg") else "?"
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"load averages at the end {load}"
    )


def _table(result: Result) -> Table:
    case = result.case
    cells = f"{case.cells:,}" if case.cells < 10**6 else f"2^{case.cells.bit_length() - 1}"
    failed = [f"{p.name} FAILED: {p.problem}" for p in result.peers if p.problem]
    says = "M/s: million values a second; AES ×: time over that of 8 keystream bytes"

    def over(timing: Timing, other: Timing) -> str | float:
        return "FAILED" if timing.problem or other.problem else other.median / timing.median

    rows: list[dict[str, str | float]] = [
        {
            "": timing.name,
            "M/s": timing.per_second / 1e6,
            "× numpy": over(timing, result.numpy),
            **{f"× {p.name}": over(timing, p) for p in result.peers},
            "AES ×": over(result.aes, timing),
        }
        for timing in (*result.ours, *result.others, result.numpy, *result.peers, result.aes)
    ]
    title = f"ε = {case.epsilon:g}, {cells} cells, {case.values:,} values"
    return figure_table(title, rows, "\n".join([says, *failed]))


def followed(found: Iterable[Found], what: str, total: int, console: Console) -> list[Found]:
    """Everything that is found, with a bar that grows meanwhile."""
    hidden = not console.is_terminal
    return list(track(found, what, total, console=console, transient=True, disable=hidden))


def figure_table(title: str, rows: Sequence[Mapping[str, Any]], caption: str = "") -> Table:
    """A table of rows by column; its first column holds words, and the others hold figures."""
    table = Table(title=title, caption=caption or None)
    for place, head in enumerate(rows[0]):
        table.add_column(head, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*(v if isinstance(v, str) else shown(v) for v in row.values()))
    return table


def shown(value: float) -> str:
    """Three digits of a figure, and all those before the point.

    >>> shown(0.12345), shown(12.345), shown(1234.5), shown(300_000)
    ('0.123', '12.3', '1,234', '300,000')
    """
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.3g}"
