"""Speed and memory, in one run on one core, with ratios of medians: docs/speed.md."""

import csv
import random
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

import opboost as op
from claims.claim import NOISE, Page
from opboost_lab.bench.child_answer import child_answer
from opboost_lab.bench.sampling import Case, Result, cases, run

REPEATS = 7


@lru_cache(maxsize=1)
def small_grids() -> list[Result]:
    """Measure grids of 10 and 100 cells, including peers."""
    return list(run(cases(grids=(10, 100)), REPEATS))


@lru_cache(maxsize=1)
def huge_grid() -> list[Result]:
    """Measure a grid of 2^40 cells, for which there is no table."""
    return list(run([Case(e, 2**40, 10**6) for e in (0.08, 1.28)], REPEATS, peers=False))


def slowest(ratio: Callable[[Result, float], float]) -> list[float]:
    """Return the least favourable ratio over all mechanisms, for each case."""
    return [min(ratio(r, t.median) for t in r.ours) for r in small_grids()]


def over_opendp() -> float:
    for result in small_grids():
        if result.peer("opendp").problem:
            raise RuntimeError(result.peer("opendp").problem)
    return min(slowest(lambda r, t: r.peer("opendp").median / t))


def huge_rate(name: str) -> list[float]:
    return [t.per_second / 1e6 for r in huge_grid() for t in r.ours if t.name == name]


def first_call() -> list[float]:
    """Return the seconds of import and first draw in fresh processes, with compiled code cached."""
    script = (
        "import time; start = time.perf_counter()\n"
        "import opboost as op, numpy as np\n"
        "op.ClampMap(op.Domain(1, 10), 0.64).sample(np.ones(1000, np.uint8))\n"
        "print(time.perf_counter() - start)"
    )
    found = [child_answer("-c", script, what="A first call") for _ in range(6)]
    return found[1:]  # the first may compile


def kendall_seconds() -> list[float]:
    generator = np.random.default_rng(0)
    r = generator.normal(size=10**6)
    s = np.round(r + generator.normal(size=10**6), 1)
    op.weighted_kendall(r[:10], s[:10])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        op.weighted_kendall(r, s)
        times.append(time.perf_counter() - start)
    return times


CONFIG = """
[mechanism]
epsilon = 0.64
[columns.age]
bounds = [17, 90]
[columns.pay]
bounds = [10, 100000]
scale = "log"
[columns.city]
categories = ["north", "south", "east"]
[table]
drop = ["id"]
"""


def peak_megabytes(rows: int) -> float:
    """Return the peak resident memory of ``opboost desensitize`` on a CSV file of ``rows`` rows."""
    script = (
        # Not ru_maxrss, which survives an exec and may show the parent's peak.
        "import re, pathlib\n"
        "from opboost.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 1024)"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "b.toml").write_text(CONFIG)
        _write(folder / "in.csv", rows)
        files = ("-c", f"{folder}/b.toml", "-o", f"{folder}/out.csv")
        verb = ("desensitize", f"{folder}/in.csv", *files)
        return float(child_answer("-c", script, *verb, what="A large release"))


def _write(path: Path, rows: int) -> None:
    generator = random.Random(1)
    block = [
        [10**15 + i, generator.randint(15, 95), round(generator.lognormvariate(8, 1), 2), c]
        for i, c in enumerate(generator.choices(["north", "south", "east"], k=100_000))
    ]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "pay", "city"])
        for _ in range(rows // len(block)):
            writer.writerows(block)


HERE = Page("docs/speed.md, Sampling and training")
COVERS = (*NOISE, "opboost.columns", "opboost.config", "opboost.files", "opboost.cli")
CLAIMS = [
    HERE.at_least(
        "peers that could be timed", 3, lambda: sum(not p.problem for p in small_grids()[0].peers)
    ),
    HERE.at_least(
        "× numpy, worst mechanism and case, 10 and 100 cells",
        3,
        lambda: min(slowest(lambda r, t: r.numpy.median / t)),
    ),
    HERE.at_least("× OpenDP, worst mechanism and case", 500, over_opendp),
    HERE.at_most(
        "time over that of the keystream, worst case",
        8,
        lambda: max(t.median / r.aes.median for r in small_grids() for t in r.ours),
    ),
    *(
        HERE.at_least(f"{name}, 2^40 cells, M/s", 20, partial(huge_rate, name))
        for name in ("Clamp-map", "Global-map", "Local-map")
    ),
    HERE.at_most("first call in a fresh process, s", 1, first_call),
    HERE.at_most("weighted Kendall of a million values, s", 2, kendall_seconds),
    HERE.at_most(
        "peak memory on a CSV file of 10 million rows, MB", 500, partial(peak_megabytes, 10_000_000)
    ),
]
