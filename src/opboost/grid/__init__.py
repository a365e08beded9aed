"""The integer grid, and the mappings of raw columns onto it and back.

``domain.py`` is the grid itself, ``integers.py`` declares bounds of whole numbers, ``dates.py``
of dates and times, ``numeric_mapping.py`` maps numbers by public bounds,
``ordinal_mapping.py`` maps categories by a public order, ``partition.py`` cuts the grid into runs,
``thresholds.py`` turns cuts between cells into thresholds on raw values.
"""

from opboost.grid.dates import Dates
from opboost.grid.domain import Domain, checked_domain
from opboost.grid.integers import Integers
from opboost.grid.numeric_mapping import NumericMapping
from opboost.grid.ordinal_mapping import Ordered, OrdinalMapping
from opboost.grid.partition import Partition
from opboost.grid.thresholds import RawUnits

__all__ = [
    "Dates",
    "Domain",
    "Integers",
    "NumericMapping",
    "Ordered",
    "OrdinalMapping",
    "Partition",
    "RawUnits",
    "checked_domain",
]
