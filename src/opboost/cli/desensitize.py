"""``opboost desensitize``: read a table and write a desensitised file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    NewLedgerOption,
    bytes_progress,
    echo,
    echo_promise,
    print_json,
    record_line,
    stderr,
    steps_progress,
)
from opboost.errors import ConfigError, PrivacyError

if TYPE_CHECKING:
    from opboost.config import Plan
    from opboost.config.columns_file import ColumnsConfig
    from opboost.config.sections import LedgerSection
    from opboost.ledger import Ledger
    from opboost.sources.table_address import TableAddress


class Engine(Enum):
    """What desensitises the parts of a table."""

    local = "local"
    dask = "dask"
    spark = "spark"


def desensitize(
    table: Annotated[
        str,
        typer.Argument(
            help="CSV or Parquet file, a folder of them, a 'pattern*', or a URI (docs: sources)."
        ),
    ],
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="File or folder to write.")],
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise, which protects nothing: for trials only.")
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(help="Write a folder of parts, using local processes, Dask or Spark."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of workers, if OpBoost starts the engine."),
    ] = None,
    to: Annotated[
        str, typer.Option(help="Who will receive the file; recorded in the ledger.")
    ] = "unnamed recipient",
    weights: Annotated[
        Path | None,
        typer.Option(help="JSON file with a weight per column, such as the weights of a pilot."),
    ] = None,
    new_ledger: NewLedgerOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Desensitise a table in bounded memory.  The output appears only once it is complete.

    With [ledger] in the configuration, noise is drawn once per cell, the release is recorded, and
    caps apply; without it, a second run is a second release.  With --engine, workers desensitise
    the table in parts, into a folder.  If they are killed, run the command again: it continues with
    the same noise.

    \b
    Examples:
      opboost desensitize people.csv -c b.toml -o released.csv
      opboost desensitize tables/ -c shop.toml -o released/ --to bank
      opboost desensitize tables/ -c shop.toml -o released/ --engine local
      opboost desensitize tables/ -c shop.toml -o released/ --engine local --weights weights.json
      opboost desensitize people.csv -c b.toml -o trial.parquet --seed 1
      opboost desensitize s3://shop/people.parquet -c b.toml -o released.parquet
    """
    from opboost.config import load
    from opboost.config.columns_file import validated
    from opboost.config.toml_files import read, read_weights
    from opboost.ledger.renewal import over_time
    from opboost.promises import NoGuarantee
    from opboost.sources.table_address import table_address

    source = table_address(table)
    plan = load(config)
    if weights is not None:
        plan = plan.weighted(read_weights(weights), weights.name)
    sections = validated(read(config), config.name)
    ids = sections.align.ids()
    if sections.ledger is not None and seed is not None:
        raise PrivacyError("Seeded noise protects nothing, so it cannot be used with a ledger.")
    if not ids and (sections.ledger is not None or engine is not None):
        why = "has a [ledger], which needs IDs" if sections.ledger else "names no ID column"
        raise ConfigError(f'{config.name} {why}. Add [align] with id = "customer_id".')
    if engine is None and workers is not None:
        raise ConfigError("--workers needs --engine, such as --engine local.")
    if engine is not None and out.suffix.lower() == ".csv":
        raise ConfigError(
            f"--engine makes a folder of Parquet files, and {out.name} is the name of a CSV file. "
            f"Give the folder another name, such as {out.stem}, or leave --engine out."
        )
    if engine is not None and seed is not None:
        raise PrivacyError(
            "The noise of a release with --engine is never seeded. Leave --seed out."
        )
    with _ledger(sections.ledger, config, new_ledger) as ledger:
        if engine is None:
            done = _streamed(source, plan, out, sections, seed, to, ledger)
        else:
            done = _in_parts(source, plan, out, sections, engine, workers, to, ledger)
        promise = over_time(plan.guarantee(), ledger) if seed is None else NoGuarantee("seeded")
    if format is Format.json:
        print_json(
            {
                "out": str(out),
                "files": done.files,
                "rows": done.rows,
                "guarantee": str(promise),
                "total": promise.total,
            }
        )
    else:
        echo_promise(promise)
    console = stderr()
    if done.remark:
        console.print(done.remark)
    console.print(f"{done.rows:,} rows in {done.files} file(s) -> {out}")
    clamped = {name: n for name, n in done.outside.items() if n}
    if clamped:
        listed = ", ".join(f"{name} {n:,}" for name, n in clamped.items())
        console.print(f"Clamped to their bounds (do not share these counts): {listed}")
    if format is Format.text:
        echo(record_line(promise.total))


@dataclass(frozen=True)
class _Done:
    files: int
    rows: int
    outside: dict[str, int]
    remark: str


@contextmanager
def _ledger(section: LedgerSection | None, config: Path, new: bool) -> Iterator[Ledger | None]:
    """Open the ledger that the configuration names; yield None if it names none."""
    from opboost.ledger.open_ledger import open_ledger

    if section is None:
        yield None
        return
    with open_ledger(section.based(config.parent), new=new) as ledger:
        yield ledger


def _streamed(
    table: TableAddress,
    plan: Plan,
    out: Path,
    sections: ColumnsConfig,
    seed: int | None,
    to: str,
    ledger: Ledger | None,
) -> _Done:
    """Desensitise the table in this process, piece by piece."""
    from opboost.files.desensitize_table import desensitize as run
    from opboost.files.read_tables import size_of, table_files
    from opboost.ledger import Drawing
    from opboost.randomness.streams import SeededRng

    ids, drawing = sections.align.ids(), None
    if ledger is not None and sections.ledger is not None:
        drawing = Drawing(
            ledger,
            plan.private,
            plan.attributes,
            job=f"file {out.name}",
            recipient=to,
            budget=plan.budget,
            new_attributes=sections.ledger.new_attributes,
            people=sections.ledger.people or ", ".join(ids),
        )
    size = sum(map(size_of, table_files(table)))
    rng = None if seed is None else SeededRng(seed)
    with bytes_progress("desensitising", size) as progress:
        summary = run(table, plan, out, rng=rng, progress=progress, drawing=drawing, ids=ids)
    remark = ""
    if drawing is not None:
        remark = (
            f"Ledger: entry {drawing.entry.number}, {drawing.new_cells:,} cells drawn and charged, "
            f"{drawing.old_cells:,} already known"
        )
    return _Done(summary.files, summary.rows, summary.outside, remark)


def _in_parts(
    table: TableAddress,
    plan: Plan,
    out: Path,
    sections: ColumnsConfig,
    engine: Engine,
    workers: int | None,
    to: str,
    ledger: Ledger | None,
) -> _Done:
    """Desensitise the table with many workers, which may be restarted."""
    from opboost.scale import Charge
    from opboost.scale import desensitize as run

    charge = None
    if ledger is not None and sections.ledger is not None:
        new, people = sections.ledger.new_attributes, sections.ledger.people or ""
        charge = Charge(ledger, to, tuple(new), people)
    with steps_progress() as progress:
        made = run(
            table,
            plan,
            out,
            ids=sections.align.ids(),
            engine=engine.value,
            workers=workers,
            charge=charge,
            progress=lambda done, parts: progress("desensitising", done, parts),
        )
    manifest = made.manifest
    remark = "" if made.fresh else f"Release {manifest.release} already exists: nothing was drawn"
    return _Done(len(manifest.parts), manifest.rows, made.outside, remark)
