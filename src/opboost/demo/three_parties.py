"""The demo: three organisations, three processes, one model.

By default, a bank, a shop and a telephone company hold data about made-up people, and each feature
party states the most that it reveals about one person.  With ``breast_cancer``, a clinic and two
laboratories hold the columns of scikit-learn's small real table, and use one mechanism with a given
ε per cell.  Each organisation knows most of the people, in an order of its own; they find the
common ones by private set intersection.  The demo compares the score on unseen rows with that of
plain training on the joined table, which none of them has, and on the label party's own columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from opboost._typing import FloatArray
from opboost.budgets.record_plan import PlannedColumn
from opboost.config.columns_file import parse
from opboost.demo import made_up_people
from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
    write_declared_federation,
)
from opboost.estimators import OpBoostClassifier, OpBoostRegressor, load
from opboost.mechanisms import registry
from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.promises.composition import plus

OWN = ("smoothness error", "texture error", "symmetry error", "mean symmetry")
LABS: dict[str, dict[str, tuple[float, float]]] = {
    "lab-north": {"mean radius": (5, 30), "mean texture": (5, 40), "mean concavity": (0, 0.5)},
    "lab-south": {"worst area": (100, 4500), "worst smoothness": (0.05, 0.25)},
}
"""Declared, public bounds of the columns that the laboratories hold."""

BOOSTER = {"num_boost_round": 80, "max_depth": 3, "eta": 0.1, "nthread": 1}


@dataclass(frozen=True, slots=True)
class Scene:
    """The organisations of a demo: their tables, and the TOML of the feature parties."""

    about: str
    label_party: str
    label: str
    id: str
    own: tuple[str, ...]
    label_table: pa.Table
    tables: Mapping[str, pa.Table]
    declared: Mapping[str, str]
    common: pa.Table
    """The people whom all organisations know, with all columns."""
    new: pa.Table


@dataclass(frozen=True, slots=True)
class Sent:
    """What one feature party sent, and its plan."""

    party: str
    columns: int
    rows: int
    bytes: int
    per_person: float
    plan: tuple[PlannedColumn, ...]


@dataclass(frozen=True, slots=True)
class Alignment:
    """How many people each organisation knows, and how many all of them know."""

    people: dict[str, int]
    common: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's figures; ``per_person`` is a person's total over all feature parties."""

    about: str
    rows: int
    aligned: Alignment
    sent: tuple[Sent, ...]
    per_person: float
    seconds: float
    auc: dict[str, float]
    score_line: str = ""
    """The line that the label party printed about held-out rows."""
    redrawn: tuple[float, ...] = ()
    """The AUC of federated models with noise drawn again for the same people."""
    made: str = ""
    version: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return asdict(self)


def made_up(record: float) -> Scene:
    """Return the default scene; both feature parties share the total ``record`` evenly."""
    held = made_up_people.organisations()
    shares = len(made_up_people.DECLARED)
    return Scene(
        "A bank knows who paid a loan back, and a few columns. A shop and a telephone company hold "
        "others. The people are made up.",
        "bank",
        made_up_people.LABEL,
        made_up_people.ID,
        made_up_people.OWN,
        held.tables["bank"],
        {name: held.tables[name] for name in made_up_people.DECLARED},
        {
            name: made_up_people.declaration(name, record / shares)
            for name in made_up_people.DECLARED
        },
        held.common,
        held.new,
    )


