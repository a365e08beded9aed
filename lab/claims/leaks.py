"""Whole, killed, bundled and failing jobs, captured by tshark and searched for values and IDs."""

from functools import lru_cache
from statistics import fmean

from claims.claim import FEDERATION, Page
from robustness.leaks.leak_search import JOBS, Outcome, run_one

SEED = 20_260_101


@lru_cache(maxsize=1)
def outcomes() -> tuple[Outcome, ...]:
    done = [run_one("whole", SEED, plain=False, captured=True)]
    done += [run_one(name, SEED, captured=True) for name in JOBS]
    print(*done, sep="\n")
    return tuple(done)


def planted() -> float:
    """Return the number of captured streams and files in which a planted value is found."""
    found = run_one("planted", SEED, captured=True).found
    return float(len({f.where for f in found if f.what == "odd value"}))


HERE = Page("docs/reliability.md, Privacy, attacked")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training", "opboost.cli")
CLAIMS = [
    HERE.equals(
        "jobs that end as meant, failing ones among them: share",
        1,
        lambda: fmean(one.as_meant for one in outcomes()),
    ),
    HERE.equals(
        "of them, jobs that leave a raw value or ID behind",
        0,
        lambda: sum(bool(one.found) for one in outcomes()),
    ),
    HERE.at_least("places in which a planted value is found", 6, planted),
]
