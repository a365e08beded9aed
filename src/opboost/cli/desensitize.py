"""``opboost desensitize``: a file in, a desensitised file out."""

from __future__ import annotations

from contextlib import ExitStack
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
from opboost.errors import ConfigError, PrivacyError


def desensitize(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder of them.")],
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="File or folder to make.")],
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise: protects nothing, for trying only.")
    ] = None,
    to: Annotated[
        str, typer.Option(help="Who will get the file; recorded in the ledger.")
    ] = "unnamed recipient",
    format: FormatOption = Format.text,
) -> None:
    """Desensitise a table in bounded memory.  The output appears when it is whole.

    With [ledger] in the configuration each cell is noised once, the release is recorded and caps
    hold; without it a second run is a second release.

    \b
    Examples:
      opboost desensitize people.csv -c b.toml -o released.csv
      opboost desensitize tables/ -c shop.toml -o released/ --to bank
      opboost desensitize people.csv -c b.toml -o trial.parquet --seed 1
    """
    from opboost.config import load
    from opboost.config.columns import read, validated
    from opboost.files.desensitize import desensitize as run
    from opboost.files.reading import table_files
    from opboost.guarantee import NoGuarantee
    from opboost.ledger import Caps, Drawing, Ledger
    from opboost.rng import SeededRng

    plan = load(config)
    sections = validated(read(config), config.name)
    size = sum(f.stat().st_size for f in table_files(table))
    rng = None if seed is None else SeededRng(seed)
    with ExitStack() as stack:
        drawing = None
        if sections.ledger is not None:
            if seed is not None:
                raise PrivacyError(
                    "Seeded noise protects nothing and does not go through a ledger."
                )
            if not sections.align.ids():
                raise ConfigError(
                    f"{config.name} has a [ledger], which remembers people. "
                    'Add [align] with id = "customer_id".'
                )
            folder, key = (config.parent / p for p in (sections.ledger.folder, sections.ledger.key))
            caps = Caps(sections.ledger.cap_attribute, sections.ledger.cap_person)
            drawing = Drawing(
                stack.enter_context(Ledger(folder, key, caps)),
                plan.private,
                plan.attributes,
                job=f"file {out.name}",
                recipient=to,
                budget=plan.budget,
                new_attributes=sections.ledger.new_attributes,
                people=sections.ledger.people or ", ".join(sections.align.ids()),
            )
        progress = stack.enter_context(bytes_progress("desensitising", size))
        ids = sections.align.ids()
        summary = run(table, plan, out, rng=rng, progress=progress, drawing=drawing, ids=ids)
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
    if drawing is not None:
        console.print(
            f"Ledger: entry {drawing.entry.number}, {drawing.new_cells:,} cells drawn and "
            f"charged, {drawing.old_cells:,} known already"
        )
    console.print(f"{summary.rows:,} rows in {summary.files} file(s) -> {out}")
    clamped = {name: n for name, n in summary.outside.items() if n}
    if clamped:
        listed = ", ".join(f"{name} {n:,}" for name, n in clamped.items())
        console.print(f"Clamped to their bounds (known to you alone): {listed}")
