"""Eight feature parties that send at the same time."""

from claims.claim import FEDERATION, Page, Rounds
from opboost_lab.bench.load import LIMIT_MB, LOAD, run

FOUND = Rounds(lambda: run(LOAD), 5)
SENT = "8 × 1,000,000 × 10 at once"
HERE = Page("docs/reliability.md, Load")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    HERE.at_most(f"{SENT}: MB of the label server", LIMIT_MB, FOUND.of(lambda r: r.gate_mb)),
    HERE.at_most(
        f"{SENT}: MB of the label party, training included", 4096, FOUND.of(lambda r: r.label_mb)
    ),
    HERE.at_most(f"{SENT}: slowest party over fastest", 1.3, FOUND.of(lambda r: r.starved)),
    HERE.at_least(
        f"{SENT}: million values a second", 5.0, FOUND.of(lambda r: r.values_a_second / 1e6)
    ),
    HERE.at_most(
        f"{SENT}: seconds over a plain Flight call of the same bytes",
        6.0,
        FOUND.of(lambda r: r.over_flight),
        short=True,
    ),
]
