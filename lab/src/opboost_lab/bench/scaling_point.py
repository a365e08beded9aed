"""Measure one side of a point of ``opboost bench scale`` in its own process.

``python -m opboost_lab.bench.scaling_point ROLE POINT FOLDER`` runs the feature parties, which
write their streams into a folder, or the label party, which trains on them; it prints JSON.
"""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Problem, Trained
from opboost.boosting.xgboost_backend import XGBoost
from opboost.columns.private_column import PrivateColumn
from opboost.config.sections import Memory
from opboost.grid import Domain, NumericMapping
from opboost.mechanisms import ClampMap
from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.outgoing_columns import OutgoingColumns
from opboost.parties.label.label_party import LabelParty
from opboost.protocol import messages as msg
from opboost.protocol.entropy_coding import warm_up
from opboost.psi.table_keys import Keys
from opboost.training.denoised_rows import Choice
from opboost_lab.bench.process_usage import peak_mb

WELCOME = msg.Welcome("20260102T030405Z-01020304", bytes(32), b"")
BLOCK = 2**18
"""Rows that are generated and desensitised at a time."""


@dataclass(frozen=True, slots=True)
class Point:
    """The size of a job; ``columns`` are those of all feature parties together."""

    rows: int
    columns: int
    trees: int = 20
    parties: int = 1
    cells: int = 10
    memory: Memory = "external"
    rows_a_tree: int | None = None
    threads: int | None = 1
    """XGBoost's threads; one means processor time is measured, None (all cores) wall time."""
    denoise: Choice = False
    related: bool = False
    """Whether columns vary together, so that a denoiser fits many latent classes."""

    @property
    def values(self) -> int:
        """The number of released values."""
        return self.rows * self.columns

    def private(self, party: int) -> list[PrivateColumn]:
        """Return the columns of a party."""
        grid = Domain(1, self.cells)
        mapping, mechanism = NumericMapping(grid, (0.0, 1.0)), ClampMap(grid, 0.64)
        mine = range(party, self.columns, self.parties)
        return [PrivateColumn(f"x{j}", mapping, mechanism) for j in mine]

    def raw(self, start: int, column: int, size: int) -> FloatArray:
        """Return raw values of some rows, the same in every call."""
        alone = raw(start, column, size)
        return (alone + raw(start, self.columns + 1, size)) / 2 if self.related else alone

    def label(self) -> IntArray:
        """Return a label that depends on the first column and on noise, one byte per row."""
        y = np.empty(self.rows, dtype=np.uint8)
        for start in range(0, self.rows, BLOCK):
            size = min(BLOCK, self.rows - start)
            y[start : start + size] = self.raw(start, 0, size) + raw(start, self.columns, size) > 1
        return y


class Clock:
    """Seconds by stage: processor time, or wall time if XGBoost uses all cores."""

    def __init__(self, point: Point) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._now = time.perf_counter if point.threads is None else time.process_time

    @contextmanager
    def on(self, stage: str) -> Iterator[None]:
        """Time a block."""
        begun = self._now()
        yield
        self.seconds[stage] += self._now() - begun


class Timed:
    """XGBoost with a clock around its training."""

    def __init__(self, params: dict[str, Any], clock: Clock) -> None:
        self._booster, self._clock = XGBoost(params), clock

    def train(self, problem: Problem) -> Trained:
        """Train, and record the time."""
        with self._clock.on("XGBoost"):
            return self._booster.train(problem)


class InFolder:
    """A feature party that has left its whole release in a folder.

    It implements what this benchmark needs: no pilot, alignment, score or split query.
    """

    def __init__(self, name: str, folder: Path, point: Point, party: int) -> None:
        self.name, self._folder = name, folder
        about = tuple(msg.ColumnSchema.of(c, str(c.name), "raw") for c in point.private(party))
        ids = Keys.held(()).digest(WELCOME.nonce)
        self._schema = msg.Schema(name, WELCOME.job, point.rows, ids, "full", "raw", about, 0)

    def hello(self, record: float) -> msg.Hello:
        """Return its name; no job of this benchmark limits what is revealed about a person."""
        return msg.Hello(self.name, bytes(32))

    def check_terms(self, welcome: msg.Welcome) -> None:
        """Refuse nothing: the release was made for this benchmark."""

    def pilot_release(self, welcome: msg.Welcome) -> None:
        """Do nothing: all rows are released already."""

    def rows(self, welcome: msg.Welcome) -> msg.Rows:
        """Return the number of rows, without IDs."""
        return msg.Rows(self.name, WELCOME.job, self._schema.rows, self._schema.ids)

    def release(self, welcome: msg.Welcome) -> tuple[msg.Schema, list[Path]]:
        """Return the schema and the streams in the folder."""
        return self._schema, sorted(self._folder.glob("*.arrow"))


def release(point: Point, folder: Path) -> dict[str, Any]:
    """Run all feature parties, one after the other: desensitise, code and write."""
    clock = Clock(point)
    for party in range(point.parties):
        private = point.private(party)
        home = folder / f"party-{party}"
        home.mkdir(parents=True)
        outgoing = OutgoingColumns(home)
        for start in range(0, point.rows, BLOCK):
            size = min(BLOCK, point.rows - start)
            table = {c.name: point.raw(start, int(str(c.name)[1:]), size) for c in private}
            with clock.on("desensitise"):
                out = [c.release(c.prepare(pa.table(table), start))[0] for c in private]
            with clock.on("put aside"):
                outgoing.add(out)
        with clock.on("code and write"):
            outgoing.coded(withheld=[False] * len(private))
    sent = sum(f.stat().st_size for f in folder.rglob("*.arrow"))
    return {"seconds": dict(clock.seconds), "bytes": sent}


def train(point: Point, folder: Path) -> dict[str, Any]:
    """Run the label party: unpack the streams, train, and rewrite the model."""
    clock = Clock(point)
    params: dict[str, Any] = {"n_estimators": point.trees, "max_depth": 3, "eta": 0.1}
    if point.threads is not None:
        params["nthread"] = point.threads
    if point.rows_a_tree is not None:
        params["rows_a_tree"] = point.rows_a_tree
    bank = LabelParty(
        None,
        point.label(),
        booster=Timed(params, clock),
        denoise=point.denoise,
        random_state=0,
        ask="if-needed",
        memory=point.memory,
        held_out=0,
    )
    gone: list[Any] = [
        InFolder(name, folder / name, point, p)
        for p, name in enumerate(f"party-{p}" for p in range(point.parties))
    ]
    channels = [MemoryChannel(party) for party in gone]
    with clock.on("all"):
        bank.train(channels, welcome=WELCOME, state=folder / "state")
    rest = clock.seconds.pop("all") - clock.seconds["XGBoost"]
    return {"seconds": {"unpack and rewrite": rest, **clock.seconds}}


def raw(start: int, column: int, size: int) -> FloatArray:
    """Return numbers between 0 and 1 for some rows, the same in every call."""
    return np.random.default_rng([start, column]).random(size)


def main(role: str, point: str, folder: str) -> None:
    """Run a role and print its figures."""
    warm_up()
    part = {"release": release, "train": train}[role]
    small = Point(**json.loads(point) | {"rows": 2000})
    with tempfile.TemporaryDirectory() as place:  # compile and import before timing starts
        release(small, Path(place))
        train(small, Path(place))
    before = peak_mb(os.getpid())
    found = part(Point(**json.loads(point)), Path(folder))
    print(json.dumps(found | {"peak_mb": peak_mb(os.getpid()), "start_mb": before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
