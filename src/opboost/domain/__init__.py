"""The integer grid, and the ways raw columns get onto it and back.

``grid.py`` is the grid itself, ``numeric.py`` maps numbers by public bounds, ``ordinal.py`` maps
categories by a public order, ``partition.py`` cuts the grid into runs, ``thresholds.py`` takes cuts
between cells back to raw values.
"""

from opboost.domain.grid import Domain, checked_domain
from opboost.domain.numeric import NumericMapping
from opboost.domain.ordinal import Ordered, OrdinalMapping
from opboost.domain.partition import Partition
from opboost.domain.thresholds import RawUnits

__all__ = [
    "Domain",
    "NumericMapping",
    "Ordered",
    "OrdinalMapping",
    "Partition",
    "RawUnits",
    "checked_domain",
]
