"""Plain XGBoost on the joined table: what all others are measured against."""

import json
import sys
import time

import numpy as np
import xgboost
from loopback import answer, carried

request = json.load(sys.stdin)
data = np.load(request["data"])
before = carried()
started = time.perf_counter()
booster = xgboost.train(
    request["params"], xgboost.QuantileDMatrix(data["X"], data["y"]), request["trees"]
)
seconds = time.perf_counter() - started
chances = booster.inplace_predict(data["X_test"])
np.save(request["out"], chances)
answer(xgboost.__version__, seconds, before)
