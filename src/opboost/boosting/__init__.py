"""Train on codes with a stock booster, then replace the model's cuts by values.

``booster.py`` defines the interface; ``xgboost_backend.py``, ``lightgbm_backend.py`` and
``sklearn_backend.py`` implement it.  Each edits its own library's model format, so the result
loads in that library without OpBoost and predicts bit for bit as the model in codes did.
"""

from opboost.boosting.booster import Booster, Problem, Task, Trained, make_booster

__all__ = ["Booster", "Problem", "Task", "Trained", "make_booster"]
