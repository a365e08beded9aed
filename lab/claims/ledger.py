"""What the ledger costs: docs/ledger.md and docs/scale.md."""

from dataclasses import replace

from claims.claim import Page, Rounds
from opboost_lab.bench.ledger_cost import QUICK, run

MILLION = Rounds(lambda: run(QUICK), 5)
TEN_MILLION = Rounds(lambda: run(replace(QUICK, rows=10_000_000), in_parts=False), 5)
SIZES = (("1,000,000 × 20", MILLION), ("10,000,000 × 20", TEN_MILLION))
THREE_STAGES = "feature party with IDs and ledger over its three stages"
SECOND = "a second release of known people over the first"
HERE = Page("docs/scale.md, What the ledger costs")
COVERS = ("opboost.ledger", "opboost.storage", "opboost.columns", "opboost.files")
CLAIMS = [
    *(
        HERE.at_most(f"{size}: {words}", most, found.of(figure))
        for words, most, figure in (
            (THREE_STAGES, 4, lambda m: m.first / m.stages),
            (SECOND, 1, lambda m: m.second / m.first),
        )
        for size, found in SIZES
    ),
    Page("docs/ledger.md").at_most(
        "bytes of the ledger per cell, ten cells, 20 columns",
        3,
        MILLION.of(lambda m: m.bytes_per_cell),
    ),
    HERE.at_most(
        "1,000,000 × 20: a release in parts with charges over one without",
        2,
        MILLION.of(lambda m: m.charged / m.parts),
    ),
]
