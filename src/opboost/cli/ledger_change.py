"""``opboost ledger renew|abort|forget``: change a ledger without a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opboost.cli.common import ConfigOption, Format, FormatOption, print_json
from opboost.errors import ConfigError

if TYPE_CHECKING:
    from opboost.config.sections import LedgerSection
    from opboost.ledger import Ledger
    from opboost.ledger.store import Changed
    from opboost.transport.feature.forget_everywhere import Forgotten


class OnChange(StrEnum):
    """What to do with the draw of a cell whose value has changed."""

    keep = "keep"
    redraw = "redraw"


def renew(
    config: ConfigOption,
    attribute: Annotated[
        str, typer.Option(help="Renew this attribute only, and keep the choice of columns.")
    ] = "",
    changed: Annotated[
        OnChange | None,
        typer.Option(help="From now on, keep or redraw the draw of a value that has changed."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Begin a new period: the next release draws and charges everybody again.

    Renew on a schedule, never because of what the data holds: recipients see the renewal. Caps
    count all periods. A renewal is refused while a release is reserved and not finished. With
    --changed redraw, a changed value is drawn again, and nothing bounds the loss over time.

    \b
    Examples:
      opboost ledger renew -c shop.toml
      opboost ledger renew -c shop.toml --attribute shop.basket
      opboost ledger renew -c shop.toml --changed keep
    """
    from opboost.config import load
    from opboost.ledger.open_ledger import declared_ledger, declared_section
    from opboost.ledger.renewal import forecast
    from opboost.ledger.renewal import renew as run

    plan, section = load(config), declared_section(config)
    with declared_ledger(config, renewing=True) as opened:
        wanted: Changed = opened.changed if changed is None else changed.value
        _check_same(section, wanted, config)
        ahead = forecast(opened, plan, attribute)
        entry = run(opened, attribute, changed=wanted)
        said: dict[str, Any] = {
            "entry": entry.number,
            "period": opened.period,
            "attribute": attribute or None,
            "changed": wanted,
            "people": ahead.people,
            "most": ahead.spent,
            "next": ahead.next,
            "beyond_cap": list(ahead.beyond),
        }
    if format is Format.json:
        print_json(said)
        return
    what = f"attribute {attribute!r}" if attribute else "all attributes and the choice of columns"
    typer.echo(f"Entry {entry.number} begins a new period for {what}.")
    typer.echo(
        f"So far {ahead.people:,} people were charged, at most {ahead.spent:g} each over all "
        f"periods. The next release with {config.name} adds at most {ahead.next:g} for each person."
    )
    if ahead.beyond:
        caps = ", ".join(map(repr, ahead.beyond))
        typer.echo(f"It may exceed the cap on {caps}, and would then be refused.")
    if wanted == "redraw":
        typer.echo("Changed values are drawn again, so the loss has no bound over time.")


def _check_same(section: LedgerSection, wanted: Changed, config: Path) -> None:
    """Refuse a period that contradicts the file: then the file could not open the ledger."""
    if section.changed not in (None, wanted):
        raise ConfigError(
            f'{config.name} says changed = "{section.changed}" in [ledger], and the new period '
            f'would have "{wanted}". Give --changed {section.changed}, or change the file.'
        )


def abort(
    config: ConfigOption,
    entry: Annotated[int, typer.Argument(help="The number of the entry that reserved it.")],
    format: FormatOption = Format.text,
) -> None:
    """Cancel the reservation of a release that will not be finished.

    The release sent nothing and charged nobody. If its command runs again, it makes a new
    reservation.

    \b
    Example:
      opboost ledger abort -c shop.toml 12
    """
    from opboost.ledger.renewal import abort as run

    with _opened(config) as opened:
        made = run(opened, entry)
    job = made.body["job"]
    if format is Format.json:
        print_json({"entry": made.number, "reservation": entry, "job": job})
        return
    typer.echo(
        f"Entry {made.number} cancels the reservation of job {job!r} in entry {entry}. Nothing was "
        "sent or charged."
    )


def forget(
    config: ConfigOption,
    person: Annotated[
        list[str],
        typer.Option(help="The person's ID; repeat the option for each part of a compound ID."),
    ],
    stored: Annotated[
        list[Path] | None,
        typer.Option(help="The folder of a stored release that was moved or copied."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Permanently remove what is remembered about one person.

    This removes the person's records from the ledger, their row from stored releases that hold IDs,
    the kept ledger of version 0.1.0 and the rows of finished jobs. A tombstone stays: no later
    release sends anything about this person. The removal is refused while a job or a release is
    unfinished. If the command is killed, run it again. Delete the person's row from the table
    yourself.

    \b
    Examples:
      opboost ledger forget -c shop.toml --person 12345
      opboost ledger forget -c shop.toml --person north --person 12345
      opboost ledger forget -c shop.toml --person 12345 --stored archive/released
    """
    from opboost.config.columns_file import validated
    from opboost.config.job_file import state_folder
    from opboost.config.toml_files import read
    from opboost.transport.feature.forget_everywhere import forget as run

    sections = validated(read(config), config.name)
    if not (ids := sections.align.ids()):
        raise ConfigError(f'{config.name} names no ID column. Add [align] with id = "customer_id".')
    state = state_folder(sections.party, config.parent) if sections.party else None
    with _opened(config) as opened:
        done = run(opened, person, ids, state=state, stored=stored or ())
    if format is Format.json:
        print_json(asdict(done))
        return
    for line in _told(done):
        typer.echo(line)


def _told(done: Forgotten) -> Iterator[str]:
    """Yield what was done and what is left to do, without naming the person."""
    entry = f"Entry {done.entry}" if done.entry is not None else "An earlier entry"
    yield f"{entry} leaves a tombstone: no later release sends anything about this person."
    yield f"Ledger: {_counted(done.records, 'record')} removed."
    if done.kept:
        yield "Kept ledger of version 0.1.0: removed, since it does not tell people apart."
    if done.jobs:
        yield f"Jobs: the rows of {_counted(done.jobs, 'finished job')} removed."
    for folder, rows in done.rewritten.items():
        yield f"Stored release {folder}: {_counted(rows, 'row')} removed."
    for folder in done.without_ids:
        yield f"Stored release {folder}: it holds no IDs, so the person's row cannot be found."
    for folder in done.not_found:
        yield f"Stored release {folder}: it is missing. If it was moved, run again with --stored."
    if done.elsewhere:
        yield (
            f"Jobs without a folder here: {done.elsewhere}. If another configuration file keeps "
            "them, run this command with that file as well."
        )
    if done.files:
        yield f"Released files, which are unchanged: {', '.join(done.files)}."
    yield "Delete the row from the table yourself. Recipients and backups keep what they hold."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _opened(config: Path) -> Ledger:
    from opboost.ledger.open_ledger import declared_ledger

    return declared_ledger(config)
