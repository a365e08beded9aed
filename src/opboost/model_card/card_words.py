"""The sentences and table rows of a card that HTML and Markdown share, as plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from opboost.model_card.attack_figures import LINKED_PEOPLE, measured_at
from opboost.model_card.card import Card, CardColumn, LedgerFacts, percent
from opboost.pages.printed_page import level

AUDIT_HINT = (
    "These are bounds: no attack can do better. opboost audit attacks the mechanisms with samples "
    "and shows how close it gets."
)

ATTACKS_HINT = "The manual's page on attacks by record total says how they were measured."
"""How the figures of attacks were measured."""


def total_words(card: Card) -> str:
    """Return the total for people to read."""
    return level(card.total)


def guess_sentences(card: Card) -> list[str]:
    """Return sentences on how well anybody can guess which of two records was sent."""
    if math.isinf(card.total):
        return [
            "Nothing bounds a guess: what was released may reveal a person's values for certain."
        ]
    even, rare = card.guesses()
    return [
        "Somebody who thinks two records equally likely, and sees all that was released about the "
        f"person, guesses the right one with a chance of at most e^{card.total:g}/"
        f"(1 + e^{card.total:g}), that is {percent(even['at_most_after'])}.",
        f"Somebody who gave one of the two records a chance of {percent(rare['before'])} before "
        f"can give it at most {percent(rare['at_most_after'])} afterwards.",
    ]


def attack_sentences(card: Card) -> list[str]:
    """Return sentences on what attacks achieve: this bound, and figures of public data sets."""
    found = measured_at(card.total)
    if found is None:
        return ["Nothing bounds linkage: anybody with a table of true columns may find the person."]
    bound = card.attacks()["linked_at_most"]
    which = "the smallest measured total that is not below this model's"
    if found.total < card.total:
        which = "the largest measured one; at this model's total attacks may achieve more"
    elif found.total == card.total:
        which = "the same as this model's"
    sentences = [
        f"Somebody who has the true columns of {LINKED_PEOPLE:,} people, among them this one, and "
        "sees all that was released about the person names the right one with a chance of at most "
        f"e^{card.total:g}/(e^{card.total:g} + {LINKED_PEOPLE - 1}), that is {percent(bound)}. "
        f"Without the release it is {percent(1 / LINKED_PEOPLE)}.",
        f"Measured on public data sets ({', '.join(found.sets)}), not on this model's people, at a "
        f"total of {found.total:g}, {which}: the best possible attacker named the right one of "
        f"{LINKED_PEOPLE:,} for {_spread(found.linked)} of the records. With the release, guesses "
        "of the quarter of a column's range, or of a category, were right more often, by "
        f"{_points(found.attribute_gain)}.",
    ]
    if card.parties:
        sentences.append(
            "No total covers labels. On the same sets a feature party that was shown its own trees "
            f"(share_trees) inferred labels with an AUC of {_ends(found.label_auc, '.2f')}; a "
            "query for all split values (ask = all) reveals nothing about them."
        )
    return sentences


def _spread(shares: Mapping[str, float]) -> str:
    least, most = min(shares.values()), max(shares.values())
    return f"{percent(least)} to {percent(most)}"


def _points(gains: Mapping[str, float]) -> str:
    """Return the range of gains in percentage points; noise can make the smallest negative."""
    return f"{_ends({name: 100 * gain for name, gain in gains.items()}, '.1f')} percentage points"


def _ends(values: Mapping[str, float], form: str) -> str:
    return f"{min(values.values()):{form}} to {max(values.values()):{form}}"


def ledger_words(facts: LedgerFacts) -> str:
    """Return the total of the party's ledger, as a sentence."""
    cap = "no cap is set" if facts.cap is None else f"the cap is {level(facts.cap)}"
    return (
        f"Over all jobs and recipients the party's ledger has revealed at most {level(facts.most)} "
        f"about any of {facts.people:,} people; {cap}."
    )


def data_facts(card: Card) -> list[tuple[str, str]]:
    """Return facts about the training data, each a name and a value."""
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
    """Return the table of certificates; a party's columns with equal certificates share a row."""
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
    "Promised: the largest loss of any two values, as declared. Exact: the same, computed from the "
    "mechanism's exact distribution for every pair. Guess of the cell: the chance to guess the "
    "cell of somebody who sent the column, if all cells are equally likely, before and after "
    "seeing the noisy value."
)
"""What the columns of the table of certificates mean."""
