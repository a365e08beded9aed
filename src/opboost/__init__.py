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
    PeerError,
    PrivacyError,
    WireError,
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
    from opboost.estimators import Desensitizer, OpBoostClassifier, OpBoostRegressor, load
    from opboost.ledger import Caps, Ledger
    from opboost.metrics import random_queries, range_query_mse, weighted_kendall
    from opboost.party.channel import MemoryChannel
    from opboost.party.feature import FeatureParty
    from opboost.party.label import LabelParty

__version__ = "0.1.0"

__all__ = [
    "DLDP",
    "LDP",
    "AdjLaplace",
    "AdjMap",
    "Budget",
    "Caps",
    "Certificate",
    "ClampMap",
    "ColumnError",
    "ConfigError",
    "DataError",
    "Desensitizer",
    "DiscreteLaplace",
    "Domain",
    "FeatureParty",
    "Flag",
    "Flagged",
    "GlobalMap",
    "InferredBoundsWarning",
    "Joint",
    "LabelParty",
    "Ledger",
    "LocalDLDP",
    "LocalMap",
    "Mechanism",
    "MemoryChannel",
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
    "PeerError",
    "Piecewise",
    "PrivacyError",
    "PrivateColumn",
    "RandomizedResponse",
    "SecureRng",
    "SeededRng",
    "UnaryEncoding",
    "WireError",
    "WithMissing",
    "load",
    "random_queries",
    "range_query_mse",
    "theory",
    "weighted_kendall",
]

_LATER = {
    "Desensitizer": "opboost.estimators",
    "OpBoostClassifier": "opboost.estimators",
    "OpBoostRegressor": "opboost.estimators",
    "load": "opboost.estimators",
    "random_queries": "opboost.metrics",
    "range_query_mse": "opboost.metrics",
    "Caps": "opboost.ledger",
    "FeatureParty": "opboost.party.feature",
    "LabelParty": "opboost.party.label",
    "Ledger": "opboost.ledger",
    "MemoryChannel": "opboost.party.channel",
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
