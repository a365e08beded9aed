"""``opboost desensitize``: a file in, a desensitised file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    bytes_progress,
    print_json,
    talk,
)


def desensitize(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder of them.")],
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="File or folder to make.")],
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise: protects nothing, for trying only.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Desensitise a table in bounded memory.  The output appears when it is whole."""
    from opboost.config import load
    from opboost.files.desensitize import desensitize as run
    from opboost.files.reading import table_files
    from opboost.guarantee import NoGuarantee
    from opboost.rng import SeededRng

    plan = load(config)
    size = sum(f.stat().st_size for f in table_files(table))
    rng = None if seed is None else SeededRng(seed)
    with bytes_progress("desensitising", size) as progress:
        summary = run(table, plan, out, rng=rng, progress=progress)
    promise = plan.guarantee() if seed is None else NoGuarantee("seeded")
    if format is Format.json:
        print_json(
            {
                "out": str(out),
                "files": summary.files,
                "rows": summary.rows,
                "guarantee": str(promise),
                "total": promise.total,
            }
        )
    else:
        typer.echo(str(promise))
    console = talk()
    console.print(f"{summary.rows:,} rows in {summary.files} file(s) -> {out}")
    clamped = {name: n for name, n in summary.outside.items() if n}
    if clamped:
        listed = ", ".join(f"{name} {n:,}" for name, n in clamped.items())
        console.print(f"Clamped to their bounds (known to you alone): {listed}")
