"""The paper's theory as functions, corrected where it is wrong (docs/errata.md).

γ, the order that a mechanism keeps, is a method: ``m.gamma(t)``.  This package has β, the chance
that a split survives (``split_survival.py``); the best possible mechanism by loss
(``optimal_mechanism.py``) and by information (``optimal_information.py``); strict order
preservation (``strict_order.py``); and the cost of the protocol (``protocol_cost.py``).
"""

from opboost.theory.optimal_information import mutual_information, optimal_information
from opboost.theory.optimal_mechanism import OptimalLoss, optimal_loss
from opboost.theory.protocol_cost import Cost, protocol_cost
from opboost.theory.split_survival import best_gain, beta
from opboost.theory.strict_order import is_order_preserving

__all__ = [
    "Cost",
    "OptimalLoss",
    "best_gain",
    "beta",
    "is_order_preserving",
    "mutual_information",
    "optimal_information",
    "optimal_loss",
    "protocol_cost",
]
