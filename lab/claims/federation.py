"""A whole networked job beside a plain program, and bytes against entropy."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

import opboost as op
from claims.claim import Claim
from claims.covered_sources import FEDERATION
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.feature.outgoing_columns import read_values
from opboost.protocol.messages import Welcome
from opboost_lab.bench.federation import SIZES, Run, repeated

ROWS = 30_000


@lru_cache(maxsize=1)
def runs() -> list[Run]:
    return repeated(SIZES[0], 5)


def seconds_more() -> list[float]:
    return [r.more for r in runs()]


def bytes_sent() -> list[float]:
    return [float(max(r.up.values())) for r in runs()]


def worst_over_entropy() -> list[float]:
    """(bytes of a column's stream − 1,000) over the entropy of its codes, the worst column."""
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
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        party = FeatureParty(pa.table(table), columns, state=folder)
        _, files = party.release(Welcome("20260102T030405Z-00000000", bytes(32), b""))
        return [max(_ratio(file) for file in files)]


def _ratio(file: Path) -> float:
    from opboost.protocol.stored_columns import read_column

    _, column = read_column(file)
    counts = np.bincount(column.codes, minlength=len(read_values(file)))
    share = counts[counts > 0] / counts.sum()
    entropy = -(share * np.log2(share)).sum() * len(column.codes) / 8
    return float((file.stat().st_size - 1000) / max(entropy, 1.0))


HERE = "docs/speed.md, Between organisations"
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    Claim("30,000 × 14: seconds more than plain", HERE, "at most", 1.5, seconds_more),
    Claim("30,000 × 14: bytes from the feature party", HERE, "at most", 70_000, bytes_sent),
    Claim("a column's bytes less 1 kB over entropy", HERE, "at most", 1.1, worst_over_entropy),
]
