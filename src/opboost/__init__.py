"""OpBoost: vertical federated gradient boosting by order-preserving desensitization.

What needs scikit-learn or scipy is imported when it is first used, so that the command line and a
feature party start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opboost.budget import Budget
from opboost.columns import Flag, PrivateColumn
from opboost.domain import Domain, NumericMapping, Ordered, OrdinalMapping, Partition
from opboost.errors import (
    ColumnError,
    ConfigError,
    DataError,
    InferredBoundsWarning,
    OpBoostError,
    ParameterError,
    PrivacyError,
)
from opboost.guarantee import (
    DLDP,
    LDP,
    Flagged,
    Joint,
    LocalDLDP,
    NoGuarantee,
    PartitionDLDP,
)
from opboost.mechanisms import (
    AdjLaplace,
    AdjMap,
    Certificate,
    ClampMap,
    DiscreteLaplace,
    GlobalMap,
    LocalMap,
    Mechanism,
    OrderPreservingEncryption,
    Piecewise,
    RandomizedResponse,
    UnaryEncoding,
    WithMissing,
)
from opboost.rng import SecureRng, SeededRng

if TYPE_CHECKING:
    from opboost import theory
    from opboost.denoise.reconstruct import Reconstruction, reconstruct
    from opboost.estimators import Desensitizer, OpBoostClassifier, OpBoostRegressor, load
    from opboost.metrics import random_queries, range_query_mse, weighted_kendall

__version__ = "0.1.0"

__all__ = [
    "DLDP",
    "LDP",
    "AdjLaplace",
    "AdjMap",
    "Budget",
    "Certificate",
    "ClampMap",
    "ColumnError",
    "ConfigError",
    "DataError",
    "Desensitizer",
    "DiscreteLaplace",
    "Domain",
    "Flag",
    "Flagged",
    "GlobalMap",
    "InferredBoundsWarning",
    "Joint",
    "LocalDLDP",
    "LocalMap",
    "Mechanism",
    "NoGuarantee",
    "NumericMapping",
    "OpBoostClassifier",
    "OpBoostError",
    "OpBoostRegressor",
    "OrderPreservingEncryption",
    "Ordered",
    "OrdinalMapping",
    "ParameterError",
    "Partition",
    "PartitionDLDP",
    "Piecewise",
    "PrivacyError",
    "PrivateColumn",
    "RandomizedResponse",
    "Reconstruction",
    "SecureRng",
    "SeededRng",
    "UnaryEncoding",
    "WithMissing",
    "load",
    "random_queries",
    "range_query_mse",
    "reconstruct",
    "theory",
    "weighted_kendall",
]

_LATER = {
    "Desensitizer": "opboost.estimators",
    "OpBoostClassifier": "opboost.estimators",
    "OpBoostRegressor": "opboost.estimators",
    "Reconstruction": "opboost.denoise.reconstruct",
    "load": "opboost.estimators",
    "random_queries": "opboost.metrics",
    "range_query_mse": "opboost.metrics",
    "reconstruct": "opboost.denoise.reconstruct",
    "theory": "opboost.theory",
    "weighted_kendall": "opboost.metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'opboost' has no attribute {name!r}")
    module = import_module(_LATER[name])
    value = module if name == "theory" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
