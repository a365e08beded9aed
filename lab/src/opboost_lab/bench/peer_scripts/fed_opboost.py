"""OpBoost: both parties as processes over mutual TLS, from their start to the model."""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
from loopback import answer, now

from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_declared_federation
from opboost.estimators import load

request = json.load(sys.stdin)
data = np.load(request["data"])
X, y, own = data["X"], data["y"], request["own"]
names = [f"x{j}" for j in range(X.shape[1])]
table = pa.table(dict(zip(names, X.T, strict=True)))
ids = pa.array([f"p{i:08d}" for i in range(len(y))])
declared = f"[budget]\nrecord = {request['record']}\n"
for name, bounds in zip(names[own:], data["bounds"][own:].tolist(), strict=True):
    declared += f"[columns.{name}]\nbounds = {bounds}\n"
with tempfile.TemporaryDirectory() as folder:
    federation = write_declared_federation(
        Path(folder),
        table.select(names[:own]).append_column("id", ids).append_column("y", pa.array(y)),
        "y",
        {"shop": table.select(names[own:]).append_column("id", ids)},
        {"shop": declared},
        booster={"num_boost_round": request["trees"], "max_depth": 3, "eta": 0.1, "nthread": 1},
        align="given",
    )
    before = now()
    run_federation(federation)
    after = now()
    model = load(Path(folder) / LABEL_PARTY / "model.opboost")
test = pa.table(dict(zip(names, data["X_test"].T, strict=True)))
np.save(request["out"], model.predict_proba(test.select(list(model.feature_names_in_)))[:, 1])
answer(version("opboost"), before, after)