def breast_cancer(epsilon: float, cells: int) -> Scene:
    """Return the small real table, with Clamp-map at ``epsilon`` per cell for every column."""
    data = load_breast_cancer()
    place = {str(name): j for j, name in enumerate(data.feature_names)}
    names = [*OWN, *(c for lab in LABS.values() for c in lab)]
    columns = {name: data.data[:, place[name]] for name in names}
    ids = [f"person-{i:04d}" for i in range(len(data.data))]
    table = pa.table({"id": ids, **columns, "ill": data.target})
    train, test = train_test_split(np.arange(len(table)), random_state=0)
    rng = np.random.default_rng(0)
    known = {name: rng.permutation(train)[: len(train) * 24 // 25] for name in ("clinic", *LABS)}
    head = (
        f"[grid]\nlower = 1\nupper = {cells}\n\n"
        f'[mechanism]\nkind = "clamp-map"\nepsilon = {epsilon}\n\n'
    )
    return Scene(
        "A clinic knows who is ill, and a few columns. Two laboratories hold other measurements.",
        "clinic",
        "ill",
        "id",
        OWN,
        table.select(["id", *OWN, "ill"]).take(known["clinic"]),
        {name: table.select(["id", *held]).take(known[name]) for name, held in LABS.items()},
        {
            name: head
            + "".join(f'[columns."{c}"]\nbounds = [{a}, {b}]\n' for c, (a, b) in held.items())
            for name, held in LABS.items()
        },
        table.take(reduce(np.intersect1d, known.values())),
        table.take(test),
    )


def demo(folder: Path, scene: Scene, draws: int = 1) -> Demo:
    """Run the federation in ``folder`` and score its model.

    Noise is drawn ``draws`` times in total, to see how the score varies.
    """
    federation = write_declared_federation(
        folder,
        scene.label_table,
        scene.label,
        scene.tables,
        scene.declared,
        id=scene.id,
        booster=BOOSTER,
    )
    outcome = run_federation(federation)
    auc = {
        "federated": _auc(scene, load(folder / LABEL_PARTY / "model.opboost")),
        "joined in the clear": _plain(scene, [*scene.own, *_private(scene)]),
        "own columns alone": _plain(scene, list(scene.own)),
    }
    sent = tuple(
        _sent(name, outcome.manifests[name], text) for name, text in scene.declared.items()
    )
    manifest = outcome.manifests[LABEL_PARTY]
    step = manifest["align"]
    people = {scene.label_party: step["own"], **step["theirs"]}
    aligned = Alignment(people, step["common"], step["seconds"])
    total = plus(*(s.per_person for s in sent))
    return Demo(
        scene.about,
        manifest["rows"],
        aligned,
        sent,
        total,
        outcome.seconds,
        auc,
        manifest.get("score_line", ""),
        tuple(_redrawn(scene) for _ in range(draws - 1)),
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version("opboost"),
    )


def _auc(scene: Scene, model: OpBoostClassifier | OpBoostRegressor) -> float:
    """Return the AUC of a model on people who are in no party's table."""
    test = scene.new.select([str(name) for name in model.feature_names_in_])
    chances = cast(OpBoostClassifier, model).predict_proba(test)[:, 1]
    return float(roc_auc_score(scene.new[scene.label].to_numpy(), chances))


def _redrawn(scene: Scene) -> float:
    """Draw noise again for the common people, in this process, and score the resulting model."""
    parties = [
        FeatureParty(
            scene.common.select([c for c in table.column_names if c != scene.id]),
            parse(scene.declared[name], f"{name}.toml"),
            name=name,
        )
        for name, table in scene.tables.items()
    ]
    own, y = scene.common.select(list(scene.own)), scene.common[scene.label].to_numpy()
    label_party = LabelParty(own, y, booster_params=dict(BOOSTER), held_out=0)
    return _auc(scene, label_party.train([MemoryChannel(party) for party in parties]))


def _private(scene: Scene) -> list[str]:
    return [c for table in scene.tables.values() for c in table.column_names if c != scene.id]


def _sent(name: str, manifest: Mapping[str, Any], declared: str) -> Sent:
    rows, columns, total = manifest["rows"], manifest["columns"], manifest["total"]
    return Sent(name, columns, rows, manifest["bytes"], total, _plan(declared, name))


def _plan(declared: str, name: str) -> tuple[PlannedColumn, ...]:
    """Return the plan of a record budget; without one, all columns are sent for every person."""
    plan = parse(declared, f"{name}.toml")
    if plan.record is not None:
        return plan.record.lines
    return tuple(
        PlannedColumn(
            column.name,
            registry.title_of(column.mechanism),
            column.mapping.domain.size if column.mapping else 0,
            None,
            column.guarantee().total,
            (1000, 1000),
        )
        for column in plan.private
    )


def _plain(scene: Scene, names: list[str]) -> float:
    """Return the AUC of plain training on these columns of the common people."""
    params = {k: v for k, v in BOOSTER.items() if k != "num_boost_round"}
    booster = xgb.train(
        {**params, "objective": "binary:logistic"},
        xgb.DMatrix(_numbers(scene.common, names), scene.common[scene.label].to_numpy()),
        int(BOOSTER["num_boost_round"]),
    )
    found = booster.predict(xgb.DMatrix(_numbers(scene.new, names)))
    return float(roc_auc_score(scene.new[scene.label].to_numpy(), found))


def _numbers(table: pa.Table, names: list[str]) -> FloatArray:
    """Return the columns as floats, and categories as their alphabetical rank."""
    made = []
    for name in names:
        column = table[name]
        if pa.types.is_string(column.type):
            words = column.to_numpy()
            column = pa.array(np.unique(words, return_inverse=True)[1])
        made.append(np.asarray(column.to_numpy(), dtype=np.float64))
    return np.column_stack(made)
