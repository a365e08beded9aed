"""``opboost ledger``: what was released, to whom, and whether the record is whole."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    json_text,
    paper,
    print_json,
    talk,
)
from opboost.errors import ConfigError, PrivacyError

if TYPE_CHECKING:
    from opboost.ledger import Ledger

ledger = typer.Typer(help="What was released, to whom, about how many.", no_args_is_help=True)


def _opened(config: Path) -> Ledger:
    from opboost.ledger.declared import declared_ledger

    return declared_ledger(config)


@ledger.command()
def show(config: ConfigOption, format: FormatOption = Format.text) -> None:
    """Releases and answers, and the most that was spent on one person.

    \b
    Examples:
      opboost ledger show -c shop.toml
      opboost ledger show -c shop.toml --format json
    """
    from opboost.ledger.summary import summary

    with _opened(config) as opened:
        found = summary(opened)
    if format is Format.json:
        print_json(found)
        return
    table = Table(title="Releases")
    for title in ("entry", "time", "what", "to", "rows", "new cells", "known cells"):
        table.add_column(title, justify="right" if "cells" in title or title == "rows" else "left")
    for line in found["releases"]:
        counts = [f"{line[k]:,}" if line.get(k) is not None else "" for k in _COUNTS]
        table.add_row(str(line["entry"]), line["at"], line["what"], line["recipient"], *counts)
    paper().print(table)
    spent = Table(title="Spent on one person at most")
    for title in ("attribute", "people", "spent", "cap"):
        spent.add_column(title, justify="left" if title == "attribute" else "right")
    for line in found["spent"]:
        cap = "none" if line["cap"] is None else f"{line['cap']:g}"
        people = "" if line["people"] is None else f"{line['people']:,}"
        spent.add_row(line["attribute"], people, f"{line['most']:g}", cap)
    paper().print(spent)
    if found["changed"] == "redraw":
        typer.echo("Values that change are drawn anew: no bound over time.")


_COUNTS = ("rows", "new_cells", "old_cells")


@ledger.command()
def verify(
    config: ConfigOption,
    receipts: Annotated[
        Path | None,
        typer.Option(help="Receipt, or folder of receipts, that a recipient holds."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Check every entry and every block; exit status 3 if anything is wrong.

    \b
    Examples:
      opboost ledger verify -c shop.toml
      opboost ledger verify -c shop.toml --receipts receipts/
    """
    from opboost.ledger.verify import verify as run

    with _opened(config) as opened:
        held = _receipts(config, receipts) if receipts else []
        findings = run(opened, held)
        head = opened.head()
    entries = head.number + 1 if head else 0
    found = [{"entry": f.entry, "words": f.words} for f in findings]
    if format is Format.json:
        print_json(
            {"entries": entries, "receipts": len(held), "whole": not found, "findings": found}
        )
    if findings:
        first = findings[0]
        place = "" if first.entry is None else f"entry {first.entry} "
        raise PrivacyError(
            f"The ledger does not verify: {place}{first.words} "
            f"({len(findings)} finding{'s' if len(findings) > 1 else ''})."
        )
    if format is Format.text:
        typer.echo(f"whole: {entries} entries, {len(held)} receipts")


def _receipts(config: Path, path: Path) -> list[tuple[int, bytes]]:
    """This party's receipts, each with a signature that its authority vouches for."""
    from opboost.config.federation import load_feature
    from opboost.ledger.receipts import read_receipts
    from opboost.service.tls import check_receipt, read_identity

    found = load_feature(config)
    identity = read_identity(found.tls, found.party.name)
    held = read_receipts(path, identity.name)
    for receipt in held:
        check_receipt(receipt, identity.name, identity.ca)
    return [(receipt.entry, receipt.head) for receipt in held]


@ledger.command()
def export(
    config: ConfigOption,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; else stdout.")] = None,
    format: FormatOption = Format.json,
) -> None:
    """Every entry as JSON (or CSV with --format text); no handles of people.

    \b
    Examples:
      opboost ledger export -c shop.toml -o ledger.json
      opboost ledger export -c shop.toml --format text
    """
    with _opened(config) as opened:
        lines = [_line(e) for e in opened.entries()]
    if out is not None:
        from opboost import durable

        if out.exists():
            raise ConfigError(f"{out} exists already. Give another name.")
        durable.write(out, _text(lines, format).encode())
        talk().print(f"{len(lines)} entries -> {out}")
        return
    sys.stdout.write(_text(lines, format))


def _line(entry: Any) -> dict[str, Any]:
    return {
        "entry": entry.number,
        "at": entry.at,
        "kind": entry.kind,
        "body": entry.body,
        "key": entry.key,
        "hash": entry.hash.hex(),
    }


def _text(lines: list[dict[str, Any]], format: Format) -> str:
    import io

    if format is Format.json:
        return json_text(lines, indent=1) + "\n"
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(lines[0]))
    writer.writeheader()
    for line in lines:
        writer.writerow({**line, "body": json_text(line["body"])})
    return out.getvalue()
