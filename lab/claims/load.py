"""Eight feature parties that send at once."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Claim
from claims.covered_sources import FEDERATION
from opboost_lab.bench.load import LIMIT_MB, LOAD, Result, run


@lru_cache(maxsize=1)
def result() -> Result:
    return run(LOAD)


HERE = "docs/reliability.md, Load"
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    Claim("8 × 1,000,000 × 10 at once: MB of the gate", HERE, "at most", LIMIT_MB,
          lambda: result().gate_mb),
    Claim("8 × 1,000,000 × 10 at once: MB of the label party, training included", HERE, "at most",
          4096, lambda: result().label_mb),
    Claim("8 × 1,000,000 × 10 at once: slowest party over fastest", HERE, "at most", 1.5,
          lambda: result().starved, short=True),
    Claim("8 × 1,000,000 × 10 at once: million values a second", HERE, "at least", 5.0,
          lambda: result().values_a_second / 1e6),
    Claim("8 × 1,000,000 × 10 at once: seconds over a plain Flight call of the same bytes", HERE,
          "at most", 100.0, lambda: result().over_flight),
]  # fmt: skip
