"""A flipped bit, or a cut end, in each file that a job leaves behind when it is killed."""

from __future__ import annotations

from hardening import damage

from claims.faults import SEED, claims_of

CLAIMS = claims_of({"damaged files": (60, lambda: damage.run(None, SEED))})
