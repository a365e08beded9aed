"""A dishonest feature party that invents columns and reads labels off the weights of its pilot.

It singles out some people.  Each invented column puts each of them on one of two sides at random,
and everybody else in the middle.  The higher a column's weight, the more closely its sides follow
the labels or their opposite.  So the products of two people's sides, summed over the columns by
weight, are larger if their labels are equal, and the first eigenvector separates the labels.
"""

import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.budgets.budget import Budget
from opboost.budgets.record_plan import RecordPlan
from opboost.grid import Integers
from opboost.protocol.messages import Weights
from opboost_lab.accuracy import parted
from opboost_lab.attacks.labels import CuriousParty, classes_of, mean_auc, trained_with
from opboost_lab.attacks.released_records import some_people
from opboost_lab.declared_sets import party_plan

PEOPLE, TARGETS = 1_100, 200
"""The numbers of people in the job (a pilot needs a thousand), and of those singled out."""

LEVEL = 20.0
"""The level declared for each column: almost no noise."""


class _GoneError(Exception):
    """The party left the job."""


class DishonestParty(CuriousParty):
    """A party that leaves as soon as it has the weights."""

    def take_weights(self, weights: Weights) -> None:
        """Keep the weights and leave."""
        self.weights = weights
        raise _GoneError


def read_off(
    y: Any, targets: int, columns: int, seed: int, weights_epsilon: float | None = None
) -> Any:
    """Return scores that order the singled-out people by label, ascending or descending."""
    sides = np.random.default_rng(seed).choice([-1, 1], (targets, columns))
    whole = np.vstack([sides, np.zeros((len(y) - targets, columns), dtype=np.int64)])
    table = pa.table({f"c{j}": side for j, side in enumerate(whole.T)})
    budget = Budget.record(LEVEL * columns, columns_per_row=columns, pilot=0.999)
    plan = RecordPlan.of(budget, bounds=dict.fromkeys(table.column_names, Integers(-1, 1)))
    with tempfile.TemporaryDirectory() as folder:
        party = DishonestParty(table, party_plan(plan, "shop"), Path(folder))
        with suppress(_GoneError):
            trained_with(party, y, seed, weights_epsilon=weights_epsilon)
        party.ledger.close()
    halvings = np.array(party.weights.columns)
    together = (sides * (halvings.mean() - halvings)) @ sides.T
    np.fill_diagonal(together, 0)
    return np.linalg.eigh(together)[1][:, -1]


@cache
def by_columns(name: str, columns: int, seed: int, weights_epsilon: float | None = None) -> float:
    """Return the AUC on labels of one of the paper's sets, in the better direction."""
    data = parted(name, seed)
    _, y = some_people(data, PEOPLE, seed)
    scores = read_off(y, TARGETS, columns, seed, weights_epsilon)
    area = mean_auc(scores[:, None], classes_of(data, y)[:TARGETS])
    return max(area, 1 - area)
