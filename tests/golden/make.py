"""Write the files of this version that later versions must open or refuse: ``make.py FOLDER``.

A version's artefacts are made once, before the next version changes anything, and never change
(README.md).  The keys and certificates among them protect made-up people only.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import opboost as op
from opboost.columns.row_ids import id_array
from opboost.config import load
from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
    started_process,
    wait_for_address,
    write_federation,
)
from opboost.errors import DataError
from opboost.ledger import Drawing, Ledger
from opboost.transport.shared.development_certificates import new_kit

PEOPLE = 120
CERTIFICATE_DAYS = 3600

SHOP = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64

[columns.age]
bounds = [0, 100]

[columns.pay]
bounds = [0, 9000]
missing = "flag"
eps_missing = 1.0
missing_constant = 100

[columns.city]
categories = ["north", "south", "east"]

[table]
public = ["id"]

[budget]
split = "sampled"
columns_per_row = 2

[align]
id = "id"

[ledger]
folder = "ledger"
key = "keys/ledger.key"
"""


def people(changed: bool = False) -> pd.DataFrame:
    """Return made-up people; version 0.1.0 takes two spellings of one ID for two people."""
    rng = np.random.default_rng(1)
    ids = [f"Ann{i:03d}" for i in range(PEOPLE - 1)] + ["ann000"]
    pay = np.round(rng.uniform(0, 9000, PEOPLE))
    pay[::7] = np.nan
    age = np.round(rng.uniform(0, 100, PEOPLE))
    if changed:
        age[::2] = 100 - age[::2]
    return pd.DataFrame(
        {"id": ids, "age": age, "pay": pay, "city": rng.choice(["north", "south", "east"], PEOPLE)}
    )


def opboost(*arguments: object, where: Path) -> str:
    """Run a command as a user would."""
    command = [sys.executable, "-m", "opboost", *map(str, arguments)]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_ledger(home: Path) -> None:
    """Write a ledger with two recipients, changed values, and a stored release that it records."""
    home.mkdir(parents=True)
    (home / "shop.toml").write_text(SHOP)
    people().to_csv(home / "people.csv", index=False)
    people(changed=True).to_csv(home / "changed.csv", index=False)
    opboost(
        "desensitize",
        "people.csv",
        "-c",
        "shop.toml",
        "-o",
        "first.csv",
        "--to",
        "bank",
        where=home,
    )
    opboost(
        "desensitize",
        "changed.csv",
        "-c",
        "shop.toml",
        "-o",
        "second.csv",
        "--to",
        "insurer",
        where=home,
    )
    stored = ("--engine", "local", "--workers", 1)
    opboost(
        "desensitize",
        "people.csv",
        "-c",
        "shop.toml",
        "-o",
        "stored",
        *stored,
        "--to",
        "bank",
        where=home,
    )
    leave_open(home)
    (home / "spent.json").write_text(
        opboost("ledger", "show", "-c", "shop.toml", "--format", "json", where=home)
    )


def leave_open(home: Path) -> None:
    """Leave a refused reservation, and one that was killed after its first rows."""
    plan, table = load(home / "shop.toml"), pa.Table.from_pandas(people(), preserve_index=False)
    prepared, ids = [c.prepare(table) for c in plan.private], id_array(table, ["id"]).to_pylist()
    with Ledger(home / "ledger", home / "keys" / "ledger.key") as ledger:
        for end in (DataError("refused"), KeyboardInterrupt()):
            about = {
                "job": f"ended by {type(end).__name__}",
                "recipient": "auditor",
                "people": "id",
            }
            with (
                suppress(type(end)),
                Drawing(ledger, plan.private, plan.attributes, budget=plan.budget, **about) as draw,
            ):
                draw.draw([b"new " + i for i in ids], prepared)
                raise end


