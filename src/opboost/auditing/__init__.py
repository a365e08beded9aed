"""Attacks on mechanisms through their public API: samples in, a lower bound on the loss out.

Like an attacker, this package never looks at a distribution.  It draws values with ``sample``,
uses a first part of the samples to choose the outcomes that distinguish two values best, and
computes an exact confidence bound from the rest.
"""

from opboost.auditing.audit_report import Audit, IndependenceAudit, PairAudit
from opboost.auditing.audit_targets import Record
from opboost.auditing.run_audit import audit

__all__ = ["Audit", "IndependenceAudit", "PairAudit", "Record", "audit"]
