"""Linkage: an attacker with a stolen table of true columns guesses whose record it is."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from opboost.estimators import Desensitizer
from opboost.mechanisms import GlobalMap
from opboost.randomness.streams import SeededRng
from opboost_lab.accuracy import GRID, parted
from opboost_lab.attacks.released_records import ReleasedRecords, some_people, under_record_budget
from opboost_lab.declared_sets import all_private

PEOPLE, TOP = 1_000, 10
"""The numbers of people in the stolen table, equally likely a priori, and of names on a list."""

TIE = 1e-9
"""Log-likelihoods that differ by less are equal except for rounding."""


@dataclass(frozen=True, slots=True)
class Linkage:
    """How often the best possible attacker names the right person.

    Attributes:
        first: The share of records whose person is named first; ties are broken at random.
        top: The share whose person is on a list of ten names.
        surest: The largest posterior chance that the attacker gave to anybody.
        total: The most that is revealed about one person.
    """

    first: float
    top: float
    surest: float
    total: float


def linked(records: ReleasedRecords) -> Linkage:
    """Compare every record with every person of the stolen table, by exact likelihood.

    With equal priors, no attacker is right more often than one who names the likeliest person.
    """
    columns = [records.evidence[name][:, cells] for name, cells in records.cells.items()]
    likelihood = np.sum(columns, axis=0)
    of_truth = np.diagonal(likelihood)[:, None]
    better = (likelihood > of_truth + TIE).sum(axis=1)
    tied = (np.abs(likelihood - of_truth) <= TIE).sum(axis=1)
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return Linkage(
        float(np.mean((better == 0) / tied)),
        float(np.mean(np.clip((TOP - better) / tied, 0, 1))),
        float(1 / relative.sum(axis=1).min()),
        records.total,
    )


@cache
def by_total(name: str, total: float, seed: int) -> Linkage:
    """Attack records that were released under a record budget."""
    data = all_private(parted(name, seed))
    people, _ = some_people(data, PEOPLE, seed)
    return linked(ReleasedRecords.of(people, under_record_budget(data, total, seed)))


@cache
def by_epsilon(name: str, epsilon: float, seed: int) -> Linkage:
    """Attack records of numbers that the paper's Global-map released at a level per cell."""
    data = parted(name, seed)
    people, _ = some_people(data, PEOPLE, seed)
    paper = Desensitizer(
        GlobalMap(GRID, epsilon), bounds=data.bounds, remainder="drop", noise_rng=SeededRng(seed)
    )
    return linked(ReleasedRecords.of(people, paper))
