"""``kill -9`` of each party at every phase boundary of a job."""

from claims.claim import FEDERATION
from claims.faults import claims_of
from robustness.faults import kills

COVERS = FEDERATION
CLAIMS = claims_of(
    {
        f"kill -9 of {v} at every boundary": (25, lambda v=v: kills.at_boundaries(v))
        for v in kills.VICTIMS
    }
)
