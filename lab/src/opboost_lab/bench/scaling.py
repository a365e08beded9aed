"""``opboost bench scale``: time and memory against rows, columns, trees, parties and cells.

Every point is two fresh processes, one that plays the feature parties and one that plays the label
party, so that each has its own peak of memory.  Seconds are of one processor, which other work on
the machine changes little.  Raw columns are made in pieces on the fly and not timed.  Feature
parties are played one after the other; they would run side by side.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opboost.errors import OpBoostError
from opboost.runtime.child_processes import python_command
from opboost.theory import protocol_cost
from opboost_lab.bench.scaling_point import Point

BASE = Point(300_000, 10)
ROWS = (100_000, 300_000, 1_000_000)
LAYERS = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """What a point took: seconds by stage, bytes sent, and both sides' peak of memory.

    ``start_mb`` is what a process has before it sees a row: the interpreter and its libraries.
    """

    axis: str
    point: Point
    released: dict[str, float]
    trained: dict[str, float]
    bytes: int
    feature_mb: float
    label_mb: float
    start_mb: float

    @property
    def feature_seconds(self) -> float:
        """Of all feature parties together."""
        return sum(self.released.values())

    @property
    def label_seconds(self) -> float:
        """Of the label party."""
        return sum(self.trained.values())

    @property
    def seconds(self) -> float:
        """Of all, one after the other."""
        return self.feature_seconds + self.label_seconds


def points(rows: Sequence[int] = ROWS, base: Point = BASE) -> list[tuple[str, Point]]:
    """What is measured: one thing at a time is changed."""
    found = [("rows", replace(base, rows=n)) for n in rows]
    found += [("columns", replace(base, columns=n)) for n in (5, 20)]
    found += [("trees", replace(base, trees=n)) for n in (5, 80)]
    found += [("parties", replace(base, parties=n)) for n in (2, 5)]
    found += [("cells", replace(base, cells=n)) for n in (100, 1000)]
    return found


def run(
    chosen: Sequence[tuple[str, Point]], repeats: int = 1, folder: Path | None = None
) -> Iterator[Measured]:
    """Measure the points one after the other, and keep the fastest of several tries: what else a
    machine does only adds.  ``folder`` is on the disk that is to be used."""
    for axis, point in chosen:
        tries = [measure(point, axis, folder) for _ in range(repeats)]
        yield min(tries, key=lambda m: m.seconds)


def measure(point: Point, axis: str = "", folder: Path | None = None) -> Measured:
    """Both sides of a point, each in a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        out = [played(role, point, Path(place)) for role in ("release", "train")]
    return Measured(
        axis,
        point,
        out[0]["seconds"],
        out[1]["seconds"],
        out[0]["bytes"],
        out[0]["peak_mb"],
        out[1]["peak_mb"],
        max(o["start_mb"] for o in out),
    )


def played(
    role: str, point: Point, folder: Path, *, module: str = "opboost_lab.bench.scaling_point"
) -> dict[str, Any]:
    """What a part of a job took, in a process of its own."""
    done = subprocess.run(
        python_command("-m", module, role, json.dumps(asdict(point)), str(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise OpBoostError(f"A point of {point.rows:,} × {point.columns} failed: {last}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def growth(
    found: Sequence[Measured], figure: Callable[[Measured], float] = lambda m: m.seconds
) -> float:
    """The exponent e of ``figure ~ (rows × columns) ** e``, over the points that change these.

    >>> made = [
    ...     Measured("rows", Point(n, 2), {"a": n * 2e-9}, {}, 0, 0, 0, 0) for n in (10, 100, 1000)
    ... ]
    >>> round(growth(made), 6)
    1.0
    """
    used = [m for m in found if m.axis in ("rows", "columns")]
    sizes = np.log([m.point.values for m in used])
    return float(np.polyfit(sizes, np.log([figure(m) for m in used]), 1)[0])


@dataclass(frozen=True, slots=True)
class Beside:
    """A point beside the paper's theorems: O(Nr) draws for a feature party, O(NT + (2^L−1)T) steps
    for the label party, O(mrN log N) bits on the wire, and how many of ours each step took."""

    point: Point
    draws: int
    ns_a_draw: float
    steps: int
    ns_a_step: float
    paper_bits: float
    bits: float

    @classmethod
    def of(cls, m: Measured) -> Beside:
        """The theorems for a point."""
        p = m.point
        cost = protocol_cost(p.rows, p.columns, 1, trees=p.trees, layers=LAYERS, cells=p.cells)
        steps = cost.training_steps + cost.replaced_nodes
        return cls(
            p,
            cost.draws,
            m.feature_seconds / cost.draws * 1e9,
            steps,
            m.label_seconds / steps * 1e9,
            math.log2(p.rows),
            8 * m.bytes / p.values,
        )


@dataclass(frozen=True, slots=True)
class OnPaper:
    """A federation that nobody measured, from the constants of a point that was."""

    rows: int
    columns: int
    parties: int
    trees: int
    party_hours: float
    party_gb: float
    all_tb: float
    unpack_core_hours: float
    train_core_hours: float
    label_tb: float

    @classmethod
    def of(
        cls, m: Measured, *, rows: int = 10**10, columns: int = 10, parties: int = 1000,
        trees: int = 80,
    ) -> OnPaper:  # fmt: skip
        """``columns`` are those of each party; XGBoost's time is taken as one of (row, column,
        tree), and its memory as 40 bytes a row beside a byte a code."""
        mine, every = rows * columns, rows * columns * parties
        a_value = m.feature_seconds / m.point.values
        unpack = m.trained["unpack and rewrite"] / m.point.values
        step = m.trained["XGBoost"] / (m.point.values * m.point.trees)
        sent = m.bytes / m.point.values
        return cls(
            rows,
            columns,
            parties,
            trees,
            mine * a_value / 3600,
            mine * sent / 1e9,
            every * sent / 1e12,
            every * unpack / 3600,
            every * trees * step / 3600,
            (every + 40 * rows) / 1e12,
        )
