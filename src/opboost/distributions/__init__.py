"""Exact laws: what a mechanism's output looks like, and nothing about why.

A law is one object that is published, sampled and certified.  Small grids have an integer table
(``table.py``); any larger grid has a closed form in an exactly known decay: ``laplace.py``
(clamped two-sided geometric), ``two_sided.py`` (truncated two-sided geometric), ``runs.py`` (a run
of cells first, a cell inside it then), ``keep.py`` (keep or redraw) and ``pieces.py`` (a window of
higher density).  ``base.py`` says what all of them answer; ``uniform.py`` decides the rare draws
that 64 bits leave open.
"""

from opboost.distributions.cell_runs import RunsLaw
from opboost.distributions.clamped_laplace import LaplaceLaw
from opboost.distributions.distribution import Law, loss
from opboost.distributions.integer_table import TableLaw, rounded_rows
from opboost.distributions.keep_or_redraw import KeepLaw
from opboost.distributions.piecewise_density import PiecesLaw
from opboost.distributions.truncated_geometric import TwoSidedLaw

__all__ = [
    "KeepLaw",
    "LaplaceLaw",
    "Law",
    "PiecesLaw",
    "RunsLaw",
    "TableLaw",
    "TwoSidedLaw",
    "loss",
    "rounded_rows",
]
