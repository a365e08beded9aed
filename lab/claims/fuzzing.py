"""A million cases over all decoders, and how many of them broke the contract."""

from claims.claim import FEDERATION, Page, Rounds
from robustness.fuzz.engine import run
from robustness.fuzz.targets import TARGETS

CASES = 1_000_000
SEED = 20_260_101
FUZZED = Rounds(lambda: run(TARGETS, CASES, SEED, say=print), 1)
HERE = Page("docs/reliability.md, Fuzzing")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.scores")
CLAIMS = [
    HERE.at_least("fuzzing: cases fed to decoders", CASES, FUZZED.of(lambda r: r.total)),
    HERE.equals(
        "fuzzing: crashes, hangs and broken properties", 0, FUZZED.of(lambda r: len(r.crashes))
    ),
]
