"""The mechanisms: what each promises, and the distribution that keeps the promise.

Each has its own file.  ``mechanism`` is their base class, ``registry`` names and builds those that
files and configurations know, and ``certificate`` compares the promise with the exact loss.
"""

from opboost.mechanisms.adj_laplace import AdjLaplace
from opboost.mechanisms.adj_map import AdjMap
from opboost.mechanisms.best_nominal import best_nominal
from opboost.mechanisms.certificate import Certificate
from opboost.mechanisms.clamp_map import ClampMap
from opboost.mechanisms.discrete_laplace import DiscreteLaplace
from opboost.mechanisms.gap_mechanism import GapMechanism
from opboost.mechanisms.global_map import GlobalMap
from opboost.mechanisms.local_map import LocalMap
from opboost.mechanisms.mechanism import Mechanism
from opboost.mechanisms.nominal import NominalMechanism
from opboost.mechanisms.ope import OrderPreservingEncryption
from opboost.mechanisms.piecewise import Piecewise
from opboost.mechanisms.randomized_response import RandomizedResponse
from opboost.mechanisms.subset_selection import SubsetSelection
from opboost.mechanisms.unary_encoding import UnaryEncoding
from opboost.mechanisms.window_map import WindowMap
from opboost.mechanisms.window_with_missing import WindowWithMissing
from opboost.mechanisms.with_missing import WithMissing

__all__ = [
    "AdjLaplace",
    "AdjMap",
    "Certificate",
    "ClampMap",
    "DiscreteLaplace",
    "GapMechanism",
    "GlobalMap",
    "LocalMap",
    "Mechanism",
    "NominalMechanism",
    "OrderPreservingEncryption",
    "Piecewise",
    "RandomizedResponse",
    "SubsetSelection",
    "UnaryEncoding",
    "WindowMap",
    "WindowWithMissing",
    "WithMissing",
    "best_nominal",
]
