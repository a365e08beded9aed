"""``opboost certify``: promised and exact loss by distance, order kept, and total per person."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    check_release,
    echo,
    json_text,
    print_json,
    record_line,
    stderr,
    stdout,
    warn_of_total,
)

if TYPE_CHECKING:
    from opboost.budgets.certificates import ColumnCertificate


def certify(
    config: ConfigOption,
    png: Annotated[Path | None, typer.Option(help="Also draw a picture.")] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Also write a file that others can check without OpBoost (JSON)."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Compute what each column's mechanism reveals, and compare it with its promise.

    Exit status 3 if a promise does not cover the exact loss.  For a party's file, it also runs the
    checks of a release (caps, columns, IDs, values, certificates) and exits with the same status.

    \b
    Examples:
      opboost certify -c b.toml
      opboost certify -c b.toml --png loss.png --format json
      opboost certify -c b.toml --export cert.json
    """
    from opboost.budgets.certificate_export import exported_certificate
    from opboost.budgets.certificates import certify as compute
    from opboost.budgets.certificates import draw
    from opboost.config import load
    from opboost.errors import DataError
    from opboost.plots import figures
    from opboost.promises import large_total_warning
    from opboost.storage.atomic_files import write

    plan = load(config)
    if png is not None:
        figures.load_matplotlib()  # fail before the work if it is not installed
    if export is not None and not export.parent.is_dir():
        raise DataError(f"The folder {export.parent} does not exist", hint="Make it first.")
    console = stderr()
    certificates = list(
        track(
            compute(plan.private),
            "certifying",
            total=len(plan.private),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    record = plan.guarantee()
    covered = all(c.covered for c in certificates)
    if format is Format.json:
        print_json(
            {
                "columns": [asdict(c) for c in certificates],
                "total": record.total,
                "columns_per_row": record.columns_per_row,
                "not_covered_by_any_promise": list(record.caveats),
                "covered": covered,
                "warning": large_total_warning(record.total),
            }
        )
    else:
        _print(certificates)
        if record.columns_per_row is not None:
            words = "columns of each row are"
            if record.columns_per_row == 1:
                words = "column of each row is"
            stdout().print(f"{record.columns_per_row} {words} released, chosen at random.")
        for caveat in record.caveats:
            stdout().print(f"Not covered: {caveat}.")
    if png is not None and not any(c.lines for c in certificates):
        console.print("No picture: no column has distances.")
    elif png is not None:
        draw(certificates, png)
        console.print(f"Picture: {png}")
    if export is not None and covered:
        exported = exported_certificate(plan.private, record, plan.record_total)
        write(export, (json_text(exported, indent=1) + "\n").encode())
        console.print(f"Certificate: {export}")
    warn_of_total(record.total)
    if format is Format.text:
        echo(record_line(record.total))
    if not covered:
        names = ", ".join(str(c.name) for c in certificates if not c.covered)
        console.print(f"opboost: the promise does not cover: {names}")
        raise typer.Exit(3)
    check_release(config)


def _print(certificates: list[ColumnCertificate]) -> None:
    overview = Table(title="Columns")
    for title in ("column", "promise", "total", "exact per cell", "pairs checked", "covered"):
        overview.add_column(title, justify="left" if title in ("column", "promise") else "right")
    for c in certificates:
        overview.add_row(
            str(c.name),
            c.brief,
            f"{c.total:.4g}",
            f"{c.exact_epsilon:.4f}",
            f"{c.pairs:,}",
            _covered(c),
        )
    stdout().print(overview)
    for mechanism, lines in {c.mechanism: c.lines for c in certificates if c.lines}.items():
        names = ", ".join(str(c.name) for c in certificates if c.mechanism == mechanism)
        table = Table(title=f"{names}: by distance", caption=mechanism)
        complete = len(lines) == lines[-1].distance
        worst = "exact, worst" if complete else "exact, largest found"
        for title in ("distance", "promised", worst, "order kept, at least"):
            table.add_column(title, justify="right")
        for line in (lines[i] for i in _chosen(len(lines))):
            gamma = "-" if line.gamma is None else f"{line.gamma:.4f}"
            mark = "*" if line.without_promise else ""
            table.add_row(f"{line.distance:,}{mark}", _level(line.bound), _level(line.loss), gamma)
        if any(line.without_promise for line in lines):
            table.caption = f"{mechanism}\n* pairs in different runs have no promise"
        stdout().print(table)


def _covered(certificate: ColumnCertificate) -> str:
    if not certificate.covered:
        return "NO"
    inside = any(line.without_promise for line in certificate.lines)
    return "inside runs" if inside else "yes"


def _level(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.4f}"


def _chosen(count: int) -> list[int]:
    """Return all positions of a short list, or a selection that gets sparser along a long one."""
    if count <= 16:
        return list(range(count))
    marks = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, count]
    return [m - 1 for m in sorted(set(marks)) if m <= count]
