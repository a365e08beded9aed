"""Train on codes with a stock booster, then put values in the place of cuts.

``booster.py`` says what a booster does; ``xgboost_backend.py``, ``lightgbm_backend.py`` and
``sklearn_backend.py`` are the stock ones.  Each edits its own library's model form, so what comes
out loads in that library without us and predicts bit for bit as the model in codes did.
"""

from opboost.boosting.booster import Booster, Problem, Task, Trained, make_booster

__all__ = ["Booster", "Problem", "Task", "Trained", "make_booster"]
