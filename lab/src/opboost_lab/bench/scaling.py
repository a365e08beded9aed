"""``opboost bench scale``: time and memory by rows, columns, trees, parties and cells.

Two fresh processes measure a point, one for the feature parties and one for the label party, so
that each has its own peak memory.  Seconds are processor time, which other work on the machine
changes little.  Raw columns are generated in pieces and not timed.  Feature parties run one after
the other here, but at the same time in a real job.
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
    """The figures of a point: seconds by stage, bytes sent, and both sides' peak memory.

    ``start_mb`` is the memory of a process before it sees a row: the interpreter and libraries.
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
        """Seconds of all feature parties together."""
        return sum(self.released.values())

    @property
    def label_seconds(self) -> float:
        """Seconds of the label party."""
        return sum(self.trained.values())

    @property
    def seconds(self) -> float:
        """Seconds of all parties, one after the other."""
        return self.feature_seconds + self.label_seconds


def points(rows: Sequence[int] = ROWS, base: Point = BASE) -> list[tuple[str, Point]]:
    """Return the points to measure; each differs from ``base`` in one size."""
    found = [("rows", replace(base, rows=n)) for n in rows]
    found += [("columns", replace(base, columns=n)) for n in (5, 20)]
    found += [("trees", replace(base, trees=n)) for n in (5, 80)]
    found += [("parties", replace(base, parties=n)) for n in (2, 5)]
    found += [("cells", replace(base, cells=n)) for n in (100, 1000)]
    return found


def run(
    chosen: Sequence[tuple[str, Point]], repeats: int = 1, folder: Path | None = None
) -> Iterator[Measured]:
    """Yield each point's fastest try, as other work only adds time; ``folder`` sets the disk."""
    for axis, point in chosen:
        tries = [measure(point, axis, folder) for _ in range(repeats)]
        yield min(tries, key=lambda m: m.seconds)


def measure(point: Point, axis: str = "", folder: Path | None = None) -> Measured:
    """Measure both sides of a point, each in its own process."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        sent = played("release", point, Path(place))
        made = played("train", point, Path(place))
    start = max(sent["start_mb"], made["start_mb"])
    seconds, peaks = (sent["seconds"], made["seconds"]), (sent["peak_mb"], made["peak_mb"])
    return Measured(axis, point, *seconds, sent["bytes"], *peaks, start)


def played(
    role: str, point: Point, folder: Path, *, module: str = "opboost_lab.bench.scaling_point"
) -> dict[str, Any]:
    """Run a part of a job in its own process, and return its figures."""
    about, what = json.dumps(asdict(point)), f"A point of {point.rows:,} × {point.columns}"
    found: dict[str, Any] = child_answer("-m", module, role, about, str(folder), what=what)
    return found


def growth(
    found: Sequence[Measured], figure: Callable[[Measured], float] = lambda m: m.seconds
) -> float:
    """Return the exponent e in ``figure ~ (rows × columns) ** e`` over points that vary these.

    >>> made = [
    ...     Measured("rows", Point(n, 2), {"a": n * 2e-9}, {}, 0, 0, 0, 0) for n in (10, 100, 1000)
    ... ]
    >>> round(growth(made), 6)
    1.0
    """
    used = [m for m in found if m.axis in ("rows", "columns")]
    sizes = np.log([m.point.values for m in used])
    return float(np.polyfit(sizes, np.log([figure(m) for m in used]), 1)[0])
