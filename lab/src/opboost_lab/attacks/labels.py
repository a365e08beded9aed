"""Label inference: what a feature party learns about labels from the label party's messages.

The party has the true columns of its people, and knows from elsewhere the direction in which each
column is related to the label, such as "older people earn more".  It adds up the columns in these
directions, each with the weight that a message gives it.  The area under the ROC curve (AUC) says
how well the sum ranks people with the label above those without.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from opboost._typing import BoolArray, FloatArray
from opboost.boosting import Problem, make_booster
from opboost.columns.dataframes import as_numbers, column
from opboost.config import Plan
from opboost.ledger import Caps, Ledger
from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.parties.label.split_query import Ask
from opboost.protocol.messages import Schema, ScoreTask, SplitQuery, SplitValues, Weights, Welcome
from opboost.scores.clean_features import feature_block
from opboost_lab.accuracy import PARAMS, parted
from opboost_lab.attacks.released_records import some_people
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private, feature_plan
from opboost_lab.score_totals import ID, ids

PEOPLE, SCORED = 6_000, 50
"""The number of people whom the parties share, and how many of them are scored."""

PILOT = 0.2


class CuriousParty(FeatureParty):
    """A feature party that keeps a copy of every message that depends on labels."""

    def __init__(self, rows: pa.Table, plan: Plan, folder: Path, **more: Any) -> None:
        ledger = Ledger(folder / "ledger", folder / "key", Caps(person=2 * plan.total))
        table = rows.append_column(ID, pa.array(ids(rows)))
        super().__init__(table, plan, ledger=ledger, ids=ID, name="shop", **more)

    def take_weights(self, weights: Weights) -> None:
        """Keep the weights of columns."""
        self.weights = weights
        super().take_weights(weights)

    def answer(self, query: SplitQuery) -> SplitValues:
        """Keep the queried values."""
        self.values = super().answer(query)
        return self.values

    def score_release(self, welcome: Welcome, task: ScoreTask) -> tuple[Schema, list[Path]]:
        """Keep the trees."""
        self.trees = task.score_model().trees
        return super().score_release(welcome, task)


def trained_with(party: CuriousParty, y: Any, seed: int, **settings: Any) -> Any:
    """Train with a party that holds all columns; the label party holds only the label.

    The seed is the booster's; the noise is cryptographic, as between real parties.
    """
    names = [str(i) for i in range(len(y))]
    bank = LabelParty(None, y, ids=names, random_state=seed, held_out=0, **settings)
    return bank.train([MemoryChannel(party)])


@dataclass(frozen=True, slots=True)
class Inference:
    """The AUC with which a party infers its people's labels, averaged over classes.

    Attributes:
        nothing: Only from its columns and their directions, or after a query for all values.
        query: With the split query for the values that the model used.
        weights: With the weights of its columns after a pilot.
        trees: From the trees over its columns, which need no directions.
        ceiling: By a model trained on the true columns and labels of the other half of the people.
    """

    nothing: float
    query: float
    weights: float
    trees: float
    ceiling: float


def inferred(data: DataSet, total: float, seed: int, people: int) -> Inference:
    """Run jobs with a curious party, and attack the labels of its people."""
    X, y = some_people(data, people, seed)
    plan = feature_plan(data, X.column_names, total, "shop", PILOT)
    settings: Any = {
        "task": "regress" if data.task == "regression" else "classify",
        "structure": "by-party",
        "booster_params": PARAMS["xgboost"],
    }
    with tempfile.TemporaryDirectory() as folder:
        party = CuriousParty(X, plan, Path(folder) / "trained")
        trained_with(party, y, seed, ask="all", **settings)
        whole = party.values  # the second job repeats the release
        model = trained_with(party, y, seed, ask="used", **settings)
        some = X.slice(0, SCORED)
        scored = CuriousParty(some, plan, Path(folder) / "scored", score=total)
        asking = LabelParty(None, None, ids=ids(some), share_trees=True)
        asking.predict(model, [MemoryChannel(scored)], release="score")
        party.ledger.close()
        scored.ledger.close()
    labels = classes_of(data, y)
    blocks = np.hstack([feature_block(c, c.prepare(X)) for c in plan.private])
    plain, even = features(X, plan, whole, whole)
    told = zip(plan.private, party.weights.columns, strict=True)
    pilot = np.array([0.5**halvings for c, halvings in told for _ in c.feature_names()])
    scores = (
        _added_up(plain, even, labels),
        _added_up(*features(X, plan, party.values, whole), labels),
        _added_up(plain, pilot, labels),
        scored.trees.sums(blocks),
        _by_model(data, blocks.astype(np.float32), y, labels, seed),
    )
    return Inference(*(mean_auc(found, labels) for found in scores))


def values_that_differ(data: DataSet, total: float, seed: int, people: int, ask: Ask) -> int:
    """Return how many released values are queried with true labels only, or shuffled ones only."""
    X, y = some_people(data, people, seed)
    plan = feature_plan(data, X.column_names, total, "shop")
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        party = CuriousParty(X, plan, Path(folder))
        for labels in (y, np.random.default_rng(seed).permutation(y)):
            trained_with(party, labels, seed, ask=ask, booster_params=PARAMS["xgboost"])
            asked.append({(v.column, cut) for v in party.values.columns for cut in v.values})
        party.ledger.close()
    return len(asked[0] ^ asked[1])


def features(
    X: pa.Table, plan: Plan, asked: SplitValues, whole: SplitValues
) -> tuple[FloatArray, FloatArray]:
    """Return the columns as standardised numbers, and the weights that a split query gives them.

    A number counts as its rank among the queried values, and its column's weight is the queried
    share of its values over the largest such share.  A category is not queried and has weight 1.
    """
    cuts, possible = ({v.column: v.values for v in told.columns} for told in (asked, whole))
    most = max(len(values) / len(possible[k]) for k, values in cuts.items())
    number, blocks, weights = 0, [], []
    for c in plan.private:
        block, weight = feature_block(c, c.prepare(X)).astype(np.float64), 1.0
        if c.has_order:
            raw = as_numbers(c.name, column(X, c.name)).astype(np.float64)
            places = np.searchsorted(cuts.get(number, ()), raw, side="right")
            block = places[:, None].astype(np.float64)
            weight = len(cuts.get(number, ())) / len(possible[number]) / most
        blocks.append(block - block.mean(axis=0))
        weights += [weight] * block.shape[1]
        number += len(c.release_names())
    values = np.hstack(blocks)
    return values / np.maximum(values.std(axis=0), 1e-12), np.array(weights)


def classes_of(data: DataSet, y: Any) -> BoolArray:
    """Return ``[person, class]``: every class, the second of two, or the upper half of numbers."""
    if data.task == "regression":
        return np.asarray(y > np.median(y))[:, None]
    labels = np.unique(y)
    return np.asarray(y[:, None] == (labels[1:] if len(labels) == 2 else labels))


def mean_auc(scores: FloatArray, labels: BoolArray) -> float:
    """Return the AUC averaged over classes."""
    pairs = zip(labels.T, scores.T, strict=True)
    return float(np.mean([roc_auc_score(of, score) for of, score in pairs]))


def _added_up(values: FloatArray, weights: FloatArray, labels: BoolArray) -> FloatArray:
    """Return the sum of the features, each in the direction of its relation to the class."""
    direction = np.sign(values.T @ (labels - labels.mean(axis=0)))
    return np.asarray(values @ (weights[:, None] * direction))


def _by_model(data: DataSet, rows: FloatArray, y: Any, labels: BoolArray, seed: int) -> FloatArray:
    """Return scores of each half of the people by a model trained on the other half."""
    task: Any = data.task
    classes, coded = np.unique(y, return_inverse=True)
    target, count = (y.astype(float), 0) if task == "regression" else (coded, len(classes))
    scores = np.zeros(labels.shape)
    for train, test in KFold(2, shuffle=True, random_state=seed).split(rows):
        problem = Problem(rows[train], target[train], task, count, seed=seed)
        predicted = make_booster("xgboost", PARAMS["xgboost"]).train(problem).predict(rows[test])
        scores[test] = predicted.reshape(len(test), -1)[:, -labels.shape[1] :]
    return scores


@cache
def by_total(name: str, total: float, seed: int) -> Inference:
    """Attack one of the paper's sets."""
    return inferred(all_private(parted(name, seed)), total, seed, PEOPLE)
