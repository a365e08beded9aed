"""``opboost bench federation``: a whole networked job, and plain training on the joined table.

Every party is a process; a proxy on loopback counts each feature party's bytes, including TLS.  The
tables are in the same order, as for the plain program; docs/alignment.md has the cost of aligning.
"""

import json
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn.metrics import roc_auc_score

from opboost._typing import FloatArray, IntArray
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from opboost.estimators import load
from opboost.runtime.child_processes import python_command
from opboost_lab.counting_proxy import CountingProxy

TREES = {"num_boost_round": 80, "max_depth": 3, "eta": 0.1}


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a job; ``own`` columns are the label party's, ``theirs`` each feature party's."""

    rows: int
    own: int
    theirs: int
    parties: int


SIZES = (Size(30_000, 10, 4, 1), Size(1_000_000, 0, 5, 4))


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds from the start of the processes to the model, and bytes by party.

    ``plain`` is the time of a process that reads the joined table, trains the same booster and
    saves it; ``training`` is the part of this time that is spent on training.
    """

    size: Size
    seconds: float
    plain: float
    training: float
    up: dict[str, int]
    down: dict[str, int]
    auc: float
    plain_auc: float

    @property
    def more(self) -> float:
        """How many seconds longer than the plain program."""
        return self.seconds - self.plain


def run(size: Size, epsilon: float = 0.64) -> Run:
    """Run plain training, then the whole job in fresh processes."""
    X, y, X_test, y_test = data(size)
    names = [f"x{j}" for j in range(X.shape[1])]
    ids = pa.array([f"p{i:08d}" for i in range(size.rows)])
    train = pa.table(dict(zip(names, X.T, strict=True)))
    bounds = dict.fromkeys(names, (-4.0, 4.0))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tables = {}
        for p in range(size.parties):
            first = size.own + p * size.theirs
            theirs = names[first : first + size.theirs]
            tables[f"party-{p + 1}"] = train.select(theirs).append_column("id", ids)
        own = train.select(names[: size.own]).append_column("id", ids)
        federation = write_federation(
            Path(folder),
            own.append_column("y", pa.array(y)),
            "y",
            tables,
            bounds,
            epsilon=epsilon,
            booster=TREES,
            align="given",
        )
        relays: dict[str, CountingProxy] = {}

        def between(name: str, address: str) -> str:
            relays[name] = stack.enter_context(CountingProxy(address))
            return relays[name].address

        plain, training, plain_auc = plain_program(Path(folder), train, y, X_test, y_test)
        outcome = run_federation(federation, between=between)
        model = load(Path(folder) / LABEL_PARTY / "model.opboost")
    test = pa.table(dict(zip(names, X_test.T, strict=True)))
    chances = model.predict_proba(test.select(list(model.feature_names_in_)))[:, 1]
    return Run(
        size,
        outcome.seconds,
        plain,
        training,
        {name: relay.up for name, relay in relays.items()},
        {name: relay.down for name, relay in relays.items()},
        float(roc_auc_score(y_test, chances)),
        plain_auc,
    )


def data(size: Size) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return rows in which a booster gains from every party's columns, and some test rows."""
    columns = size.own + size.theirs * size.parties
    rng = np.random.default_rng(0)
    rows = size.rows + min(size.rows // 5, 50_000)
    X = rng.normal(size=(rows, columns))
    score = X @ rng.normal(size=columns) / np.sqrt(columns) + 0.5 * X[:, 0] * X[:, -1]
    y = (score + 0.8 * rng.normal(size=rows) > 0).astype(np.int64)
    return X[: size.rows], y[: size.rows], X[size.rows :], y[size.rows :]


_PROGRAM = """
import json, sys, time
import pyarrow.parquet, xgboost
table = pyarrow.parquet.read_table(sys.argv[1])
X, y = table.drop_columns(["y"]), table.column("y").to_numpy()
params = json.loads(sys.argv[3])
trees = params.pop("num_boost_round")
started = time.perf_counter()
booster = xgboost.train(params, xgboost.QuantileDMatrix(X, y), trees)
print(time.perf_counter() - started)
booster.save_model(sys.argv[2])
"""


def plain_program(
    folder: Path, train: pa.Table, y: IntArray, X_test: FloatArray, y_test: IntArray
) -> tuple[float, float, float]:
    """Run the plain program; return its total seconds, its seconds of training, and its AUC."""
    import xgboost as xgb

    joined, model = folder / "joined.parquet", folder / "plain.json"
    pa.parquet.write_table(train.append_column("y", pa.array(y)), joined)
    params = json.dumps({**TREES, "objective": "binary:logistic"})
    whole, alone = [], []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run(
            python_command("-c", _PROGRAM, str(joined), str(model), params),
            capture_output=True,
            text=True,
            check=True,
        )
        whole.append(time.perf_counter() - started)
        alone.append(float(done.stdout))
    booster = xgb.Booster(model_file=str(model))
    chances = booster.inplace_predict(X_test, validate_features=False)
    return min(whole), min(alone), float(roc_auc_score(y_test, chances))
