"""``opboost doctor``: check whether this machine and a party's file are ready."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout

if TYPE_CHECKING:
    from opboost.doctor import Finding


def doctor(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Also check this party's file.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Check versions, AES, threads, disk and, with -c, a party's file and certificates.

    It changes nothing and contacts no other party.  If something is wrong, the exit status is the
    one that the job itself would have; a warning is not a failure.

    \b
    Examples:
      opboost doctor
      opboost doctor -c shop.toml --format json
    """
    from opboost.doctor import State, examine_machine, examine_party

    folder = config.absolute().parent if config else Path.cwd()
    found = list(examine_machine(folder))
    if config is not None:
        found += examine_party(config)
    failed = [f for f in found if f.state is State.wrong]
    wrong = len(failed)
    if format is Format.json:
        print_json({"well": not wrong, "findings": [asdict(f) for f in found]})
    else:
        _print(found)
    if config is None:
        stderr().print("To check a party's file, certificates and folders: opboost doctor -c FILE")
    if wrong:
        stderr().print(f"opboost: {wrong} thing{'s are' if wrong > 1 else ' is'} wrong.")
        raise typer.Exit(next((f.exit_status for f in failed if f.exit_status != 1), 1))


def _print(found: list[Finding]) -> None:
    table = Table()
    table.add_column("what")
    table.add_column("state")
    table.add_column("found, and what to do", overflow="fold")
    for f in found:
        table.add_row(f.what, f.state, f"{f.found}\n-> {f.next_step}" if f.next_step else f.found)
    stdout().print(table)
