"""The scikit-learn facade."""

from opboost.estimators.desensitizer import Desensitizer

__all__ = ["Desensitizer"]
