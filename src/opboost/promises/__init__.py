"""Privacy promises: their forms (``forms.py``), how they compose (``composition.py``), and a
warning about totals that hide little (``large_totals.py``)."""

from opboost.promises.composition import Choice, Guarantee, Joint, NoGuarantee, Sum
from opboost.promises.forms import (
    DLDP,
    LDP,
    CappedDLDP,
    Flagged,
    LocalDLDP,
    PartitionDLDP,
    checked_epsilon,
)
from opboost.promises.large_totals import large_total_warning

__all__ = [
    "DLDP",
    "LDP",
    "CappedDLDP",
    "Choice",
    "Flagged",
    "Guarantee",
    "Joint",
    "LocalDLDP",
    "NoGuarantee",
    "PartitionDLDP",
    "Sum",
    "checked_epsilon",
    "large_total_warning",
]
