"""Eight feature parties that send at once."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Claim
from claims.covered_sources import FEDERATION
from opboost_lab.bench.load import LIMIT_MB, LOAD, Result, run


@lru_cache(maxsize=1)
def results() -> list[Result]:
    return [run(LOAD) for _ in range(5)]


HERE = "docs/reliability.md, Load"
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    Claim("8 × 1,000,000 × 10 at once: MB of the gate", HERE, "at most", LIMIT_MB,
          lambda: [r.gate_mb for r in results()]),
    Claim("8 × 1,000,000 × 10 at once: MB of the label party, training included", HERE, "at most",
          4096, lambda: [r.label_mb for r in results()]),
    Claim("8 × 1,000,000 × 10 at once: slowest party over fastest", HERE, "at most", 1.3,
          lambda: [r.starved for r in results()]),
    Claim("8 × 1,000,000 × 10 at once: million values a second", HERE, "at least", 5.0,
          lambda: [r.values_a_second / 1e6 for r in results()]),
    Claim("8 × 1,000,000 × 10 at once: seconds over a plain Flight call of the same bytes", HERE,
          "at most", 6.0, lambda: [r.over_flight for r in results()], short=True),
]  # fmt: skip
