"""Attribute recovery: guess the quarter of a column's range, or the category, of a person."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.columns.private_column import PrivateColumn
from opboost.mechanisms import NominalMechanism
from opboost.model_card.card import guess_bound
from opboost.training.feature_matrix import OwnTable
from opboost.training.released_columns import from_sample, rows_of
from opboost.training.targets import Target
from opboost.training.train_model import prepare_rows
from opboost.training.training_settings import TrainingSettings
from opboost_lab.accuracy import PARAMS, parted
from opboost_lab.attacks.released_records import (
    ReleasedRecords,
    first_cell,
    some_people,
    under_record_budget,
)
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private

ATTACKED, KNOWN = 2_000, 6_000
"""The numbers of attacked people, and of others whose columns and labels the attacker knows."""

DRAWS = 64
"""Posterior draws per record; the label party takes the most frequent answer."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The share of right guesses, averaged over columns.

    Attributes:
        prior: By somebody who knows how the column is distributed, and nothing about the person.
        label: By somebody who also knows the label, and how the column depends on it.
        release: From the column's distribution and the person's release, by Bayes' rule.
        party: By the label party: its denoiser, all columns that the person sent, and the label.
        ceiling: The most that any attack on the release can reach, from the same distribution.
        most_gained: The largest gain of ``release`` over ``prior`` in any column.
    """

    prior: float
    label: float
    release: float
    party: float
    ceiling: float
    most_gained: float


def recovered(data: DataSet, total: float, seed: int, attacked: int, known: int) -> Recovery:
    """Release people's records under a record budget, and guess the columns of some of them."""
    X, y = some_people(data, attacked + known, seed)
    records = ReleasedRecords.of(X, under_record_budget(data, total, seed))
    edges = np.quantile(y, np.arange(1, 10) / 10) if data.task == "regression" else np.unique(y)
    groups = np.searchsorted(edges, y)
    party = _by_label_party(records, data, y, attacked, seed)
    found = []
    for column in records.columns:
        parts, cells = answers(column), records.cells[column.name]
        truth, right = parts[cells], parts[cells][:attacked]
        shares = np.bincount(cells[attacked:], minlength=len(parts)) + 0.5
        prior = _by_answer(shares[None, :] / shares.sum(), parts)[0]
        counts = np.zeros((groups.max() + 1, len(prior)))
        np.add.at(counts, (groups[attacked:], truth[attacked:]), 1)
        likely = _by_answer(np.exp(records.evidence[column.name][:attacked]) * shares, parts)
        guesses: list[Any] = [
            prior.argmax(),
            counts.argmax(axis=1)[groups[:attacked]],
            likely.argmax(axis=1),
            party[column.name],
        ]
        bound = guess_bound(records.total, float(prior.max()))
        found.append([*(np.mean(right == guess) for guess in guesses), bound])
    table = np.array(found)
    gained = table[:, 2] - table[:, 0]
    return Recovery(*map(float, [*table.mean(axis=0), gained.max()]))


def answers(column: PrivateColumn) -> IntArray:
    """Return the answer that each cell of a column counts as: its quarter, or its category."""
    mechanism = column.mechanism
    if isinstance(mechanism, NominalMechanism):
        return np.arange(len(mechanism.categories))
    cells = np.arange(mechanism.domain.size)
    return cells * 4 // mechanism.domain.size if column.has_order else cells


def _by_answer(chances: FloatArray, parts: IntArray) -> FloatArray:
    return np.asarray(np.add.reduceat(chances, np.unique(parts, return_index=True)[1], axis=1))


def _by_label_party(
    records: ReleasedRecords, data: DataSet, y: Any, attacked: int, seed: int
) -> dict[Any, IntArray]:
    """Return the likeliest answers under the label party's denoiser, fitted to all records."""
    release = from_sample(records.columns, records.released, records.sent)
    target = Target.of_numbers(y) if data.task == "regression" else Target.of_classes(y)
    settings = TrainingSettings.of("xgboost", PARAMS["xgboost"], True, seed)
    prepared = prepare_rows(list(release), OwnTable.of(None), target, settings)
    denoised = prepared.rows.denoised
    assert denoised is not None
    own = prepared.layout.own_values(None, attacked)
    some = rows_of(release, np.arange(attacked))
    found = {}
    for column in denoised.drawn(some, own, target.y[:attacked], DRAWS):
        if len(column.parts) > 1:
            cells = np.column_stack([part.values for part in column.parts]).argmax(axis=1)
        else:
            cells = column.parts[0].values.astype(np.int64) - first_cell(column.private)
        votes = answers(column.private)[cells].reshape(DRAWS, attacked)
        counts = [(votes == answer).sum(axis=0) for answer in range(votes.max() + 1)]
        found[column.private.name] = np.argmax(counts, axis=0)
    return found


@cache
def by_total(name: str, total: float, seed: int) -> Recovery:
    """Attack one of the paper's sets."""
    return recovered(all_private(parted(name, seed)), total, seed, ATTACKED, KNOWN)
