"""A flipped bit, or a cut end, in each file that a job leaves behind when it is killed."""

from claims.claim import FEDERATION
from claims.faults import SEED, claims_of
from robustness.faults import damaged_files

COVERS = FEDERATION
CLAIMS = claims_of({"damaged files": (60, lambda: damaged_files.run(None, SEED))})
