"""The paper's theory as functions, corrected where it is wrong (docs/errata.md).

γ, the order that a mechanism keeps, is a method: ``m.gamma(t)``.  Here are β, the chance that a
split survives (``splits.py``), the best mechanism there is (``optimal.py``), strict order
preservation (``order.py``), and what the protocol costs (``cost.py``).
"""

from opboost.theory.cost import Cost, protocol_cost
from opboost.theory.optimal import OptimalLoss, optimal_loss
from opboost.theory.order import is_order_preserving
from opboost.theory.splits import best_gain, beta

__all__ = [
    "Cost",
    "OptimalLoss",
    "best_gain",
    "beta",
    "is_order_preserving",
    "optimal_loss",
    "protocol_cost",
]
