"""A model's card as Markdown, which also reads as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opboost.errors import visible
from opboost.model_card.card import Card, score_lines, score_words
from opboost.model_card.card_words import (
    ATTACKS_HINT,
    AUDIT_HINT,
    CERTIFICATE_NOTE,
    attack_sentences,
    certificate_rows,
    certificate_titles,
    data_facts,
    guess_sentences,
    ledger_words,
    party_rows,
    party_titles,
    total_words,
)


def as_markdown(card: Card) -> str:
    """Return the card as Markdown; characters with a meaning in Markdown are escaped."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Card) -> Iterator[str]:
    yield from (f"# Model card of {_plain(card.name)}", "")
    yield from (f"As of {card.made}, by OpBoost {card.version}.", "")
    yield from (f"**The most revealed about one person: {total_words(card)}**", "")
    yield from _paragraphs([f"Revealed to {card.recipient}.", *card.promise])
    if card.warning:
        yield from (f"**{_plain(card.warning)}**", "")
    if card.ledger is not None:
        yield from (_plain(ledger_words(card.ledger)), "")
    yield from ("## Purpose", "", _plain(card.purpose), "")
    yield from ("## What an attacker can gain", "")
    yield from _bullets([*guess_sentences(card), AUDIT_HINT])
    yield from ("## What attacks achieve at this total", "")
    yield from _bullets([*attack_sentences(card), ATTACKS_HINT])
    yield from ("## Data", "")
    yield from _bullets([f"{name}: {value}" for name, value in data_facts(card)])
    if card.parties:
        yield from ("## Parties", "")
        yield from _table(party_titles(), party_rows(card))
    yield from ("## Certificates", "")
    yield from _table(certificate_titles(card), certificate_rows(card))
    yield from (CERTIFICATE_NOTE, "")
    yield from ("## Accuracy", "", score_words(card.score), "")
    if figures := score_lines(card.score):
        yield from _table(("columns", "score"), figures)
    yield from ("## Limits", "")
    yield from _bullets(card.limits)
    yield from ("## Digests (SHA-256)", "")
    yield from (f"- {_plain(d.what)}: `{d.sha256}`" for d in card.digests)


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from (_plain(text), "")


def _bullets(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"- {_plain(text)}" for text in texts)
    yield ""


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)
    yield ""


def _plain(text: str) -> str:
    r"""Escape Markdown's markup, and spell out invisible characters.

    >>> print(_plain("a*b | <c>"))
    a\*b \| \<c\>
    """
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", visible(text))
