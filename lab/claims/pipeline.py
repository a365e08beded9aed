"""Audits of a feature party's whole pipeline with fixed randomness: docs/reliability.md."""

from functools import cache

from claims.claim import FEDERATION, Page
from robustness.audits.faulty_pipelines import EVERY_RECORD, FAULTY, SOME_RECORDS, SOUND
from robustness.audits.pipeline_trial import Audited, audit


@cache
def sound() -> list[Audited]:
    return [audit(pipeline, EVERY_RECORD) for pipeline in SOUND.values()]


HERE = Page("docs/reliability.md, Privacy, attacked")
COVERS = (*FEDERATION, "opboost.promises")
CLAIMS = [
    HERE.equals(
        "sound pipelines that lose more than is promised",
        0,
        lambda: sum(found.finding is not None for found in sound()),
    ),
    HERE.equals(
        "pairs of records compared by all that leaves",
        198,
        lambda: sum(found.pairs for found in sound()),
    ),
    HERE.at_least(
        "least share of a promise that the worst pair loses",
        0.999,
        lambda: min(found.worst for found in sound()),
    ),
    HERE.equals(
        "faulty pipelines caught",
        7,
        lambda: sum(audit(p, SOME_RECORDS).finding is not None for p in FAULTY.values()),
    ),
]
