"""The scikit-learn estimators and the transformer."""

from opboost.estimators.boosted import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.desensitizer import Desensitizer
from opboost.estimators.importances import Importances, importances
from opboost.estimators.saving import load

__all__ = [
    "Desensitizer",
    "Importances",
    "OpBoostClassifier",
    "OpBoostRegressor",
    "importances",
    "load",
]
