"""Promises about privacy: the forms they take (``forms.py``) and how they compose
(``composition.py``)."""

from opboost.promises.composition import Guarantee, Joint, NoGuarantee, Sum
from opboost.promises.forms import (
    DLDP,
    LDP,
    CappedDLDP,
    Flagged,
    LocalDLDP,
    PartitionDLDP,
    checked_epsilon,
)

__all__ = [
    "DLDP",
    "LDP",
    "CappedDLDP",
    "Flagged",
    "Guarantee",
    "Joint",
    "LocalDLDP",
    "NoGuarantee",
    "PartitionDLDP",
    "Sum",
    "checked_epsilon",
]
