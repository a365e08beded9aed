"""``opboost bench``: benchmarks, most of them against peers in the same run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

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
    chosen = NAMES if name == "all" else (name,)
    asked = Asked(
        stderr(), peers, quick, repeats, all_peers, limit, page, results, rows or (), format
    )
    report = {each: MEASURED[each](asked) for each in chosen}
    if format is Format.json:
        print_json({"machine": _machine(), **report})
    else:
        asked.console.print(_machine())


class Asked(NamedTuple):
    """What a user asked for, and where progress is shown."""

    console: Console
    peers: bool
    quick: bool
    repeats: int
    all_peers: bool
    limit: float
    page: Path | None
    results: Path | None
    rows: Sequence[int]
    format: Format

    def busy(self, what: str) -> AbstractContextManager[object]:
        """Show on a terminal what is being measured."""
        return self.console.status(what) if self.console.is_terminal else nullcontext()

    def followed(self, found: Iterable[Found], what: str, total: int) -> list[Found]:
        """Return all results, and show a progress bar while they are being measured."""
        hidden = not self.console.is_terminal
        return list(track(found, what, total, console=self.console, transient=True, disable=hidden))

    def show(self, title: str, rows: Sequence[Mapping[str, Any]], caption: str = "") -> None:
        """Print rows as a table of words and then figures, if the format is text."""
        if self.format is not Format.text:
            return
        table = Table(title=title, caption=caption or None)
        for place, head in enumerate(rows[0]):
            table.add_column(head, justify="right" if place else "left", no_wrap=not place)
        for row in rows:
            table.add_row(*(v if isinstance(v, str) else shown(v) for v in row.values()))
        stdout().print(table)


def _sampling(asked: Asked) -> object:
    from opboost_lab.bench.sampling import cases, run

    chosen = cases(grids=(10, 100), sizes=(10**5,)) if asked.quick else cases()
    found = run(chosen, asked.repeats, asked.peers)
    results = asked.followed(found, "sampling", len(chosen))
    for result in results:
        case = result.case
        cells = f"{case.cells:,}" if case.cells < 10**6 else f"2^{case.cells.bit_length() - 1}"
        title = f"ε = {case.epsilon:g}, {cells} cells, {case.values:,} values"
        failed = [f"{p.name} FAILED: {p.problem}" for p in result.peers if p.problem]
        says = "M/s: million values a second; AES ×: time over that of 8 keystream bytes"
        asked.show(title, _speeds(result), "\n".join([says, *failed]))
    return [asdict(r) for r in results]


def _speeds(result: Result) -> list[dict[str, str | float]]:
    """Return the rate of every mechanism and peer, and its ratio to numpy, peers and AES."""

    def over(timing: Timing, other: Timing) -> str | float:
        return "FAILED" if timing.problem or other.problem else other.median / timing.median

    return [
        {
            "": timing.name,
            "M/s": timing.per_second / 1e6,
            "× numpy": over(timing, result.numpy),
            **{f"× {p.name}": over(timing, p) for p in result.peers},
            "AES ×": over(result.aes, timing),
        }
        for timing in (*result.ours, *result.others, result.numpy, *result.peers, result.aes)
    ]


def _train(asked: Asked) -> object:
    from opboost_lab.bench.training import SIZES, run

    results = run(SIZES[:1] if asked.quick else SIZES, asked.repeats)
    for times in results:
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
        asked.show(title, rows, "opboost: desensitising included; wall time, median")
    return [asdict(t) for times in results for t in times]


def _federation(asked: Asked) -> object:
    from opboost_lab.bench.federation import SIZES, run

    found, rows = [], []
    for size in SIZES[:1] if asked.quick else SIZES:
        with asked.busy("federation"):
            runs = [run(size) for _ in range(asked.repeats if size.rows < 10**5 else 1)]
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
    says = (
        "seconds: from starting all processes to the model; plain: one program that reads the "
        "joined table and trains (its training alone); kB: counted on the socket, with TLS; median"
    )
    asked.show("A whole networked job, 80 trees of depth 3", rows, says)
    return found


def _load(asked: Asked) -> object:
    from opboost_lab.bench.load import LIMIT_MB, LOAD, QUICK, run

    with asked.busy("load"):
        found = run(QUICK if asked.quick else LOAD)
    load, times = found.load, found.parties.values()
    figures = {
        "seconds until the last column was there": found.sending,
        "seconds of the fastest party": min(times),
        "slowest over fastest": found.starved,
        "MB sent": found.bytes / 1e6,
        "million values a second": found.values_a_second / 1e6,
        "× a plain Flight call, without TLS, checks or disk": found.over_flight,
        f"MB of the label server, limit {LIMIT_MB} more than it starts with": found.gate_mb,
        "MB of the label party, training included": found.label_mb,
        "seconds to desensitise, all parties, two at a time": found.preparing,
    }
    title = f"{load.parties} parties send {load.rows:,} rows × {load.columns} columns at once"
    asked.show(title, [{"": words, "figure": value} for words, value in figures.items()])
    more = ("sending", "starved", "over_flight")
    return asdict(found) | {name: getattr(found, name) for name in more}


def _scale(asked: Asked) -> object:
    from opboost_lab.bench.scaling import ROWS, growth, points, run

    chosen = points(asked.rows or (ROWS[:2] if asked.quick else ROWS))
    found = asked.followed(run(chosen, min(asked.repeats, 3)), "scale", len(chosen))
    exponents = {
        "seconds in all": growth(found),
        "seconds of the feature parties": growth(found, lambda m: m.feature_seconds),
        "seconds of the label party": growth(found, lambda m: m.label_seconds),
        "bytes": growth(found, lambda m: m.bytes),
    }
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
    asked.show("Time and memory", lines, says)
    growths = [{"": name, "exponent": e} for name, e in exponents.items()]
    asked.show("Growth in rows × columns: exponent, target at most 1.05", growths)
    return {"points": [asdict(m) for m in found], "growth": exponents}


def _federated_peers(asked: Asked) -> object:
    from opboost_lab.bench import federated_peers as bench
    from opboost_lab.bench.peer_results import Results, load_or_begin
    from opboost_lab.bench.peer_table import page as rendered
    from opboost_lab.bench.peer_table import table
    from opboost_lab.data.datasets import has

    size = bench.QUICK if asked.quick else bench.SIZE
    tables = {"synthetic": bench.synthetic(size)}
    if not asked.quick and has("adult_train"):
        tables["Adult"] = bench.adult()
    chosen = tuple(p for p in bench.PEERS if asked.peers or not p.requirements)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    title = f"{size.rows:,} rows × {size.own} + {size.theirs} columns"
    results = load_or_begin(asked.results, Results(title, asked.repeats, machine), bench.PEERS)
    found = {ran.peer.name: ran for ran in results.ran}
    settings: dict[str, Any] = {"repeats": asked.repeats, "heavy": asked.all_peers}
    settings |= {"install_limit": asked.limit, "run_limit": asked.limit}
    settings |= {"plain_runs": 1} if asked.quick else {}
    settings["measured"] = {name: ran for name, ran in found.items() if not ran.problem}
    for ran in bench.run(chosen, tables, **settings):
        asked.console.print(f"{ran.peer.name}: {ran.problem or f'{ran.seconds:.2f} s'}")
        found[ran.peer.name] = ran
        known = tuple(found[peer.name] for peer in bench.PEERS if peer.name in found)
        results = replace(results, ran=known)
        if asked.results is not None:
            results.save(asked.results)
    if asked.format is Format.text:
        stdout().print(table(results.ran), soft_wrap=True, markup=False, highlight=False)
    if asked.page is not None:
        asked.page.write_text(rendered(results), encoding="utf-8")
    return [asdict(ran) for ran in results.ran]


MEASURED: dict[str, Callable[[Asked], object]] = {
    "sampling": _sampling,
    "train": _train,
    "federation": _federation,
    "load": _load,
    "peers": _federated_peers,
    "scale": _scale,
}


def _machine() -> str:
    load = ", ".join(f"{v:.2f}" for v in os.getloadavg()) if hasattr(os, "getloadavg") else "?"
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"load averages at the end {load}"
    )


def shown(value: float) -> str:
    """Return a figure with three digits, or with all digits before the point.

    >>> shown(0.12345), shown(12.345), shown(1234.5), shown(300_000)
    ('0.123', '12.3', '1,234', '300,000')
    """
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.3g}"
