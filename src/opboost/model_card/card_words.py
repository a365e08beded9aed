"""The sentences and table rows of a card that HTML and Markdown share, as plain text."""

from __future__ import annotations

import math

from opboost.model_card.card import Card, CardColumn, LedgerFacts, percent
from opboost.pages.printed_page import level

AUDIT_HINT = (
    "These are bounds: no attack can do better. opboost audit attacks the mechanisms through "
    "samples and shows what it reaches; the threat model of the manual lists measured attacks."
)


def total_words(card: Card) -> str:
    """Return the total for people to read."""
    return level(card.total)


def guess_sentences(card: Card) -> list[str]:
    """Return how well anybody can guess which of two records was sent."""
    if math.isinf(card.total):
        return ["Nothing bounds a guess: what was released may tell somebody's values for certain."]
    even, rare = card.guesses()
    return [
        "Somebody who thinks two records equally likely, and sees all that was released about the "
        f"person, guesses which it was with a chance of at most e^{card.total:g}/"
        f"(1 + e^{card.total:g}), that is {percent(even['at_most_after'])}, of being right.",
        f"Somebody who gave one of the two records a chance of {percent(rare['before'])} before "
        f"can give it {percent(rare['at_most_after'])} after, and no more.",
    ]


def ledger_words(facts: LedgerFacts) -> str:
    """Return what the party's ledger adds up to."""
    cap = "no cap is set" if facts.cap is None else f"the cap is {level(facts.cap)}"
    return (
        f"Over all jobs and recipients the party's ledger has revealed at most {level(facts.most)} "
        f"about any of {facts.people:,} people; {cap}."
    )


def data_facts(card: Card) -> list[tuple[str, str]]:
    """Return what the model was made of: a name and a value each."""
    facts = [("task", card.task)]
    if card.label:
        facts.append(("label", card.label))
    if card.job is not None:
        facts.append(("rows in common", f"{card.job.rows:,}"))
        facts.append(("job", f"{card.job.job}, finished {card.job.finished}"))
    facts.append(("private columns", ", ".join(c.name for c in card.columns)))
    facts.append(("own columns, without noise", ", ".join(card.own_columns) or "none"))
    return facts


def party_titles() -> tuple[str, ...]:
    """Return the titles of the table of parties."""
    return ("party", "role", "number of columns", "most about one person")


def party_rows(card: Card) -> list[tuple[str, ...]]:
    """Return the table of parties."""
    return [
        (
            party.name or "(not named in the model)",
            party.role,
            f"{party.columns:,}",
            level(party.total) if party.role == "feature party" else "sends nothing",
        )
        for party in card.parties
    ]


def certificate_titles(card: Card) -> tuple[str, ...]:
    """Return the titles of the table of certificates."""
    return (
        "columns",
        *(("party",) if card.parties else ()),
        "mechanism",
        "cells",
        "promise",
        "promised at most",
        "exact",
        "covered",
        "guess of the cell",
    )


def certificate_rows(card: Card) -> list[tuple[str, ...]]:
    """Return the table of certificates; columns of one party with equal ones share a row."""
    names: dict[tuple[str, ...], list[str]] = {}
    for column in card.columns:
        about = _certificate(column)
        found = names.setdefault((column.party, *about), [])
        found.append(column.name)
    return [
        (", ".join(those), *((party,) if card.parties else ()), *about)
        for (party, *about), those in names.items()
    ]


def _certificate(column: CardColumn) -> tuple[str, ...]:
    guess = "–"
    if column.best_guess is not None:
        guess = f"{percent(column.blind_guess)} → {percent(column.best_guess)}"
    return (
        column.mechanism,
        f"{column.cells:,}",
        column.promise,
        level(column.promised),
        f"{column.exact:.4g}",
        "yes" if column.covered else "NO",
        guess,
    )


CERTIFICATE_NOTE = (
    "Promised: the largest loss of any two values, as declared. Exact: the same, computed from "
    "the mechanism's exact distribution for every pair. Guess of the cell: the chance to guess "
    "the cell of somebody who sent the column, if all cells are as likely, before and after seeing "
    "the noisy value."
)
"""What the columns of the table of certificates mean."""
