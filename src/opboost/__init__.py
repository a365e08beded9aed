"""OpBoost: vertical federated gradient boosting by order-preserving desensitization.

Names are imported when they are first used, so that the command line and a feature party start
quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opboost import theory
    from opboost.auditing import Audit, Record, audit
    from opboost.budgets.budget import Budget
    from opboost.budgets.record_plan import RecordPlan
    from opboost.columns.private_column import Flag, PrivateColumn
    from opboost.denoise.reconstruct import Reconstruction, reconstruct
    from opboost.errors import (
        ColumnError,
        ConfigError,
        DataError,
        DroppedIndexWarning,
        InferredBoundsWarning,
        OpBoostError,
        ParameterError,
        PeerError,
        PlatformWarning,
        PrivacyError,
        WireError,
    )
    from opboost.estimators import (
        Desensitizer,
        Importances,
        OpBoostClassifier,
        OpBoostRegressor,
        importances,
        load,
    )
    from opboost.grid import (
        Dates,
        Domain,
        Integers,
        NumericMapping,
        Ordered,
        OrdinalMapping,
        Partition,
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
        SubsetSelection,
        UnaryEncoding,
        WindowMap,
        WindowWithMissing,
        WithMissing,
    )
    from opboost.metrics import random_queries, range_query_mse, weighted_kendall
    from opboost.parties.channel import MemoryChannel
    from opboost.parties.feature.feature_party import FeatureParty
    from opboost.parties.label.label_party import LabelParty
    from opboost.parties.label.predictions import Predicted
    from opboost.promises import (
        DLDP,
        LDP,
        CappedDLDP,
        Flagged,
        Joint,
        LocalDLDP,
        NoGuarantee,
        PartitionDLDP,
    )
    from opboost.psi.align_rules import AlignRules
    from opboost.psi.row_keys import Normalisation
    from opboost.randomness.streams import SecureRng, SeededRng
    from opboost.scores.score_budget import ScoreBudget

__version__ = "0.2.0"

__all__ = [
    "DLDP",
    "LDP",
    "AdjLaplace",
    "AdjMap",
    "AlignRules",
    "Audit",
    "Budget",
    "CappedDLDP",
    "Caps",
    "Certificate",
    "ClampMap",
    "ColumnError",
    "ConfigError",
    "DataError",
    "Dates",
    "Desensitizer",
    "DiscreteLaplace",
    "Domain",
    "DroppedIndexWarning",
    "FeatureParty",
    "Flag",
    "Flagged",
    "GlobalMap",
    "Importances",
    "InferredBoundsWarning",
    "Integers",
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
    "PlatformWarning",
    "Predicted",
    "PrivacyError",
    "PrivateColumn",
    "RandomizedResponse",
    "Reconstruction",
    "Record",
    "RecordPlan",
    "ScoreBudget",
    "SecureRng",
    "SeededRng",
    "SubsetSelection",
    "UnaryEncoding",
    "WindowMap",
    "WindowWithMissing",
    "WireError",
    "WithMissing",
    "audit",
    "importances",
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
    "AlignRules": "opboost.psi.align_rules",
    "audit": "opboost.auditing",
    "Audit": "opboost.auditing",
    "Budget": "opboost.budgets.budget",
    "Caps": "opboost.ledger",
    "Certificate": "opboost.mechanisms",
    "CappedDLDP": "opboost.promises",
    "ClampMap": "opboost.mechanisms",
    "ColumnError": "opboost.errors",
    "ConfigError": "opboost.errors",
    "DataError": "opboost.errors",
    "Desensitizer": "opboost.estimators",
    "DiscreteLaplace": "opboost.mechanisms",
    "DLDP": "opboost.promises",
    "Domain": "opboost.grid",
    "DroppedIndexWarning": "opboost.errors",
    "PlatformWarning": "opboost.errors",
    "FeatureParty": "opboost.parties.feature.feature_party",
    "Flag": "opboost.columns.private_column",
    "Flagged": "opboost.promises",
    "GlobalMap": "opboost.mechanisms",
    "importances": "opboost.estimators",
    "Importances": "opboost.estimators",
    "InferredBoundsWarning": "opboost.errors",
    "Integers": "opboost.grid",
    "Dates": "opboost.grid",
    "Joint": "opboost.promises",
    "LabelParty": "opboost.parties.label.label_party",
    "LDP": "opboost.promises",
    "Ledger": "opboost.ledger",
    "load": "opboost.estimators",
    "LocalDLDP": "opboost.promises",
    "LocalMap": "opboost.mechanisms",
    "Mechanism": "opboost.mechanisms",
    "MemoryChannel": "opboost.parties.channel",
    "NoGuarantee": "opboost.promises",
    "Normalisation": "opboost.psi.row_keys",
    "NumericMapping": "opboost.grid",
    "OpBoostClassifier": "opboost.estimators",
    "OpBoostError": "opboost.errors",
    "OpBoostRegressor": "opboost.estimators",
    "Ordered": "opboost.grid",
    "OrderPreservingEncryption": "opboost.mechanisms",
    "OrdinalMapping": "opboost.grid",
    "ParameterError": "opboost.errors",
    "Partition": "opboost.grid",
    "PartitionDLDP": "opboost.promises",
    "PeerError": "opboost.errors",
    "Piecewise": "opboost.mechanisms",
    "Predicted": "opboost.parties.label.predictions",
    "PrivacyError": "opboost.errors",
    "PrivateColumn": "opboost.columns.private_column",
    "random_queries": "opboost.metrics",
    "RandomizedResponse": "opboost.mechanisms",
    "range_query_mse": "opboost.metrics",
    "reconstruct": "opboost.denoise.reconstruct",
    "Reconstruction": "opboost.denoise.reconstruct",
    "Record": "opboost.auditing",
    "RecordPlan": "opboost.budgets.record_plan",
    "ScoreBudget": "opboost.scores.score_budget",
    "SecureRng": "opboost.randomness.streams",
    "SeededRng": "opboost.randomness.streams",
    "theory": "opboost.theory",
    "SubsetSelection": "opboost.mechanisms",
    "UnaryEncoding": "opboost.mechanisms",
    "weighted_kendall": "opboost.metrics",
    "WindowMap": "opboost.mechanisms",
    "WireError": "opboost.errors",
    "WindowWithMissing": "opboost.mechanisms",
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
