"""Charges for scores: in full, to the person and to every attribute that a score reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opboost._typing import IntArray, Words
from opboost.errors import PrivacyError
from opboost.ledger.chain import Chain, Entry
from opboost.ledger.run_files import RunFile

Reads = Mapping[str, frozenset[str]]
"""The attributes that the trees of each score read, by the score's attribute."""


@dataclass(frozen=True, slots=True)
class ScoreCharge:
    """What the ledger needs to know about a score.

    Attributes:
        reads: The attributes that the trees read.
        models: How many models may score one person in a period.
    """

    reads: tuple[str, ...]
    models: int = 1


def score_attribute(digest: str) -> str:
    """Return the ledger's attribute for a model's score, by the model's digest."""
    return f"score of model {digest[:32]}"


def check_cap_person(cap: float | None) -> None:
    """Refuse scores if nothing bounds what is spent on one person over time."""
    if cap is None:
        raise PrivacyError(
            "A score is released only under a cap: without one, a label party could change a leaf "
            "and average fresh draws, period by period. Add cap_person to [ledger], or "
            "caps=Caps(person=...) to the Ledger. Nothing was drawn."
        )


def score_reads(chain: Chain) -> Reads:
    """Return all scores that were ever reserved, and what each reads."""
    found: dict[str, frozenset[str]] = {}
    for entry in chain.entries("reserve"):
        for column in entry.body.get("columns", []):
            if "reads" in column:
                found[column["attribute"]] = frozenset(_listed(entry, column["reads"]))
    return found


def _listed(entry: Entry, names: object) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise entry.damaged()
    return names


def scored(files: list[RunFile], reads: Reads, handles: Words) -> IntArray:
    """Return how many models scored each person in some runs."""
    total = np.zeros(len(handles), dtype=np.int64)
    for file in files:
        here = np.array([c.attribute in reads for c in file.run.columns])
        if here.any():
            places = file.places(handles)
            found = np.flatnonzero(places >= 0)
            total[found] += file.sent(places[found])[:, here].sum(axis=1)
    return total


def check_models(most: int, before: IntArray, new: IntArray) -> None:
    """Refuse more models per person and period than are allowed."""
    over = (new > 0) & (before + new > most)
    if over.any():
        raise PrivacyError(
            f"{int(over.sum()):,} people were scored by another model in this period, and the "
            f"limit is {most} (score_models in [budget]). Another leaf, cut or codebook makes "
            "another model. Nothing was sent. Ask again with the earlier model, or wait for the "
            "next period."
        )
