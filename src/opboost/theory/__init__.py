"""The paper's theory as functions, corrected where it is wrong (docs/errata.md).

γ, the order that a mechanism keeps, is a method: ``m.gamma(t)``. Here are β, the chance that a
split survives (``split_survival.py``), the best mechanism there is by its loss
(``optimal_mechanism.py``) and by what it tells (``optimal_information.py``), strict order
preservation (``strict_order.py``), and what the protocol costs (``protocol_cost.py``).
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
