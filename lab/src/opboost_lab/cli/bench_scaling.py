"""``opboost bench scale``: how time and memory grow, and how far a whole job is from its limits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, stdout

if TYPE_CHECKING:
    from rich.console import Console

    from opboost_lab.bench.scaling import Beside, Measured, OnPaper

TARGET = 1.05


def scale(
    console: Console, rows: Sequence[int], quick: bool, repeats: int, format: Format
) -> dict[str, object]:
    """Measure the points, fit how they grow, and compute what nobody measured."""
    from opboost_lab.bench.scaling import ROWS, Beside, OnPaper, growth, points, run

    chosen = points(rows or (ROWS[:2] if quick else ROWS))
    found = list(
        track(
            run(chosen, repeats),
            "scale",
            total=len(chosen),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    largest = max(found, key=lambda m: m.point.values)
    exponents = {
        "seconds in all": growth(found),
        "seconds of the feature parties": growth(found, lambda m: m.feature_seconds),
        "seconds of the label party": growth(found, lambda m: m.label_seconds),
        "bytes": growth(found, lambda m: m.bytes),
    }
    beside = [Beside.of(m) for m in found]
    imagined = OnPaper.of(largest)
    if format is Format.text:
        stdout().print(_points(found))
        stdout().print(_theory(beside))
        lines = Table(title=f"Growth in rows × columns: exponent, target at most {TARGET}")
        lines.add_column("")
        lines.add_column("exponent", justify="right")
        for name, exponent in exponents.items():
            lines.add_row(name, f"{exponent:.3f}")
        stdout().print(lines)
        stdout().print(_imagined(imagined))
    return {
        "points": [asdict(m) for m in found],
        "theory": [asdict(b) for b in beside],
        "growth": exponents,
        "on paper": asdict(imagined),
    }


def end_to_end(
    console: Console, rows: Sequence[int], quick: bool, format: Format
) -> dict[str, object]:
    """A whole job, stage by stage, beside the limits of its parts."""
    from opboost_lab.bench.scaling_whole import QUICK, WHOLE, as_json, run

    point = QUICK if quick else WHOLE
    if rows:
        point = replace(point, rows=rows[-1])
    with console.status("end to end") if console.is_terminal else nullcontext():
        whole = run(point)
    table = Table(title=f"{point.rows:,} × {point.columns}, {point.trees} trees, one feature party")
    for title in ("stage", "seconds", "limit", "its seconds", "×"):
        table.add_column(title, justify="left" if title in ("stage", "limit") else "right")
    for s in whole.stages:
        table.add_row(
            s.name, f"{s.seconds:.2f}", s.limit, f"{s.limit_seconds:.2f}", f"{s.ratio:.2f}"
        )
    released = sum(s.seconds for s in whole.stages[:3])
    table.add_row(
        "feature party with IDs and ledger",
        f"{whole.ledger_seconds:.2f}",
        "its three stages above",
        f"{released:.2f}",
        f"{whole.ledger_seconds / released:.2f}",
    )
    table.add_row(
        "all, with ledger",
        f"{whole.seconds:.2f}",
        "all limits",
        f"{whole.limit_seconds:.2f}",
        f"{whole.seconds / whole.limit_seconds:.2f}",
    )
    table.caption = (
        f"{whole.bytes / 1e6:.1f} MB sent; peak of the feature party {whole.ledger_mb:.0f} MB, of "
        f"the label party {whole.label_mb:.0f} MB"
    )
    if format is Format.text:
        stdout().print(table)
    return as_json(whole)


def _points(found: Sequence[Measured]) -> Table:
    table = Table(title="Time and memory")
    table.add_column("changed", no_wrap=True)
    titles = ("rows", "columns", "trees", "parties", "cells", "desensitise", "put aside", "code",
              "unpack", "XGBoost", "bits a value", "MB feature", "MB label")  # fmt: skip
    for title in titles:
        table.add_column(title, justify="right")
    for m in found:
        p = m.point
        stages = [m.released[s] for s in ("desensitise", "put aside", "code and write")]
        stages += [m.trained[s] for s in ("unpack and rewrite", "XGBoost")]
        table.add_row(
            m.axis,
            *(f"{n:,}" for n in (p.rows, p.columns, p.trees, p.parties, p.cells)),
            *(f"{s:.2f}" for s in stages),
            f"{8 * m.bytes / p.values:.2f}",
            f"{m.feature_mb:.0f}",
            f"{m.label_mb:.0f}",
        )
    table.caption = (
        "seconds of one processor by stage, the fastest try; MB: peak of the process, of which "
        f"{found[0].start_mb:.0f} before it sees a row"
    )
    return table


def _theory(beside: Sequence[Beside]) -> Table:
    table = Table(title="Beside the paper's theorems")
    for title in ("rows × columns", "draws N r", "ns each", "steps N T + (2^L − 1) T", "ns each",
                  "bits a value: log N", "ours"):  # fmt: skip
        table.add_column(title, justify="right")
    for b in beside:
        table.add_row(
            f"{b.point.rows:,} × {b.point.columns}",
            f"{b.draws:,}",
            f"{b.ns_a_draw:.0f}",
            f"{b.steps:,}",
            f"{b.ns_a_step:.0f}",
            f"{b.paper_bits:.1f}",
            f"{b.bits:.2f}",
        )
    return table


def _imagined(of: OnPaper) -> Table:
    table = Table(
        title=f"On paper: {of.parties:,} feature parties × {of.columns} columns, {of.rows:,} rows, "
        f"{of.trees} trees"
    )
    table.add_column("")
    table.add_column("figure", justify="right")
    for name, figure in (
        ("hours of one core, each feature party, without a ledger", f"{of.party_hours:.1f}"),
        ("GB sent by each", f"{of.party_gb:.1f}"),
        ("TB received", f"{of.all_tb:.1f}"),
        ("core hours to unpack", f"{of.unpack_core_hours:,.0f}"),
        ("core hours of XGBoost", f"{of.train_core_hours:,.0f}"),
        ("TB of memory over the label party's cluster", f"{of.label_tb:.1f}"),
    ):
        table.add_row(name, figure)
    table.caption = "from the constants of the largest point; one job takes fewer than 2^31 rows"
    return table
