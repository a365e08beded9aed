"""Try everything that a dependency could break, with only the installed package.

Each step uses libraries as the product does: training with every booster, saving and loading, a
ledger, a job with private set intersection, the command line.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import opboost as op

TOML = """
[budget]
record = 4.0

[columns.age]
bounds = [0, 100]

[columns.city]
categories = ["north", "south", "east"]

[table]
drop = ["paid"]

[align]
id = "customer"

[ledger]
folder = "ledger"
key = "ledger.key"
"""
ROWS = 400


def run(folder: Path, *words: str) -> str:
    """Run a command as a user would, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "opboost", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    if done.returncode:
        sys.exit(f"opboost {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def commands(folder: Path) -> None:
    """Describe, plan, certify, release twice, train, predict and write a card."""
    rng = np.random.default_rng(0)
    with (folder / "t.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["customer", "age", "city", "paid"])
        for k in range(ROWS):
            age, city = int(rng.integers(0, 101)), str(rng.choice(["north", "south", "east"]))
            out.writerow([f"C{k}", age, city, "yes" if age > 50 else "no"])
    (folder / "t.toml").write_text(TOML)
    (folder / "m.toml").write_text(TOML.split("[table]")[0] + '[table]\ndrop = ["customer"]\n')
    run(folder, "--version")
    run(folder, "--help")
    run(folder, "describe", "t.csv")
    run(folder, "plan", "-c", "t.toml")
    run(folder, "certify", "-c", "t.toml", "--format", "json")
    for to in ("a.csv", "b.csv"):
        run(folder, "desensitize", "t.csv", "-c", "t.toml", "-o", to, "--to", "bank")
    if (folder / "a.csv").read_bytes() != (folder / "b.csv").read_bytes():
        sys.exit("A repeated release differs from the first one.")
    run(folder, "desensitize", "t.csv", "-c", "t.toml", "-o", "c.parquet", "--to", "bank")
    run(folder, "ledger", "verify", "-c", "t.toml")
    run(folder, "train", "t.csv", "--label", "paid", "-c", "m.toml", "-o", "m.opboost")
    run(folder, "predict", "m.opboost", "t.csv", "-o", "p.csv")
    run(folder, "card", "m.opboost", "-c", "m.toml", "-o", "card.html")
    run(folder, "certs", "new", "bank", "--dir", "certs")


def estimators(folder: Path) -> None:
    """Train with every booster, save, load, and predict the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (ROWS, 2))
    y = X[:, 0] > 0.5
    for booster in ("xgboost", "lightgbm", "gbdt", "hist-gbdt"):
        model = op.OpBoostClassifier(
            bounds={0: (0, 1)}, budget=op.Budget.record(4.0), booster=booster, random_state=0
        ).fit(X, y)
        model.save(folder / f"{booster}.opboost")
        again = op.load(folder / f"{booster}.opboost")
        if not np.array_equal(again.predict(X), model.predict(X)):
            sys.exit(f"A model of {booster} predicts differently after it was saved and loaded.")


def job() -> None:
    """Match rows privately, release, and train over two parties."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    basket = rng.uniform(0, 500, ROWS)
    table = pa.table({"id": [f"p{k}" for k in range(ROWS)], "basket": basket})
    grid = op.Domain(1, 10)
    column = op.PrivateColumn(
        "basket", op.NumericMapping(grid, (0, 500)), op.ClampMap(grid, epsilon=0.64)
    )
    shop = op.FeatureParty(table, [column], ids="id", align="psi")
    ids = [f"p{k}" for k in range(50, ROWS)]
    bank = op.LabelParty(None, basket[50:] > 250, ids=ids, align="psi", held_out=0.2)
    model = bank.train([op.MemoryChannel(shop)])
    if model.held_out_score_ is None:
        sys.exit("A federated model has no score.")


def main() -> None:
    """Run all steps in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        estimators(folder)
        job()
        commands(folder)
    print("All steps passed.")


if __name__ == "__main__":
    main()
