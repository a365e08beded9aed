"""One federated training run in this process: its time, and the bytes that each party sends."""

import time
from typing import Any

from opboost.columns.private_column import PrivateColumn
from opboost.estimators.declarations import Declarations
from opboost.mechanisms import Mechanism
from opboost.parties.channel import MemoryChannel, Weigh
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.protocol.messages import SplitQuery, Welcome, encode
from opboost_lab.accuracy import GRID, PARAMS, plain_scores
from opboost_lab.data.datasets import DataSet
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.source import Source
from opboost_lab.reproduce.task import Json


class Counted(MemoryChannel):
    """A channel in memory that also counts what the label party sends."""

    asked = 0

    def open(self, welcome: Welcome, weigh: Weigh | None = None) -> Any:
        """Count the welcome."""
        self.asked += len(encode(welcome))
        return super().open(welcome, weigh)

    def ask(self, query: SplitQuery) -> None:
        """Count the split query."""
        self.asked += len(encode(query))
        super().ask(query)


def federated(source: Json, method: Json, epsilon: float, mapping: str) -> Json:
    """Desensitise, send, train XGBoost and ask for split values; return seconds and bytes by party.

    Noise is cryptographic, as in a real job; one feature party holds all private columns.
    """
    data = Source(**source).data(0)
    X, y, _, _ = data.split()
    private = [*data.bounds, *data.categories]
    way = Method(**method)
    columns = _columns(data, way.mechanism(GRID, epsilon), mapping)
    own = X.drop_columns(private)
    started = time.perf_counter()
    party = FeatureParty(X.select(private), columns)
    label = LabelParty(
        own if own.num_columns else None,
        y,
        booster_params=PARAMS["xgboost"],
        denoise="auto" if way.denoise else False,
        random_state=0,
        task="regress" if data.task == "regression" else "classify",
        ask="used",  # as the paper does
        held_out=0,
    )
    channel = Counted(party)
    label.train([channel])
    return {
        "seconds": time.perf_counter() - started,
        "label party": channel.asked,
        "feature party": channel.sent,
        "values": X.num_rows * sum(len(c.feature_names()) for c in columns),
    }


def plain_time(source: Json) -> Json:
    """Return the seconds that the same booster takes on raw values, including scoring."""
    data = Source(**source).data(0)
    started = time.perf_counter()
    plain_scores(data, on_grid=False)
    return {"seconds": time.perf_counter() - started}


def _columns(data: DataSet, mechanism: Mechanism, mapping: str) -> list[PrivateColumn]:
    nominal: dict[Any, Any] = data.categories
    declared = Declarations(mechanism, data.bounds, nominal, mapping=mapping)
    return [declared.column(name, data.train)[0] for name in [*data.bounds, *data.categories]]
