"""OpBoost: vertical federated gradient boosting by order-preserving desensitization."""

from opboost import theory
from opboost.budget import Budget
from opboost.columns import Flag, PrivateColumn
from opboost.domain import Domain, NumericMapping, Ordered, OrdinalMapping, Partition
from opboost.errors import (
    ColumnError,
    DataError,
    InferredBoundsWarning,
    OpBoostError,
    ParameterError,
    PrivacyError,
)
from opboost.estimators import Desensitizer
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
from opboost.metrics import random_queries, range_query_mse, weighted_kendall
from opboost.rng import SecureRng, SeededRng

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
    "OpBoostError",
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
    "SecureRng",
    "SeededRng",
    "UnaryEncoding",
    "WithMissing",
    "random_queries",
    "range_query_mse",
    "theory",
    "weighted_kendall",
]
