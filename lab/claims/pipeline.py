"""The whole pipeline of a feature party with its randomness fixed: docs/reliability.md."""

from __future__ import annotations

from functools import cache

from claims.claim import Claim
from claims.covered_sources import FEDERATION
from robustness.audits.faulty_pipelines import EVERY_RECORD, FAULTY, SOME_RECORDS, SOUND
from robustness.audits.pipeline_trial import Audited, audit


@cache
def sound() -> list[Audited]:
    """Each sound pipeline, compared on every pair of records."""
    return [audit(pipeline, EVERY_RECORD) for pipeline in SOUND.values()]


HERE = "docs/reliability.md, Privacy, attacked"
COVERS = (*FEDERATION, "opboost.promises")
CLAIMS = [
    Claim(
        "sound pipelines that lose more than is promised",
        HERE,
        "equals",
        0,
        lambda: sum(found.finding is not None for found in sound()),
    ),
    Claim(
        "pairs of records compared by all that leaves",
        HERE,
        "equals",
        198,
        lambda: sum(found.pairs for found in sound()),
    ),
    Claim(
        "least share of a promise that the worst pair loses",
        HERE,
        "at least",
        0.999,
        lambda: min(found.worst for found in sound()),
    ),
    Claim(
        "faulty pipelines caught",
        HERE,
        "equals",
        7,
        lambda: sum(audit(p, SOME_RECORDS).finding is not None for p in FAULTY.values()),
    ),
]
