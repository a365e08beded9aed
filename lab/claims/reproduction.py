"""The paper's tables and figures, next to ours: docs/reproduction.md.  Needs ``OPBOOST_DATA``."""

import subprocess
import sys
import tempfile
import time
from functools import lru_cache, partial
from pathlib import Path

from claims.claim import FEDERATION, LEARNING, Page
from opboost_lab.accuracy import PARAMS
from opboost_lab.reproduce.artefacts import tab_comun_perform as comun
from opboost_lab.reproduce.artefacts.tab_op_prob_t import gammas, same_digits
from opboost_lab.reproduce.measures.cost_tables import cost_table
from opboost_lab.reproduce.measures.speed_of_release import desensitising, encrypting
from opboost_lab.reproduce.measures.traffic import job_traffic
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.printed import OP_PROB_T

HERE = Page("docs/reproduction.md")


def traffic_share(name: str) -> list[float]:
    """Return Party B's bytes over the paper's, for each of its methods and ours."""
    table = cost_table(name, bundled=False)
    shares = []
    for method, chosen in comun.METHODS.items():
        printed = comun.printed("b", "XGBoost", name, method)
        printed = printed or comun.printed("b", "XGBoost", name, "Global-map") or 1
        found = job_traffic(table, chosen, comun.EPSILON, "xgboost", PARAMS["xgboost"])
        shares.append(found["b"] / printed)
    return shares


def over_encryption() -> list[float]:
    """Return how many times as long un-memoised order-preserving encryption takes."""
    slow = encrypting(100_000, sample=200, memo=False)["seconds"]
    methods = (Method("Global-map"), Method("Adj-map", theta=10, alpha=10), Method("Clamp-map"))
    return [
        slow / desensitising(method.as_json(), epsilon, 100_000, repeats=5)["seconds"]
        for method in methods
        for epsilon in (0.08, 1.28)
    ]


@lru_cache(maxsize=1)
def quick() -> tuple[float, int]:
    """Return the seconds of a quick run from scratch, and how many artefacts it shows."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "opboost", "reproduce", "all", "--quick", "--out", folder],
            check=True,
            capture_output=True,
        )
        seconds = time.monotonic() - began
        return seconds, len(list(Path(folder).glob("*/data.json")))


COVERS = (*LEARNING, *FEDERATION, "opboost.theory", "opboost.metrics")
CLAIMS = [
    HERE.equals(
        "tab:op-prob-t: figures that come back digit by digit",
        80,
        lambda: same_digits({method: gammas(method) for method in OP_PROB_T}),
    ),
    *(
        HERE.at_most(
            f"Party B's bytes over the paper's, {name}: the largest of the methods",
            0.125,
            partial(traffic_share, name),
            middle=max,
        )
        for name in comun.SETS
    ),
    HERE.at_least(
        "desensitising: times as fast as un-memoised OPE, at least",
        100,
        over_encryption,
        middle=min,
    ),
    HERE.at_most("reproduce all --quick: seconds", 300, lambda: quick()[0]),
    HERE.at_least("reproduce all --quick: artefacts shown", 18, lambda: quick()[1]),
]
