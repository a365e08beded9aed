"""The exact distributions of mechanisms' outputs; ``promises/`` says what they guarantee.

The same object is published, sampled and certified.  Small grids have an integer table
(``integer_table.py``); any larger grid has a closed form with an exactly known decay:
``clamped_laplace.py`` (clamped two-sided geometric), ``truncated_geometric.py`` (truncated
two-sided geometric), ``cell_runs.py`` (first a run of cells, then a cell inside it),
``keep_or_redraw.py`` (keep or redraw) and ``piecewise_density.py`` (a window of higher density).
``distribution.py`` is the protocol that they share; ``lazy_uniform.py`` decides the rare draws that
64 bits leave open.
"""

from opboost.distributions.cell_runs import CellRuns
from opboost.distributions.clamped_laplace import ClampedLaplace
from opboost.distributions.distribution import Distribution, loss
from opboost.distributions.integer_table import IntegerTable, rounded_rows
from opboost.distributions.keep_or_redraw import KeepOrRedraw
from opboost.distributions.piecewise_density import PiecewiseDensity
from opboost.distributions.truncated_geometric import TruncatedGeometric
from opboost.distributions.window import Window

__all__ = [
    "CellRuns",
    "ClampedLaplace",
    "Distribution",
    "IntegerTable",
    "KeepOrRedraw",
    "PiecewiseDensity",
    "TruncatedGeometric",
    "Window",
    "loss",
    "rounded_rows",
]
