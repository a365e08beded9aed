"""NVFlare's vertical XGBoost in its simulator, without encryption."""

import contextlib
import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import xgboost
from fed_nvflare_loader import PartyLoader
from loopback import answer, now
from nvflare.app_opt.xgboost.recipes import XGBVerticalRecipe
from nvflare.recipe import SimEnv, set_per_site_config

if __name__ == "__main__":
    request = json.load(sys.stdin)
    data, own = np.load(request["data"]), request["own"]
    columns = data["X"].shape[1]
    recipe = XGBVerticalRecipe(
        name="vertical",
        min_clients=2,
        num_rounds=request["trees"],
        label_owner="site-1",
        early_stopping_rounds=request["trees"],
        xgb_params={**request["params"], "eval_metric": "auc"},
        model_file_name="model.json",
    )
    sites = {
        "site-1": {"data_loader": PartyLoader(request["data"], 0, own, True)},
        "site-2": {"data_loader": PartyLoader(request["data"], own, columns, False)},
    }
    set_per_site_config(recipe, sites)
    with tempfile.TemporaryDirectory() as folder:
        before = now()
        with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
            recipe.execute(SimEnv(clients=list(sites), workspace_root=folder))
        after = now()
        model = next(iter(sorted(Path(folder).rglob("model.json"))), None)
        if model is None:
            sys.exit("the simulator ended without a model")
        booster = xgboost.Booster(model_file=str(model))
        np.save(request["out"], booster.predict(xgboost.DMatrix(data["X_test"])))
    answer(version("nvflare"), before, after)
