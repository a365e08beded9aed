"""``opboost card``: one page about a model for the officer who signs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opboost.cli.common import as_json, echo, stderr
from opboost.errors import ConfigError

if TYPE_CHECKING:
    from opboost.model_card.card import Card


class CardFormat(StrEnum):
    """The format of a card; text is Markdown."""

    html = "html"
    markdown = "markdown"
    json = "json"
    text = "text"


_ENDINGS = {
    ".html": CardFormat.html,
    ".htm": CardFormat.html,
    ".md": CardFormat.markdown,
    ".json": CardFormat.json,
}


def card(
    model: Annotated[Path, typer.Argument(help="A saved model, such as m.opboost.")],
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="A party's TOML file, for names, job and ledger."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File, whose ending sets the format; default: stdout."),
    ] = None,
    purpose: Annotated[
        str, typer.Option(help="What the model is for; overrides [card] purpose.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    format: Annotated[
        CardFormat | None, typer.Option("--format", help="html, markdown, json; text is Markdown.")
    ] = None,
) -> None:
    """Write one page about a model for the officer who signs: what it reveals about one person.

    The total comes first.  Then purpose, what an attacker can gain, data, parties, exact
    certificates, accuracy with and without noise, limits, and digests.  The page needs no network
    and no scripts.

    \b
    Examples:
      opboost card m.opboost -o card.html --purpose "Decide on loans up to 5,000."
      opboost card model.opboost -c bank.toml -o card.md
      opboost card model.opboost -c shop.toml --format json
    """
    from opboost import __version__
    from opboost.config.sections import MAX_PURPOSE_CHARACTERS
    from opboost.model_card.party_facts import card_of
    from opboost.storage import atomic_files

    chosen = _format(out, format)
    if len(purpose) > MAX_PURPOSE_CHARACTERS:
        raise ConfigError(
            f"--purpose has {len(purpose):,} characters, but a card has room for only "
            f"{MAX_PURPOSE_CHARACTERS:,}. Shorten it."
        )
    if out is not None:
        if out.exists() and not force:
            raise ConfigError(f"{out} exists already. Give another name, or --force to replace it.")
        if not out.parent.is_dir():
            raise ConfigError(f"The folder {out.parent} does not exist. Make it first.")
    text = _text(card_of(model, config, __version__, purpose.strip()), chosen)
    if out is None:
        echo(text.rstrip("\n"))
        return
    atomic_files.write(out, text.encode())
    stderr().print(f"Model card -> {out}")


def _format(out: Path | None, format: CardFormat | None) -> CardFormat:
    """Return the requested format, else the one that the file's ending names, else text."""
    if format is not None:
        return format
    if out is None:
        return CardFormat.text
    if out.suffix.lower() not in _ENDINGS:
        raise ConfigError(
            f"A card is a .html, .md or .json file; got {out.name}. Give such a name, or --format."
        )
    return _ENDINGS[out.suffix.lower()]


def _text(made: Card, format: CardFormat) -> str:
    from opboost.model_card.card_markdown import as_markdown
    from opboost.model_card.card_page import as_html

    if format is CardFormat.json:
        return as_json(made.to_dict()) + "\n"
    return as_html(made) if format is CardFormat.html else as_markdown(made)
