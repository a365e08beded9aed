"""FedTree's vertical mode without privacy, all parties in one process."""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from fedtree import FLClassifier
from loopback import answer, carried

request = json.load(sys.stdin)
data = np.load(request["data"])
before, started = carried(), time.perf_counter()
model = FLClassifier(
    n_parties=2,
    mode="vertical",
    privacy_tech="none",
    n_trees=request["trees"],
    max_depth=3,
    learning_rate=0.1,
    objective="binary:logistic",
)
model.fit(data["X"], data["y"])
seconds = time.perf_counter() - started
chances = np.asarray(model.predict_proba(data["X_test"]))
np.save(request["out"], chances[:, -1] if chances.ndim > 1 else chances)
answer(version("fedtree"), seconds, before)