def make_estimators(home: Path) -> None:
    """Save one estimator per booster, some rows, and what each estimator predicts for them."""
    home.mkdir(parents=True)
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"age": rng.uniform(0, 100, 400), "own": rng.normal(size=400)})
    label = (rows["age"] / 50 + rows["own"] > 1).astype(int)
    rows[:40].to_csv(home / "rows.csv", index=False)
    mechanism = op.ClampMap(op.Domain(1, 10), epsilon=1.28)
    for booster, rounds in (
        ("xgboost", "num_boost_round"),
        ("lightgbm", "num_boost_round"),
        ("gbdt", "n_estimators"),
    ):
        model = op.OpBoostClassifier(
            mechanism, bounds={"age": (0, 100)}, booster=booster, booster_params={rounds: 5}
        )
        model.fit(rows, label)
        model.save(home / f"{booster}.opboost")
        expected = model.predict_proba(pd.read_csv(home / "rows.csv"))[:, 1].tolist()
        (home / f"{booster}.json").write_text(json.dumps(expected))


def scene(folder: Path, align: str):
    """Write a bank, a shop and a telco with made-up rows, and certificates that last."""
    rng = np.random.default_rng(3)
    ids = pa.array([f"person-{i:03d}" for i in range(PEOPLE)])

    def column() -> pa.Array:
        return pa.array(rng.uniform(0, 100, PEOPLE))

    own = pa.table({"id": ids, "own": column(), "ill": pa.array(rng.integers(0, 2, PEOPLE))})
    tables = {
        "shop": pa.table({"id": ids, "basket": column()}),
        "telco": pa.table({"id": ids, "calls": column()}),
    }
    bounds = {"basket": (0, 100), "calls": (0, 100)}
    booster = {"num_boost_round": 3, "nthread": 1}
    made = write_federation(
        folder, own, "ill", tables, bounds, epsilon=2.0, booster=booster, align=align
    )
    shutil.rmtree(folder / "certs")
    for party in (LABEL_PARTY, *tables):
        new_kit(party, folder / "certs", days=CERTIFICATE_DAYS)
    return made


def make_stopped_job(folder: Path, align: str, reached: str) -> None:
    """Write the folders of a job that was killed at the shop's ``reached``; telco never joined."""
    made = scene(folder, align)
    serving = started_process(made.command(LABEL_PARTY))
    joining = started_process([*made.command("shop"), "--connect", wait_for_address(serving)])
    end = time.monotonic() + 60
    while not list(folder.glob(f"{LABEL_PARTY}/state/*/parties/shop/{reached}")):
        assert joining.poll() is None, "the shop ended too early"
        assert time.monotonic() < end, "the shop did not get this far in time"
        time.sleep(0.02)
    for process in (joining, serving):
        process.kill()
        process.communicate()


def make_finished_job(folder: Path) -> None:
    """Write the folders of a finished job, its stock model, and what the model predicts."""
    made = scene(folder, "given")
    run_federation(made)
    model = op.load(folder / LABEL_PARTY / "model.opboost")
    model.save_model(folder / "model.json", units="grid")
    columns = {"own": LABEL_PARTY, "basket": "shop", "calls": "telco"}
    rows = {c: pd.read_parquet(folder / p / "table.parquet")[c] for c, p in columns.items()}
    pd.DataFrame(rows)[model.feature_names_in_].to_csv(folder / "rows.csv", index=False)
    expected = model.predict_proba(pd.read_csv(folder / "rows.csv"))[:, 1].tolist()
    (folder / "expected.json").write_text(json.dumps(expected))


def make_bundles(folder: Path) -> None:
    """Write the bundles of the first three steps, and the folders of their parties."""
    made = scene(folder, "psi")

    def bundle(party: str, verb: str, *given: str) -> dict[str, str]:
        more = ("--to", folder / "out" / party, "--format", "json")
        said = opboost("bundle", verb, "-c", made.config(party), *given, *more, where=folder)
        return {w["for"]: w["path"] for w in json.loads(said)["written"]}

    sent = bundle(LABEL_PARTY, "align")
    met = [bundle(party, "align", sent[party])[LABEL_PARTY] for party in made.parties]
    sent = bundle(LABEL_PARTY, "align", *met)
    bundle("shop", "export", sent["shop"])


def main(folder: Path) -> None:
    """Write all artefacts."""
    make_ledger(folder / "ledger")
    make_estimators(folder / "estimators")
    make_stopped_job(folder / "job-aligning", "psi", "points")
    make_stopped_job(folder / "job-sent", "given", "sent")
    make_finished_job(folder / "job-finished")
    make_bundles(folder / "bundles")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
