"""The auditor at a hundred million samples: sound mechanisms pass and nearly reach their loss,
broken ones are caught."""

from __future__ import annotations

from functools import lru_cache

from hardening.auditor import SOUND, Tried, attacked, caught
from hardening.broken import BROKEN

from claims.claim import Claim

SAMPLES = 100_000_000
PAIRS = 4
FEWEST = (10_000, 100_000, 1_000_000, 10_000_000)


@lru_cache(maxsize=1)
def tried() -> tuple[Tried, ...]:
    return tuple(attacked(name, SAMPLES, PAIRS) for name in SOUND)


def accused() -> float:
    return float(sum(bool(one.findings) for one in tried()))


def nearest() -> float:
    """The share of the exact loss that is reached, of the mechanism where it is least."""
    return min(one.nearest for one in tried())


def caught_by(samples: int) -> float:
    """How many are caught by so many samples; with more samples they stay caught."""
    return float(sum(caught(name, samples) for name in BROKEN))


HERE = "docs/reliability.md, Privacy, attacked"
CLAIMS = [
    Claim("sound mechanisms accused at 10⁸ samples a value", HERE, "equals", 0, accused),
    Claim("least share of the exact loss that is proved", HERE, "at least", 0.99, nearest),
    *(
        Claim(
            f"broken mechanisms caught at {n:,} samples a value",
            HERE,
            "at least",
            least,
            lambda n=n: caught_by(n),
        )
        for n, least in zip(FEWEST, (12, 14, 17, 18), strict=True)
    ),
]
