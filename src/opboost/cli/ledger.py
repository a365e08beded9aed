"""``opboost ledger``: what was released, to whom, and whether the record is complete."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opboost.cli.common import ConfigOption, Format, FormatOption, json_text, print_json, stderr
from opboost.errors import ConfigError, PrivacyError

if TYPE_CHECKING:
    from opboost.ledger import Ledger
    from opboost.ledger.chain import Entry
    from opboost.ledger.verify_ledger import LedgerFinding

ledger = typer.Typer(
    help="What was released, to whom, and about how many people.", no_args_is_help=True
)


def _opened(config: Path) -> Ledger:
    from opboost.ledger.open_ledger import declared_ledger

    return declared_ledger(config)


class AnswerFormat(StrEnum):
    """The output format of a ledger's answers."""

    text = "text"
    json = "json"
    csv = "csv"


@ledger.command()
def show(
    config: ConfigOption,
    person: Annotated[
        list[str] | None,
        typer.Option(
            help="Only what was revealed about the person with this ID; repeat the option for each "
            "part of a compound ID, in the order of [align] id."
        ),
    ] = None,
    recipient: Annotated[str | None, typer.Option(help="Only what went to this party.")] = None,
    column: Annotated[str | None, typer.Option(help="Only releases of this attribute.")] = None,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="text, json, or csv of the releases.")
    ] = AnswerFormat.text,
) -> None:
    """Show releases and answers, and the most that was spent on one person.

    \b
    Examples:
      opboost ledger show -c shop.toml
      opboost ledger show -c shop.toml --recipient bank --column basket --format csv
      opboost ledger show -c shop.toml --person C00017
    """
    from opboost.cli import ledger_text as text
    from opboost.ledger.ledger_summary import summary
    from opboost.ledger.open_ledger import declared_person
    from opboost.ledger.person_answers import about_person

    with _opened(config) as opened:
        if person:
            who = declared_person(config, person, opened.ids)
            answer = about_person(opened, who.id, recipient, column)
            found = {"person": who.parts, **asdict(answer)}
        else:
            found = summary(opened, recipient, column)
    if format is AnswerFormat.json:
        print_json(found)
    elif person and format is AnswerFormat.csv:
        sys.stdout.write(text.answer_csv(answer))
    elif person:
        text.print_answer(answer, who.words)
    elif format is AnswerFormat.csv:
        sys.stdout.write(text.releases_csv(found))
    else:
        text.print_summary(found)


@ledger.command()
def verify(
    config: ConfigOption,
    receipts: Annotated[
        Path | None,
        typer.Option(help="A recipient's receipt, or a folder of them."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Check every entry and every block; exit status 3 if anything is wrong.

    \b
    Examples:
      opboost ledger verify -c shop.toml
      opboost ledger verify -c shop.toml --receipts receipts/
    """
    from opboost.ledger.verify_ledger import verify as run

    with _opened(config) as opened:
        held = _receipts(config, receipts) if receipts else []
        findings = run(opened, held)
        head = opened.head()
    entries = head.number + 1
    found = [{"entry": f.entry, "words": f.words} for f in findings]
    if format is Format.json:
        print_json(
            {"entries": entries, "receipts": len(held), "whole": not found, "findings": found}
        )
    _refuse_findings(findings)
    if format is Format.text:
        typer.echo(f"intact: {entries} entries, {len(held)} receipts")


def _refuse_findings(findings: Sequence[LedgerFinding]) -> None:
    if findings:
        first = findings[0]
        place = "" if first.entry is None else f"entry {first.entry} "
        raise PrivacyError(
            f"The ledger does not verify: {place}{first.words} "
            f"({len(findings)} finding{'s' if len(findings) > 1 else ''})."
        )


def _receipts(config: Path, path: Path) -> list[tuple[int, bytes]]:
    """Return this party's receipts, after checking their signatures against its authority."""
    from opboost.config.job_file import load_feature
    from opboost.ledger.receipts import read_receipts
    from opboost.transport.shared.tls import check_receipt, read_identity

    found = load_feature(config)
    identity = read_identity(found.tls, found.party.name)
    held = read_receipts(path, identity.name)
    for receipt in held:
        check_receipt(receipt, identity.name, identity.ca)
    return [(receipt.entry, receipt.head) for receipt in held]


@ledger.command()
def export(
    config: ConfigOption,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; default: stdout.")] = None,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="json or csv; text means csv.")
    ] = AnswerFormat.json,
) -> None:
    """Export every entry as JSON or CSV, without the handles that stand for people.

    \b
    Examples:
      opboost ledger export -c shop.toml -o ledger.json
      opboost ledger export -c shop.toml --format csv
    """
    with _opened(config) as opened:
        lines = [_line(e) for e in opened.entries()]
    if out is not None:
        _write(out, _text(lines, format))
        stderr().print(f"{len(lines)} entries -> {out}")
        return
    sys.stdout.write(_text(lines, format))


def _write(out: Path, text: str) -> None:
    from opboost.storage import atomic_files

    if out.exists():
        raise ConfigError(f"{out} exists already. Give another name.")
    atomic_files.write(out, text.encode())


def _line(entry: Entry) -> dict[str, Any]:
    """Return an entry with the number of forgotten people in place of their handles."""
    body = entry.body
    if "tombstones" in body:
        body = {**body, "tombstones": len(body["tombstones"])}
    return {
        "entry": entry.number,
        "at": entry.at,
        "kind": entry.kind,
        "body": body,
        "key": entry.key,
        "hash": entry.hash.hex(),
    }


def _text(lines: list[dict[str, Any]], format: AnswerFormat) -> str:
    from opboost.cli.ledger_text import as_csv

    if format is AnswerFormat.json:
        return json_text(lines, indent=1) + "\n"
    rows = ({**line, "body": json_text(line["body"])} for line in lines)
    return as_csv(lines[0], rows)


@ledger.command()
def report(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page, an HTML file.")],
) -> None:
    """Write a printable page for a privacy officer: who received what, and what caps still allow.

    The page needs no network and no scripts.  Exit status 3 if the ledger does not verify; the page
    says so as well.

    \b
    Examples:
      opboost ledger report -c shop.toml -o ledger.html
    """
    from opboost import __version__
    from opboost.ledger.ledger_report import Report

    with _opened(config) as opened:
        made = Report.of(opened, config.stem, __version__)
    _write(out, made.page())
    stderr().print(f"Ledger report -> {out}")
    _refuse_findings(made.findings)
