"""A million cases over every decoder, and how many of them broke the contract."""

from functools import lru_cache

from claims.claim import FEDERATION, Page
from robustness.fuzz.engine import Result, run
from robustness.fuzz.targets import TARGETS

CASES = 1_000_000
SEED = 20_260_101


@lru_cache(maxsize=1)
def fuzzed() -> Result:
    return run(TARGETS, CASES, SEED, say=print)


HERE = Page("docs/reliability.md, Fuzzing")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.scores")
CLAIMS = [
    HERE.at_least("fuzzing: cases fed to decoders", CASES, lambda: fuzzed().total),
    HERE.equals("fuzzing: crashes, hangs and broken laws", 0, lambda: len(fuzzed().crashes)),
]
