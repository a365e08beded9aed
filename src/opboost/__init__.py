"""OpBoost: vertical federated gradient boosting by order-preserving desensitization.

Names are imported when they are first used, so that the command line and a feature party start
quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opboost import theory
    from opboost.align.keys import Normalisation
    from opboost.align.rules import AlignRules
    from opboost.auditing import Audit, Record, audit
    from opboost.budget import Budget
    from opboost.columns import Flag, PrivateColumn
    from opboost.denoise.reconstruct import Reconstruction, reconstruct
    from opboost.domain import Domain, NumericMapping, Ordered, OrdinalMapping, Partition
    from opboost.errors import (
        ColumnError,
        ConfigError,
        DataError,
        DroppedIndexWarning,
        InferredBoundsWarning,
        OpBoostError,
        ParameterError,
        PeerError,
        PrivacyError,
        WireError,
    )
    from opboost.estimators import Desensitizer, OpBoostClassifier, OpBoostRegressor, load
    from opboost.guarantee import (
        DLDP,
        LDP,
        Flagged,
        Joint,
        LocalDLDP,
        NoGuarantee,
        PartitionDLDP,
    )
    from opboost.ledger import Caps, Ledger
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
    from opboost.party.channel import MemoryChannel
    from opboost.party.feature import FeatureParty
    from opboost.party.label import LabelParty
    from opboost.party.predicting import Predicted
    from opboost.rng import SecureRng, SeededRng

__version__ = "0.2.0.dev0"

__all__ = [
    "DLDP",
    "LDP",
    "AdjLaplace",
    "AdjMap",
    "AlignRules",
    "Audit",
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
    "DroppedIndexWarning",
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
    "Normalisation",
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
    "Predicted",
    "PrivacyError",
    "PrivateColumn",
    "RandomizedResponse",
    "Reconstruction",
    "Record",
    "SecureRng",
    "SeededRng",
    "UnaryEncoding",
    "WireError",
    "WithMissing",
    "audit",
    "load",
    "random_queries",
    "range_query_mse",
    "reconstruct",
    "theory",
    "weighted_kendall",
]

_LATER = {
    "AdjLaplace": "opboost.mechanisms",
    "AdjMap": "opboost.mechanisms",
    "AlignRules": "opboost.align.rules",
    "audit": "opboost.auditing",
    "Audit": "opboost.auditing",
    "Budget": "opboost.budget",
    "Caps": "opboost.ledger",
    "Certificate": "opboost.mechanisms",
    "ClampMap": "opboost.mechanisms",
    "ColumnError": "opboost.errors",
    "ConfigError": "opboost.errors",
    "DataError": "opboost.errors",
    "Desensitizer": "opboost.estimators",
    "DiscreteLaplace": "opboost.mechanisms",
    "DLDP": "opboost.guarantee",
    "Domain": "opboost.domain",
    "DroppedIndexWarning": "opboost.errors",
    "FeatureParty": "opboost.party.feature",
    "Flag": "opboost.columns",
    "Flagged": "opboost.guarantee",
    "GlobalMap": "opboost.mechanisms",
    "InferredBoundsWarning": "opboost.errors",
    "Joint": "opboost.guarantee",
    "LabelParty": "opboost.party.label",
    "LDP": "opboost.guarantee",
    "Ledger": "opboost.ledger",
    "load": "opboost.estimators",
    "LocalDLDP": "opboost.guarantee",
    "LocalMap": "opboost.mechanisms",
    "Mechanism": "opboost.mechanisms",
    "MemoryChannel": "opboost.party.channel",
    "NoGuarantee": "opboost.guarantee",
    "Normalisation": "opboost.align.keys",
    "NumericMapping": "opboost.domain",
    "OpBoostClassifier": "opboost.estimators",
    "OpBoostError": "opboost.errors",
    "OpBoostRegressor": "opboost.estimators",
    "Ordered": "opboost.domain",
    "OrderPreservingEncryption": "opboost.mechanisms",
    "OrdinalMapping": "opboost.domain",
    "ParameterError": "opboost.errors",
    "Partition": "opboost.domain",
    "PartitionDLDP": "opboost.guarantee",
    "PeerError": "opboost.errors",
    "Piecewise": "opboost.mechanisms",
    "Predicted": "opboost.party.predicting",
    "PrivacyError": "opboost.errors",
    "PrivateColumn": "opboost.columns",
    "random_queries": "opboost.metrics",
    "RandomizedResponse": "opboost.mechanisms",
    "range_query_mse": "opboost.metrics",
    "reconstruct": "opboost.denoise.reconstruct",
    "Reconstruction": "opboost.denoise.reconstruct",
    "Record": "opboost.auditing",
    "SecureRng": "opboost.rng",
    "SeededRng": "opboost.rng",
    "theory": "opboost.theory",
    "UnaryEncoding": "opboost.mechanisms",
    "weighted_kendall": "opboost.metrics",
    "WireError": "opboost.errors",
    "WithMissing": "opboost.mechanisms",
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
