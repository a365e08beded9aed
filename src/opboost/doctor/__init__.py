"""Check whether the machine, and everything that a party's file names, is ready.

``machine_checks.py`` looks at packages, processor, threads and disk; ``party_checks.py`` at a
configuration, its keys and its certificates. They change nothing and contact no other party.
"""

from opboost.doctor.finding import Finding, State
from opboost.doctor.machine_checks import examine_machine
from opboost.doctor.party_checks import examine_party

__all__ = ["Finding", "State", "examine_machine", "examine_party"]
