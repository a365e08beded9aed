"""``opboost bench``: speed, side by side with peers, as ratios."""

from __future__ import annotations

import os
import platform
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout
from opboost.errors import ParameterError

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
    rows: Annotated[
        list[int] | None, typer.Option(min=1000, help="scale: rows to measure; repeat it.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--end-to-end", help="scale: a whole job beside its parts' limits.")
    ] = False,
    format: FormatOption = Format.text,
) -> None:
    """Time this library and its peers in one run; sampling on one core.

    \b
    Examples:
      opboost bench sampling --quick --no-peers
      opboost bench federation --repeats 3
      opboost bench all --format json
    """
    if name not in (*NAMES, "all"):
        raise ParameterError(f"No benchmark is called {name!r}. There are: {', '.join(NAMES)}.")
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
        report["peers"] = _federated_peers(console, peers, quick, all_peers, limit, format)
    if name in ("scale", "all"):
        from opboost_lab.cli.bench_scaling import end_to_end, scale

        if whole:
            report["end to end"] = end_to_end(console, rows or (), quick, format)
        else:
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
        stdout().print(_theory(results))
    return [asdict(r) for r in results]


def _train(quick: bool, repeats: int, format: Format) -> list[dict[str, object]]:
    from opboost_lab.bench.training import SIZES, run

    results = run(SIZES[:1] if quick else SIZES, repeats)
    if format is Format.text:
        for times in results:
            plain = next(t for t in times if t.way == "plain xgboost")
            table = Table(
                title=f"fit, {times[0].rows:,} rows × {times[0].columns} columns, 80 trees"
            )
            table.add_column("", no_wrap=True)
            for title in ("seconds", "× plain xgboost", "MB for fit", "MB in all"):
                table.add_column(title, justify="right")
            for t in times:
                if t.problem:
                    table.add_row(t.way, "FAILED", t.problem[:40])
                else:
                    ratio = _ratio(t.seconds / plain.seconds) if plain.seconds else "-"
                    row = (f"{t.seconds:.2f}", ratio, f"{t.fit_mb:.0f}", f"{t.process_mb:.0f}")
                    table.add_row(t.way, *row)
            table.caption = "opboost: desensitising included; wall time, median"
            stdout().print(table)
    return [asdict(t) for times in results for t in times]


