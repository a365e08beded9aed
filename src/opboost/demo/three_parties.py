"""The demo: three organisations, three processes, one model, on data that ships with scikit-learn.

A clinic knows who is ill and a few columns; two laboratories hold other measurements.  Each knows
most of the people, in an order of its own; they find the common ones by private set intersection.
The score on unseen rows stands beside plain training on the joined table, which none of
them could do, and beside what the clinic's own columns give.
"""

from __future__ import annotations

import base64
import html
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
from opboost.demo.local_federation import LABEL_PARTY, PartyOutcome, run_scene, write_scene
from opboost.estimators import load
from opboost.plots.figures import figure, save
from opboost.storage import atomic_files

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
    scene = write_scene(
        folder,
        train.select([*OWN, "id", "ill"]).take(known[LABEL_PARTY]),
        "ill",
        tables,
        {c: b for lab in LABS.values() for c, b in lab.items()},
        epsilon=epsilon,
        cells=cells,
        booster=BOOSTER,
    )
    return run_scene(scene)


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


def write_report(found: Demo, folder: Path) -> Path:
    """One page: who sent what under which promise, and what it was worth."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "accuracy.png"
    _draw(found, picture)
    rows = "".join(
        f"<tr><td>{html.escape(s.party)}</td><td>{s.columns}</td><td>{s.rows:,}</td>"
        f"<td>{s.bytes:,}</td><td>{s.per_cell:g}</td><td>{s.per_person:g}</td></tr>"
        for s in found.sent
    )
    scores = "".join(
        f"<tr><td>{html.escape(way)}</td><td>{value:.4f}</td></tr>"
        for way, value in found.auc.items()
    )
    image = base64.b64encode(picture.read_bytes()).decode()
    page = _PAGE.format(
        rows=rows,
        scores=scores,
        image=image,
        people=found.rows,
        houses=_houses(found),
        aligning=f"{found.aligned.seconds:.1f}",
        total=f"{found.per_person:g}",
        seconds=f"{found.seconds:.1f}",
    )
    target = folder / "report.html"
    atomic_files.write(target, page.encode())
    return target


def _houses(found: Demo) -> str:
    rows = [*found.aligned.people.items(), ("all of them", found.aligned.common)]
    return "".join(f"<tr><td>{html.escape(n)}</td><td>{count:,}</td></tr>" for n, count in rows)


def _draw(found: Demo, path: Path) -> None:
    chart = figure(1, 1, width=6.0, height=2.4)
    axis = chart.axes[0][0]
    ways, values = list(found.auc), list(found.auc.values())
    colours = {"federated": "#1f4e79", "joined in the clear": "#777777"}
    places = np.arange(len(ways))
    axis.barh(places, values, color=[colours.get(w, "#cccccc") for w in ways])
    for place, value in zip(places, values, strict=True):
        axis.text(value, place, f" {value:.3f}", va="center", fontsize=9)
    axis.set_yticks(places, ways)
    axis.invert_yaxis()
    axis.set_xlim(0.5, 1.06)
    axis.set_xlabel("AUC on unseen rows")
    save(chart, path)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>OpBoost: a federation of three</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto;
       padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0; }}
th, td {{ text-align: right; padding: .4rem .6rem; border-bottom: 1px solid #8886; }}
th:first-child, td:first-child {{ text-align: left; }}
img {{ max-width: 100%; background: white; border-radius: .3rem; }}
.wide {{ overflow-x: auto; }}
</style></head><body>
<h1>One model, three houses</h1>
<p>A clinic holds the label and a few columns. Two laboratories hold other measurements. Each ran as
a process of its own, over mutual TLS, for {seconds} s in all.</p>
<h2>Whom they have in common</h2>
<table><tr><th>known to</th><th>people</th></tr>{houses}</table>
<p>Found by private set intersection in {aligning} s: no list of people left a house. The model is
trained on the {people:,} people that all know.</p>
<h2>What left each laboratory</h2>
<div class="wide"><table>
<tr><th>party</th><th>columns</th><th>rows</th><th>bytes</th><th>&epsilon; a cell</th>
<th>&epsilon; a person</th></tr>{rows}</table></div>
<p>All releases together: at most &epsilon; = {total} about one person.</p>
<h2>What it was worth</h2>
<table><tr><th>trained on</th><th>AUC on unseen rows</th></tr>{scores}</table>
<img alt="AUC of the three ways of training" src="data:image/png;base64,{image}">
</body></html>
"""
