"""``opboost bench scale``: how time and memory grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.progress import track

from opboost.cli.common import Format, stdout
from opboost_lab.cli.figure_table import figure_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from opboost_lab.bench.scaling import Measured

TARGET = 1.05


def scale(
    console: Console, rows: Sequence[int], quick: bool, repeats: int, format: Format
) -> dict[str, object]:
    """Measure the points, and fit how they grow."""
    from opboost_lab.bench.scaling import ROWS, growth, points, run

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
    exponents = {
        "seconds in all": growth(found),
        "seconds of the feature parties": growth(found, lambda m: m.feature_seconds),
        "seconds of the label party": growth(found, lambda m: m.label_seconds),
        "bytes": growth(found, lambda m: m.bytes),
    }
    if format is Format.text:
        growths = [(name, f"{exponent:.3f}") for name, exponent in exponents.items()]
        title = f"Growth in rows × columns: exponent, target at most {TARGET}"
        stdout().print(_points(found))
        stdout().print(figure_table(title, ("", "exponent"), growths))
    return {"points": [asdict(m) for m in found], "growth": exponents}


def _points(found: Sequence[Measured]) -> Table:
    rows = []
    for m in found:
        p = m.point
        stages = [m.released[s] for s in ("desensitise", "put aside", "code and write")]
        stages += [m.trained[s] for s in ("unpack and rewrite", "XGBoost")]
        sizes = (p.rows, p.columns, p.trees, p.parties, p.cells)
        last = (f"{8 * m.bytes / p.values:.2f}", f"{m.feature_mb:.0f}", f"{m.label_mb:.0f}")
        rows.append((m.axis, *(f"{n:,}" for n in sizes), *(f"{s:.2f}" for s in stages), *last))
    return figure_table(
        "Time and memory",
        (
            *("changed", "rows", "columns", "trees", "parties", "cells", "desensitise"),
            *("put aside", "code", "unpack", "XGBoost", "bits a value", "MB feature", "MB label"),
        ),
        rows,
        "seconds of one processor by stage, the fastest try; MB: peak of the process, of which "
        f"{found[0].start_mb:.0f} before it sees a row",
    )
