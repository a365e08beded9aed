"""``opboost bench scale``: time and memory against rows, columns, trees, parties and cells.

Every point is two fresh processes, one that plays the feature parties and one that plays the label
party, so that each has its own peak of memory.  Seconds are of one processor, which other work on
the machine changes little.  Raw columns are made in pieces on the fly and not timed.  Feature
parties are played one after the other; they would run side by side.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opboost_lab.bench.child_answer import child_answer
from opboost_lab.bench.scaling_point import Point

BASE = Point(300_000, 10)
ROWS = (100_000, 300_000, 1_000_000)


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
        sent = played("release", point, Path(place))
        made = played("train", point, Path(place))
    start = max(sent["start_mb"], made["start_mb"])
    seconds, peaks = (sent["seconds"], made["seconds"]), (sent["peak_mb"], made["peak_mb"])
    return Measured(axis, point, *seconds, sent["bytes"], *peaks, start)


def played(
    role: str, point: Point, folder: Path, *, module: str = "opboost_lab.bench.scaling_point"
) -> dict[str, Any]:
    """What a part of a job took, in a process of its own."""
    about, what = json.dumps(asdict(point)), f"A point of {point.rows:,} × {point.columns}"
    found: dict[str, Any] = child_answer("-m", module, role, about, str(folder), what=what)
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