def _federation(
    console: Console, quick: bool, repeats: int, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.federation import SIZES, repeated

    table = Table(title="A whole networked job, 80 trees of depth 3")
    table.add_column("rows × columns", no_wrap=True)
    for title in ("parties", "seconds", "plain", "more", "kB a party", "AUC", "plain AUC"):
        table.add_column(title, justify="right")
    found = []
    for size in SIZES[:1] if quick else SIZES:
        with console.status("federation") if console.is_terminal else nullcontext():
            runs = repeated(size, repeats if size.rows < 10**5 else 1)
        found += [asdict(r) | {"more": r.more} for r in runs]
        middle = sorted(runs, key=lambda r: r.more)[len(runs) // 2]
        columns = size.own + size.theirs * size.parties
        table.add_row(
            f"{size.rows:,} × {columns}",
            str(size.parties),
            f"{middle.seconds:.2f}",
            f"{middle.plain:.2f} ({middle.training:.2f})",
            f"{middle.more:.2f}",
            f"{max(middle.up.values()) / 1000:.1f}",
            f"{middle.auc:.3f}",
            f"{middle.plain_auc:.3f}",
        )
    table.caption = (
        "seconds: from starting all processes to the model; plain: one program that reads the "
        "joined table and trains (its training alone); kB: counted on the socket, with TLS; median"
    )
    if format is Format.text:
        stdout().print(table)
    return found


def _load(console: Console, quick: bool, format: Format) -> dict[str, object]:
    from opboost_lab.bench.load import LIMIT_MB, LOAD, QUICK, run

    with console.status("load") if console.is_terminal else nullcontext():
        found = run(QUICK if quick else LOAD)
    load = found.load
    times = found.parties.values()
    table = Table(
        title=f"{load.parties} parties send {load.rows:,} rows × {load.columns} columns at once"
    )
    for title in ("", "figure"):
        table.add_column(title, justify="right" if title else "left")
    for what, figure in (
        ("seconds until the last column was there", f"{found.sending:.2f}"),
        ("seconds of a party, fastest and slowest", f"{min(times):.2f} to {max(times):.2f}"),
        ("slowest over fastest", f"{found.starved:.2f}"),
        ("MB sent", f"{found.bytes / 1e6:.1f}"),
        ("million values a second", f"{found.values_a_second / 1e6:.1f}"),
        ("× a plain Flight call, without TLS, checks or disk", f"{found.over_flight:.1f}"),
        ("× a bare socket", f"{found.over_socket:.1f}"),
        (f"MB of the gate, whose limit is {LIMIT_MB} more than it starts with",
         f"{found.gate_mb:.0f}"),
        ("MB of the label party, training included", f"{found.label_mb:.0f}"),
        ("seconds to desensitise, all parties, two at a time", f"{found.preparing:.1f}"),
    ):  # fmt: skip
        table.add_row(what, figure)
    if format is Format.text:
        stdout().print(table)
    more = ("sending", "starved", "over_flight", "over_socket")
    return asdict(found) | {name: getattr(found, name) for name in more}


def _federated_peers(
    console: Console, peers: bool, quick: bool, heavy: bool, limit: float, format: Format
) -> list[dict[str, object]]:
    from opboost_lab.bench.federated_peers import OPBOOST, PEERS, PLAIN, QUICK, SIZE, TREES, run

    size = QUICK if quick else SIZE
    chosen = PEERS if peers else (PLAIN, OPBOOST)
    table = Table(title=f"{size.rows:,} × {size.own} + {size.theirs} columns, {TREES} trees")
    table.add_column("", no_wrap=True)
    table.add_column("protects", no_wrap=True)
    for title in ("seconds", "× plain", "MB sent", "MB held", "AUC"):
        table.add_column(title, justify="right", no_wrap=True)
    found, failed, versions, plain = [], [], [], 0.0
    with console.status("peers") if console.is_terminal else nullcontext():
        for ran in run(chosen, size, heavy=heavy, install_limit=limit, run_limit=limit):
            found.append(asdict(ran))
            if ran.problem:
                table.add_row(ran.peer.name, ran.peer.protects, "FAILED")
                failed.append(f"{ran.peer.name} FAILED: {ran.problem}")
                continue
            plain = ran.seconds if ran.peer == PLAIN else plain
            sent = "-" if ran.bytes is None else f"{ran.bytes / 1e6:.2f}{'' if ran.apart else '*'}"
            versions.append(f"{ran.peer.name} {ran.version}")
            table.add_row(
                ran.peer.name,
                ran.peer.protects,
                f"{ran.seconds:.2f}",
                _ratio(ran.seconds / plain) if plain else "-",
                sent,
                f"{ran.memory_mb:.0f}",
                f"{ran.auc:.4f}",
            )
    shared = ["* all that the machine's loopback carried meanwhile"] if any(
        not f["apart"] and not f["problem"] for f in found
    ) else []  # fmt: skip
    table.caption = "\n".join(
        [
            "plain: training alone; others: from starting their processes to the model; MB sent: "
            "over the loopback, both ways; MB held: the most that all processes had together",
            ", ".join(versions),
            *shared,
            *failed,
        ]
    )
    if format is Format.text:
        stdout().print(table)
    return found


def _machine() -> str:
    load = ", ".join(f"{v:.2f}" for v in os.getloadavg()) if hasattr(os, "getloadavg") else "?"
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"load averages at the end {load}"
    )


def _table(result: Result) -> Table:
    case = result.case
    cells = f"{case.cells:,}" if case.cells < 10**6 else f"2^{case.cells.bit_length() - 1}"
    table = Table(title=f"ε = {case.epsilon:g}, {cells} cells, {case.values:,} values")
    table.add_column("", no_wrap=True)
    for title in ("M/s", "× numpy", *(f"× {p.name}" for p in result.peers), "AES ×"):
        table.add_column(title, justify="right")
    for timing in (*result.ours, *result.others, result.numpy, *result.peers, result.aes):
        table.add_row(*_row(timing, result))
    failed = [f"{p.name} FAILED: {p.problem}" for p in result.peers if p.problem]
    table.caption = "\n".join(
        ["M/s: million values a second; AES ×: time over that of 8 keystream bytes", *failed]
    )
    return table


def _theory(results: list[Result]) -> Table:
    """The paper's theorems beside what was measured: a draw costs the same whatever n and grid."""
    from opboost.theory import protocol_cost

    table = Table(title="Theory beside measurement, Clamp-map")
    titles = ("cells", "values", "draws (theorem)", "ns a draw", "code bits (theorem)", "bits held")
    for title in titles:
        table.add_column(title, justify="right")
    for result in results:
        case = result.case
        cost = protocol_cost(case.values, 1, 1, trees=80, layers=3, cells=case.cells)
        table.add_row(
            f"{case.cells:,}",
            f"{case.values:,}",
            f"{cost.draws:,}",
            f"{result.ours[0].median:.2f}",
            f"{cost.codes_bits / case.values:.0f}",
            f"{case.grid.dtype().itemsize * 8}",
        )
    table.caption = "draws: O(N r), each O(1); bits held: the narrowest type, before compression"
    return table


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
