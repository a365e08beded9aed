"""``opboost bench``: speed, side by side with peers, as ratios."""

from __future__ import annotations

import os
import platform
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout
from opboost.errors import ParameterError
from opboost_lab.cli.figure_table import figure_table

if TYPE_CHECKING:
    from rich.console import Console

    from opboost_lab.bench.sampling import Result, Timing

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
        from opboost_lab.cli.bench_scaling import scale

        report["scale"] = scale(console, rows or (), quick, min(repeats, 3), format)
    if format is Format.json:
        print_json({"machine": _machine(), **report})
    else:
        console.print(_machine())


def _sampling(
    console: Console, peers: bool, quick: bool, repeats: int, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.sampling import cases, run

    chosen = cases(grids=(10, 100), sizes=(10**5,)) if quick else cases()
    results = list(
        track(
            run(chosen, repeats, peers),
            "sampling",
            total=len(chosen),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    if format is Format.text:
        for result in results:
            stdout().print(_table(result))
    return [asdict(r) for r in results]


def _train(quick: bool, repeats: int, format: Format) -> list[dict[str, object]]:
    from opboost_lab.bench.training import SIZES, run

    results = run(SIZES[:1] if quick else SIZES, repeats)
    if format is Format.text:
        for times in results:
            table = figure_table(
                f"fit, {times[0].rows:,} rows × {times[0].columns} columns, 80 trees",
                ("", "seconds", "× plain xgboost", "MB for fit", "MB in all"),
                [
                    (
                        *(t.way, f"{t.seconds:.2f}", _ratio(t.seconds / times[-1].seconds)),
                        *(f"{t.fit_mb:.0f}", f"{t.process_mb:.0f}"),
                    )
                    for t in times
                ],
                "opboost: desensitising included; wall time, median",
            )
            stdout().print(table)
    return [asdict(t) for times in results for t in times]


def _federation(
    console: Console, quick: bool, repeats: int, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.federation import SIZES, repeated

    found, rows = [], []
    for size in SIZES[:1] if quick else SIZES:
        with console.status("federation") if console.is_terminal else nullcontext():
            runs = repeated(size, repeats if size.rows < 10**5 else 1)
        found += [asdict(r) | {"more": r.more} for r in runs]
        middle = sorted(runs, key=lambda r: r.more)[len(runs) // 2]
        rows.append(
            (
                f"{size.rows:,} × {size.own + size.theirs * size.parties}",
                *(f"{size.parties}", f"{middle.seconds:.2f}"),
                *(f"{middle.plain:.2f} ({middle.training:.2f})", f"{middle.more:.2f}"),
                f"{max(middle.up.values()) / 1000:.1f}",
                *(f"{middle.auc:.3f}", f"{middle.plain_auc:.3f}"),
            )
        )
    if format is Format.text:
        table = figure_table(
            "A whole networked job, 80 trees of depth 3",
            (
                *("rows × columns", "parties", "seconds", "plain", "more", "kB a party", "AUC"),
                "plain AUC",
            ),
            rows,
            "seconds: from starting all processes to the model; plain: one program that reads the "
            "joined table and trains (its training alone); kB: counted on the socket, with TLS; "
            "median",
        )
        stdout().print(table)
    return found


def _load(console: Console, quick: bool, format: Format) -> dict[str, object]:
    from opboost_lab.bench.load import LIMIT_MB, LOAD, QUICK, run

    with console.status("load") if console.is_terminal else nullcontext():
        found = run(QUICK if quick else LOAD)
    load, times = found.load, found.parties.values()
    rows = (
        ("seconds until the last column was there", f"{found.sending:.2f}"),
        ("seconds of a party, fastest and slowest", f"{min(times):.2f} to {max(times):.2f}"),
        ("slowest over fastest", f"{found.starved:.2f}"),
        ("MB sent", f"{found.bytes / 1e6:.1f}"),
        ("million values a second", f"{found.values_a_second / 1e6:.1f}"),
        ("× a plain Flight call, without TLS, checks or disk", f"{found.over_flight:.1f}"),
        (f"MB of the gate, limit {LIMIT_MB} more than it starts with", f"{found.gate_mb:.0f}"),
        ("MB of the label party, training included", f"{found.label_mb:.0f}"),
        ("seconds to desensitise, all parties, two at a time", f"{found.preparing:.1f}"),
    )
    if format is Format.text:
        title = f"{load.parties} parties send {load.rows:,} rows × {load.columns} columns at once"
        stdout().print(figure_table(title, ("", "figure"), rows))
    more = ("sending", "starved", "over_flight")
    return asdict(found) | {name: getattr(found, name) for name in more}


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
    timings = (*result.ours, *result.others, result.numpy, *result.peers, result.aes)
    failed = [f"{p.name} FAILED: {p.problem}" for p in result.peers if p.problem]
    says = "M/s: million values a second; AES ×: time over that of 8 keystream bytes"
    return figure_table(
        f"ε = {case.epsilon:g}, {cells} cells, {case.values:,} values",
        ("", "M/s", "× numpy", *(f"× {p.name}" for p in result.peers), "AES ×"),
        [_row(timing, result) for timing in timings],
        "\n".join([says, *failed]),
    )


def _row(timing: Timing, result: Result) -> list[str]:
    if timing.problem:
        return [timing.name, "FAILED"]
    peers = ["FAILED" if p.problem else _ratio(p.median / timing.median) for p in result.peers]
    return [
        timing.name,
        _ratio(timing.per_second / 1e6),
        _ratio(result.numpy.median / timing.median),
        *peers,
        _ratio(timing.median / result.aes.median),
    ]


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
