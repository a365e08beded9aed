"""``kill -9`` of each party at random moments of a job."""

from claims.claim import FEDERATION
from claims.faults import SEED, claims_of
from robustness.faults import kills

KILLS = 50
COVERS = FEDERATION
CLAIMS = claims_of(
    {
        f"kill -9 of {v} at random moments": (KILLS, lambda v=v: kills.at_random(v, KILLS, SEED))
        for v in kills.VICTIMS
    }
)
