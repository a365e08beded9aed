"""A whole networked job compared with a plain program, and bytes compared with entropy."""

import tempfile

import numpy as np
import pyarrow as pa

import opboost as op
from claims.claim import FEDERATION, Page, Rounds
from opboost.parties.feature.feature_party import FeatureParty
from opboost.protocol.messages import Welcome
from opboost.protocol.stored_columns import read_column
from opboost_lab.bench.federation import SIZES, run
from opboost_lab.reproduce.measures.traffic import entropy_bytes

ROWS = 30_000
RUNS = Rounds(lambda: run(SIZES[0]), 5)


def worst_over_entropy() -> list[float]:
    """Return the worst column's (bytes of its stream − 1,000) over the entropy of its codes."""
    rng = np.random.default_rng(0)
    raw = rng.beta(2, 5, ROWS)
    columns = [
        op.PrivateColumn(
            f"{cells}-{epsilon}",
            op.NumericMapping(op.Domain(1, cells), (0, 1)),
            op.ClampMap(op.Domain(1, cells), epsilon),
        )
        for cells in (2, 10, 100, 256, 1024)
        for epsilon in (0.08, 1.28)
    ]
    columns.append(op.PrivateColumn("city", None, op.UnaryEncoding(list(range(20)), 4.0)))
    table = {c.name: raw for c in columns[:-1]} | {"city": rng.integers(0, 20, ROWS)}
    with tempfile.TemporaryDirectory() as folder:
        party = FeatureParty(pa.table(table), columns, state=folder)
        _, files = party.release(Welcome("20260102T030405Z-00000000", bytes(32), b""))
        entropies = {file: entropy_bytes(read_column(file)[1].codes) for file in files}
        return [max((f.stat().st_size - 1000) / max(e, 1.0) for f, e in entropies.items())]


HERE = Page("docs/speed.md, Between organisations")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    HERE.at_most("30,000 × 14: seconds more than plain", 1.5, RUNS.of(lambda r: r.more)),
    HERE.at_most(
        "30,000 × 14: bytes from the feature party", 70_000, RUNS.of(lambda r: max(r.up.values()))
    ),
    HERE.at_most("a column's bytes less 1 kB over entropy", 1.1, worst_over_entropy),
]
