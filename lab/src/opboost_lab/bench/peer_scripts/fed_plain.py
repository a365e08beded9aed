"""Plain XGBoost in one process: on the joined table, or only on the label party's columns."""

import xgboost
from loopback import in_one_process


def train(request, data):
    """Train on all columns, or only on the label party's."""
    columns = slice(0, request["own"] if request.get("alone") else None)
    rows = xgboost.QuantileDMatrix(data["X"][:, columns], data["y"])
    booster = xgboost.train(request["params"], rows, request["trees"])
    return lambda X: booster.inplace_predict(X[:, columns])


in_one_process(xgboost.__version__, train)
