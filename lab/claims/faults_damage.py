"""A flipped bit or a missing end in each file that a killed job leaves behind."""

from claims.claim import FEDERATION
from claims.faults import SEED, claims_of
from robustness.faults import damaged_files

COVERS = FEDERATION
CLAIMS = claims_of({"damaged files": (60, lambda: damaged_files.run(None, SEED))})
