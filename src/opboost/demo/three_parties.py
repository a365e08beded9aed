"""The demo: three organisations, three processes, one model, on data that ships with scikit-learn.

A clinic knows who is ill and a few columns; two laboratories hold other measurements.  Each knows
most of the people, in an order of its own; they find the common ones by private set intersection.
The score on unseen rows stands beside plain training on the joined table, which none of
them could do, and beside what the clinic's own columns give.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from opboost._typing import FloatArray, IntArray
from opboost.demo.local_federation import (
    LABEL_PARTY,
    PartyOutcome,
    run_federation,
    write_federation,
)
from opboost.estimators import load

OWN = ["smoothness error", "texture error", "symmetry error", "mean symmetry"]
LABS: dict[str, dict[str, tuple[float, float]]] = {
    "lab-north": {"mean radius": (5, 30), "mean texture": (5, 40), "mean concavity": (0, 0.5)},
    "lab-south": {"worst area": (100, 4500), "worst smoothness": (0.05, 0.25)},
}
"""Declared, public bounds of the columns that the laboratories hold."""

BOOSTER = {"num_boost_round": 80, "max_depth": 3, "eta": 0.1, "nthread": 1}


@dataclass(frozen=True, slots=True)
class Sent:
    """What one laboratory let go of."""

    party: str
    columns: int
    rows: int
    bytes: int
    per_cell: float
    per_person: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """How many people each house knows, and how many all of them."""

    people: dict[str, int]
    common: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's figures."""

    rows: int
    aligned: Alignment
    sent: tuple[Sent, ...]
    per_person: float
    seconds: float
    auc: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return asdict(self)


def demo(folder: Path, epsilon: float, cells: int) -> Demo:
    """Run the federation in ``folder`` and score its model."""
    data = load_breast_cancer()
    place = {str(name): j for j, name in enumerate(data.feature_names)}
    names = [*OWN, *(c for lab in LABS.values() for c in lab)]
    X, X_test, y, y_test = train_test_split(
        data.data[:, [place[name] for name in names]], data.target, random_state=0
    )
    train, test = (pa.table(dict(zip(names, rows.T, strict=True))) for rows in (X, X_test))
    known = _known(len(X))
    outcome = _federated(folder, train, y, known, epsilon, cells)
    common = reduce(np.intersect1d, known.values())
    X, y = X[common], y[common]
    model = load(folder / LABEL_PARTY / "model.opboost")
    own = len(OWN)
    auc = {
        "joined in the clear": _plain(X, y, X_test, y_test),
        "federated": float(roc_auc_score(y_test, model.predict_proba(test)[:, 1])),
        "own columns alone": _plain(X[:, :own], y, X_test[:, :own], y_test),
    }
    sent = tuple(_sent(name, outcome.manifests[name], epsilon) for name in LABS)
    manifest = outcome.manifests[LABEL_PARTY]
    step = manifest["align"]
    aligned = Alignment({"clinic": step["own"], **step["theirs"]}, step["common"], step["seconds"])
    return Demo(manifest["rows"], aligned, sent, manifest["total"], outcome.seconds, auc)


def _known(rows: int) -> dict[str, IntArray]:
    """Whom each house knows, 24 in 25 people, and in which order."""
    rng = np.random.default_rng(0)
    return {name: rng.permutation(rows)[: rows * 24 // 25] for name in (LABEL_PARTY, *LABS)}


def _federated(
    folder: Path,
    train: pa.Table,
    y: IntArray,
    known: dict[str, IntArray],
    epsilon: float,
    cells: int,
) -> PartyOutcome:
    ids = pa.array([f"person-{i:04d}" for i in range(len(train))])
    train = train.append_column("id", ids).append_column("ill", pa.array(y))
    tables = {
        name: train.select([*columns, "id"]).take(known[name]) for name, columns in LABS.items()
    }
    federation = write_federation(
        folder,
        train.select([*OWN, "id", "ill"]).take(known[LABEL_PARTY]),
        "ill",
        tables,
        {c: b for lab in LABS.values() for c, b in lab.items()},
        epsilon=epsilon,
        cells=cells,
        booster=BOOSTER,
    )
    return run_federation(federation)


def _sent(name: str, manifest: dict[str, Any], epsilon: float) -> Sent:
    rows, columns = manifest["rows"], manifest["columns"]
    return Sent(name, columns, rows, manifest["bytes"], epsilon, manifest["total"])


def _plain(X: FloatArray, y: IntArray, X_test: FloatArray, y_test: IntArray) -> float:
    params = {k: v for k, v in BOOSTER.items() if k != "num_boost_round"}
    booster = xgb.train(
        {**params, "objective": "binary:logistic"},
        xgb.DMatrix(X, y),
        int(BOOSTER["num_boost_round"]),
    )
    return float(roc_auc_score(y_test, booster.predict(xgb.DMatrix(X_test))))
