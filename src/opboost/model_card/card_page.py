"""A model's card as one HTML page to print and sign; it needs no scripts and no network."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape

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
from opboost.pages.printed_page import (
    SIGNATURE,
    cell,
    dated_header,
    factor,
    heads,
    html_page,
    printed_style,
    section,
)

_TEXT_COLUMNS = frozenset({"columns", "party", "role", "mechanism", "promise"})
"""The titles of columns of words; all other columns contain numbers."""


_ONE_SHEET = """\
@media print {
  @page { size: A4; margin: 10mm 12mm; }
  html { font-size: 8.2pt; line-height: 1.25; }
  h2 { margin: .5rem 0 .1rem; }
  ul, p, .facts { margin: .15rem 0; }
  #most { margin: .5rem 0; padding: .5rem .8rem; }
  th, td { padding: .12rem .4rem; }
  .lines { margin-top: 2.4rem; grid-template-columns: repeat(3, minmax(0, 1fr)); }
}
"""
"""Smaller print, so that a card of few columns fits on one sheet."""


def as_html(card: Card) -> str:
    """Return the card as a page, with all names escaped."""
    title = f"Model card of {visible(card.name)}"
    sections = [
        _most(card),
        section("purpose", "Purpose", f"<p>{_text(card.purpose)}</p>"),
        section("attack", "What an attacker can gain", _attack(card)),
        section("achieved", "What attacks achieve at this total", _achieved(card)),
        section("data", "Data", _facts(data_facts(card))),
        _parties(card),
        section("certificates", "Exact certificates", _certificates(card)),
        section("accuracy", "Accuracy, with and without noise", _accuracy(card)),
        section("limits", "Limits", f"<ul>{_items(card.limits)}</ul>"),
        section("digests", "Digests (SHA-256)", _digests(card)),
        SIGNATURE,
    ]
    header = dated_header(title, card.made, card.version)
    return html_page(title, printed_style() + _ONE_SHEET, header, sections)


def _text(words: str) -> str:
    return escape(visible(words))


def _with_powers(words: str) -> str:
    """Return escaped words, with e^4 written as a power."""
    return re.sub(r"\be\^([\d.]*\d)", r"e<sup>\1</sup>", _text(words))


def _most(card: Card) -> str:
    """Return the first section: the most revealed about one person."""
    if math.isinf(card.total):
        meaning = "Nothing bounds what was released: a person's values may be known for certain."
    else:
        meaning = (
            "The total is a sum of ε. Whatever the recipient believed before, all that was "
            "released for this model changes the odds between any two possible records of one "
            f"person by a factor of at most e<sup>{card.total:g}</sup> "
            f"≈&nbsp;{factor(card.total)}. With a total of 0, nothing could be learnt."
        )
    ledger = "" if card.ledger is None else f"<p>{_text(ledger_words(card.ledger))}</p>"
    promise = "".join(f"<p>{_text(words)}</p>" for words in card.promise)
    warning = f'<p class="bad">{_with_powers(card.warning)}</p>' if card.warning else ""
    return f"""\
<section id="most" aria-labelledby="most-title">
  <h2 id="most-title" style="margin-top: 0">The most revealed about any one person</h2>
  <p id="total">{_text(total_words(card))}</p>
  <p>Revealed to {_text(card.recipient)}.</p>
  <p>{meaning}</p>
  {promise}{ledger}{warning}
</section>
"""


def _attack(card: Card) -> str:
    guesses = "".join(f"<li>{_with_powers(words)}</li>" for words in guess_sentences(card))
    return f'<ul>{guesses}</ul><p class="soft">{_text(AUDIT_HINT)}</p>'


def _achieved(card: Card) -> str:
    achieved = "".join(f"<li>{_with_powers(words)}</li>" for words in attack_sentences(card))
    return f'<ul>{achieved}</ul><p class="soft">{_text(ATTACKS_HINT)}</p>'


def _items(texts: Sequence[str]) -> str:
    return "".join(f"<li>{_text(text)}</li>" for text in texts)


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    pairs = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts
    )
    return f'<dl class="facts">{pairs}</dl>'


def _parties(card: Card) -> str:
    if not card.parties:
        return ""
    return section("parties", "Parties", _table(party_titles(), party_rows(card), "narrow"))


def _certificates(card: Card) -> str:
    table = _table(certificate_titles(card), certificate_rows(card))
    return f'{table}<p class="soft">{_text(CERTIFICATE_NOTE)}</p>'


def _accuracy(card: Card) -> str:
    figures = score_lines(card.score)
    table = _table(("columns", "score"), figures, "narrow") if figures else ""
    return f"<p>{_text(score_words(card.score))}</p>{table}"


def _digests(card: Card) -> str:
    pairs = "".join(
        f'<div><dt>{_text(d.what)}</dt><dd class="hash">{d.sha256}</dd></div>' for d in card.digests
    )
    kept = (
        '<p class="soft">Keep this page apart from the model: sha256sum of the file must give '
        "the same digest.</p>"
    )
    return f'<dl class="facts digests">{pairs}</dl>{kept}'


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], look: str = "wide") -> str:
    looks = ["name", *("name" if t in _TEXT_COLUMNS else "number" for t in titles[1:])]
    head = heads(*zip(titles, looks, strict=True))
    body = "".join(
        f'<tr><th scope="row" class="name">{_text(row[0])}</th>'
        + "".join(
            cell(title, _text(value), look)
            for title, value, look in zip(titles[1:], row[1:], looks[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<table class="{look}">{head}<tbody>{body}</tbody></table>'
