"""Scoring over HTTP, with the client on the same machine: docs/howto/score.md."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import opboost as op
from claims.claim import Page

ROUNDS, REQUESTS, BATCHES, BATCH_ROWS = 5, 300, 10, 1000
HERE = Page("docs/howto/score.md, How fast")


def model(path: Path) -> pd.DataFrame:
    """Save a model of ten columns and 80 trees, and return its table."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{i}": rng.normal(size=2000) for i in range(9)})
    table["city"] = rng.choice(["north", "south", "east"], 2000)
    m = op.ClampMap(op.Domain(1, 10), 1.0)
    mechanism = dict.fromkeys([f"c{i}" for i in range(8)], m)
    clf = op.OpBoostClassifier(
        {**mechanism, "city": op.UnaryEncoding(["north", "south", "east"], 2.0)},
        bounds=dict.fromkeys(mechanism, (-4, 4)),
        denoise=False,
        random_state=0,
    )
    clf.fit(table, table["c0"] + table["c8"] > 0).save(path)
    return table


def seconds(line: http.client.HTTPConnection, body: bytes) -> float:
    """Return the time of one request, including reading its answer."""
    begun = time.perf_counter()
    line.request("POST", "/score", body)
    answer = line.getresponse()
    answer.read()
    taken = time.perf_counter() - begun
    if answer.status != 200:
        raise RuntimeError(f"The server answered with status {answer.status}.")
    return taken


@cache
def measured() -> dict[str, list[float]]:
    """Return each round's 99th percentile of single rows in ms, and rows per second in batches."""
    found: dict[str, list[float]] = {"p99": [], "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        table = model(Path(folder) / "m.opboost")
        rows = json.loads(table.to_json(orient="records"))
        command = [sys.executable, "-m", "opboost", "score", f"{folder}/m.opboost", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip().removeprefix("http://")
            line = http.client.HTTPConnection(address, timeout=60)
            one = [json.dumps({"rows": [row]}).encode() for row in rows[:REQUESTS]]
            batch = json.dumps({"rows": rows[:BATCH_ROWS]}).encode()
            seconds(line, batch)
            for _ in range(ROUNDS):
                taken = [seconds(line, body) for body in one]
                whole = sum(seconds(line, batch) for _ in range(BATCHES))
                found["p99"].append(1000 * float(np.quantile(taken, 0.99)))
                found["rows"].append(BATCHES * BATCH_ROWS / whole)
            line.close()
            server.terminate()
    return found


COVERS = ("opboost.scoring", "opboost.boosting", "opboost.estimators", "opboost.columns")
SINGLE = "scoring over HTTP: 99th percentile of single rows, ms, median of five rounds"
BATCH = "scoring over HTTP: rows per second in batches of 1,000, median of five rounds"
CLAIMS = [
    HERE.at_most(SINGLE, 5.0, lambda: measured()["p99"]),
    HERE.at_least(BATCH, 20_000, lambda: measured()["rows"]),
]
