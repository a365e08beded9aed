"""A feature party that follows the protocol and remembers what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from opboost.config import Plan
from opboost.ledger import Caps, Ledger
from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.protocol.messages import Schema, ScoreTask, SplitQuery, SplitValues, Weights, Welcome
from opboost_lab.score_totals import ID, ids


class CuriousParty(FeatureParty):
    """A feature party that keeps a copy of every message that depends on labels."""

    def __init__(self, rows: pa.Table, plan: Plan, folder: Path, **more: Any) -> None:
        ledger = Ledger(folder / "ledger", folder / "key", Caps(person=2 * plan.total))
        table = rows.append_column(ID, pa.array(ids(rows)))
        super().__init__(table, plan, ledger=ledger, ids=ID, name="shop", **more)

    def take_weights(self, weights: Weights) -> None:
        """Note the weights of columns."""
        self.weights = weights
        super().take_weights(weights)

    def answer(self, query: SplitQuery) -> SplitValues:
        """Note the values that are asked for."""
        self.values = super().answer(query)
        return self.values

    def score_release(self, welcome: Welcome, task: ScoreTask) -> tuple[Schema, list[Path]]:
        """Note the trees."""
        self.trees = task.score_model().trees
        return super().score_release(welcome, task)


def trained_with(party: CuriousParty, y: Any, seed: int, **settings: Any) -> Any:
    """Train with a party that holds all columns; the label party holds the label alone.

    The seed is that of the booster; noise is cryptographic, as between any parties.
    """
    names = [str(i) for i in range(len(y))]
    bank = LabelParty(None, y, ids=names, random_state=seed, held_out=0, **settings)
    return bank.train([MemoryChannel(party)])
