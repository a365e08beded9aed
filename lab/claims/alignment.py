"""Private set intersection between two parties as processes, over the network."""

import tempfile
import time
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import opboost as op
from claims.claim import Page
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from opboost.protocol.messages import Welcome
from opboost.psi.blinding import Secret, at_once
from opboost.psi.curve_points import PIECE_POINTS, POINT_BYTES
from opboost_lab.bench.process_usage import peaks_of
from opboost_lab.counting_proxy import CountingProxy

TREES = {"num_boost_round": 1, "max_depth": 1}
SAMPLE = 20_000
"""Scalar multiplications timed before each run, and again after it."""


class Run(NamedTuple):
    """The cost of an alignment, and of 4 scalar multiplications per ID, timed before and after."""

    seconds: float
    """From the first blinded ID to the common rows."""
    bytes: float
    """In both directions, including TLS."""
    wrong: float
    """The number of rows too many or too few."""
    ratio: float
    """Seconds, divided by those of the scalar multiplications on all cores."""
    peak_mb: float
    """Memory of the larger side: the sum of its processes' peaks."""


def multiplications() -> tuple[float, float]:
    """Return the seconds and processor seconds per scalar multiplication, one thread per core."""
    secret = Secret.fresh()
    points = (9).to_bytes(POINT_BYTES, "little") * (SAMPLE // 20)
    start, processor = time.perf_counter(), time.process_time()
    for _ in at_once(lambda _: secret.raised(points, checked=True), range(20)):
        pass
    seconds, spent = time.perf_counter() - start, time.process_time() - processor
    return seconds / SAMPLE, spent / SAMPLE


@lru_cache(maxsize=8)
def run(rows: int, repeat: int = 0) -> Run:
    """Align two parties with ``rows`` IDs each, 90 % of them common, in different orders."""
    rng = np.random.default_rng(repeat)
    ours = rng.permutation(rows)
    theirs = rng.permutation(np.arange(rows // 10, rows + rows // 10))
    label = pa.table({"id": ours, "y": (ours % 2).astype(np.int64)})
    table = pa.table({"x": theirs % 10, "id": theirs})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        federation = write_federation(
            Path(folder),
            label,
            "y",
            {"shop": table},
            {"x": (0, 10)},
            epsilon=1.0,
            booster=TREES,
            limits={"most_rows": 2 * rows},
        )
        del ours, theirs, label, table
        relays: list[CountingProxy] = []

        def between(name: str, address: str) -> str:
            relays.append(stack.enter_context(CountingProxy(address)))
            return relays[-1].address

        around = [multiplications()]
        with peaks_of(folder) as peaks:
            outcome = run_federation(federation, between=between, timeout=3600.0)
        around.append(multiplications())
    step = outcome.manifests[LABEL_PARTY]["align"]
    wrong = abs(step["common"] - (rows - rows // 10))
    alone = 4 * rows * sum(seconds for seconds, _ in around) / 2
    moved = relays[0].up + relays[0].down
    sides = [0.0, 0.0]
    for command, peak in peaks.values():
        sides["\0join\0" in command] += peak
    if min(sides) == 0:
        raise RuntimeError("No process of one side was seen, so its memory is unknown.")
    return Run(step["seconds"], moved, wrong, step["seconds"] / alone, max(sides))


def processor_ratio(rows: int = 2 * PIECE_POINTS) -> float:
    """Return the processor time of both parties in one process, over 4 multiplications per ID.

    Unlike seconds, it does not depend on what else the machine does.
    """
    rng = np.random.default_rng(0)
    ours, theirs = rng.permutation(rows), rng.permutation(rows) + rows // 10
    grid, rules = op.Domain(1, 10), op.AlignRules()
    schema = [op.PrivateColumn("x", op.NumericMapping(grid, (0, 10)), op.ClampMap(grid, 0.64))]
    table = pa.table({"x": theirs % 10, "id": theirs})
    shop = op.FeatureParty(table, schema, ids="id", align=rules)
    bank = op.LabelParty(None, ours % 2, ids=ours.tolist(), align=rules)
    welcome = Welcome("20260102T030405Z-01020304", bytes(32), b"", b"", 0.0)
    _, before = multiplications()
    start = time.process_time()
    bank.align([op.MemoryChannel(shop)], welcome)
    spent = time.process_time() - start
    _, after = multiplications()
    return spent / (4 * rows * (before + after) / 2)


HERE = Page("docs/alignment.md, What it costs")
COVERS = ("opboost.psi", "opboost.protocol", "opboost.parties", "opboost.transport")
PACE = "{0:,} IDs with {0:,} as processes: seconds over their scalar multiplications"
CLAIMS = [
    HERE.at_most(
        "both parties in one process: processor time over 4 scalar multiplications an ID",
        1.6,
        lambda: [processor_ratio() for _ in range(5)],
    ),
    HERE.at_most(PACE.format(100_000), 1.6, lambda: [run(100_000, n).ratio for n in range(5)]),
    HERE.at_most("... bytes an ID, both ways", 105, lambda: run(100_000).bytes / 1e5),
    HERE.equals("... rows too many or too few", 0, lambda: run(100_000).wrong),
    HERE.at_most(PACE.format(1_000_000), 1.6, lambda: [run(1_000_000, n).ratio for n in range(5)]),
    HERE.at_most(PACE.format(10_000_000), 2.0, lambda: run(10_000_000).ratio),
    HERE.at_most("10,000,000 IDs: MB of the larger side", 1500, lambda: run(10_000_000).peak_mb),
    HERE.equals("10,000,000 IDs: rows too many or too few", 0, lambda: run(10_000_000).wrong),
]
