"""``opboost join``: run a feature party."""

from __future__ import annotations

from typing import Annotated

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    NewLedgerOption,
    PlaintextOption,
    echo,
    echo_promise,
    print_json,
    record_line,
    stderr,
    steps_progress,
    warn_of_total,
)
from opboost.runtime.loading import loading
from opboost.runtime.optional_packages import load_without_optional_packages


def join(
    config: ConfigOption,
    connect: Annotated[
        str | None, typer.Option(help="host:port of the label party; overrides the file.")
    ] = None,
    leave: Annotated[
        bool, typer.Option("--leave", help="Exit after sending; join again for the split query.")
    ] = False,
    insecure_plaintext_on_loopback: PlaintextOption = False,
    new_ledger: NewLedgerOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Desensitise once, send codes, and answer the split query.  Opens no port.

    \b
    Examples:
      opboost join -c shop.toml
      opboost join -c shop.toml --leave --connect bank.example:8815
    """
    with loading:
        load_without_optional_packages()
        from opboost.config.job_file import load_feature
        from opboost.transport.feature.join_job import join as run

    console = stderr()
    found = load_feature(config)
    warn_of_total(found.plan.total)  # before anything is released
    with steps_progress() as progress:
        manifest = run(
            found,
            connect=connect,
            insecure_plaintext=insecure_plaintext_on_loopback,
            leave=leave,
            new_ledger=new_ledger,
            progress=progress,
            say=console.print,
        )
    if format is Format.json:
        print_json(manifest)
        return
    echo_promise(manifest["guarantee"])
    echo(
        f"{manifest['party']}: {manifest['phase']}, {manifest['columns']} columns of "
        f"{manifest['rows']:,} rows in {manifest['bytes']:,} bytes"
    )
    echo(record_line(manifest["total"]))
