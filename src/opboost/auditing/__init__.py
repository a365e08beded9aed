"""Attacks on mechanisms through their public face: samples in, a lower bound on the loss out.

Nothing here looks at a law: an attacker would not either.  Values are drawn with ``sample``, the
outcomes that tell two values apart best are chosen on a first part of the samples, and an exact
confidence bound is put on the rest.
"""

from opboost.auditing.audit_report import Audit, IndependenceAudit, PairAudit
from opboost.auditing.audit_targets import Record
from opboost.auditing.run_audit import audit

__all__ = ["Audit", "IndependenceAudit", "PairAudit", "Record", "audit"]
