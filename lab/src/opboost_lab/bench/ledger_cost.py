"""Measure what the ledger costs, against the same work without one (``make claims``)."""

import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from opboost.config.schema import plan_of
from opboost.ledger import Ledger
from opboost.parties.feature.feature_party import FeatureParty
from opboost.scale import Charge, desensitize
from opboost_lab.bench.scaling import played
from opboost_lab.bench.scaling_point import BLOCK, WELCOME, Point, raw

QUICK = Point(1_000_000, 20, threads=None)
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Remembered:
    """Seconds of one round, and the ledger's size on disk."""

    point: Point
    stages: float
    """A feature party's three stages (desensitise, put aside, code) without IDs and ledger."""
    first: float
    """A feature party with a Parquet file, IDs and a ledger, from the file to the coded columns."""
    second: float
    """The same people again, for another job."""
    bytes_per_cell: float
    parts: float
    """A release in parts by two processes, without a ledger."""
    charged: float
    """The same with charges."""


def run(point: Point = QUICK, folder: Path | None = None, *, in_parts: bool = True) -> Remembered:
    """Run one round, each figure in its own process, whose start is not timed."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        home = Path(place)
        stages = sum(played("release", point, home / "stages")["seconds"].values())
        shutil.rmtree(home / "stages", ignore_errors=True)
        joined = played("join", point, home / "joined", module=__name__)
        shutil.rmtree(home / "joined")
        parts = {"parts": nan, "charged": nan}
        if in_parts:
            parts = played("parts", point, home / "parts", module=__name__)
    return Remembered(point, stages, **joined, **parts)


def join(point: Point, folder: Path) -> dict[str, float]:
    """Time a feature party that releases twice; writing its table is not timed."""
    file, private = _table(point, folder), point.private(0)
    ledger = Ledger(folder / "ledger", folder / "ledger.key")
    party = FeatureParty(file, private, ids="id", ledger=ledger, state=folder / "state")
    seconds = []
    for last in "12":
        welcome = replace(WELCOME, job=WELCOME.job[:-1] + last)
        begun = time.perf_counter()
        party.release(welcome)
        seconds.append(time.perf_counter() - begun)
    size = sum(f.stat().st_size for f in (folder / "ledger").rglob("*") if f.is_file())
    return {"first": seconds[0], "second": seconds[1], "bytes_per_cell": size / point.values}


def parts(point: Point, folder: Path) -> dict[str, float]:
    """Time a release in parts with and without charges, after a small one that compiles."""
    file, plan = _table(point, folder), replace(plan_of(point.private(0)), public=("id",))
    small = _table(replace(point, rows=1000), folder / "small")
    seconds = {}
    for name, charged in (("parts", False), ("charged", True)):
        ledger = Ledger(folder / name / "ledger", folder / f"{name}.key") if charged else None
        desensitize(small, plan, folder / f"{name}-small", ids="id", workers=WORKERS)
        charge = Charge(ledger, "bank") if ledger else None
        begun = time.perf_counter()
        desensitize(file, plan, folder / f"{name}-out", ids="id", workers=WORKERS, charge=charge)
        seconds[name] = time.perf_counter() - begun
    return seconds


def _table(point: Point, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = [str(c.name) for c in point.private(0)]
    fields = pa.schema([("id", pa.int64()), *((n, pa.float64()) for n in names)])
    with pa.parquet.ParquetWriter(folder / "table.parquet", fields) as out:
        for start in range(0, point.rows, BLOCK):
            size = min(BLOCK, point.rows - start)
            columns = [raw(start, j, size) for j in range(len(names))]
            out.write_table(pa.table([np.arange(start, start + size), *columns], schema=fields))
    return folder / "table.parquet"


if __name__ == "__main__":
    role, about, where = sys.argv[1:]
    made = {"join": join, "parts": parts}[role](Point(**json.loads(about)), Path(where))
    print(json.dumps(made))
