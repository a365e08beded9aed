"""XGBoost on split columns: by its collective (every party holds the label), or over gRPC."""

import json
import multiprocessing
import sys
import time

import numpy as np
import xgboost
import xgboost.federated
from loopback import answer, now, ports, two_parties
from xgboost.tracker import RabitTracker

WORLD = 2


def work(rank, request, trained, args):
    """Run one party: the first holds the label and its columns, the second the others."""
    data, own = np.load(request["data"]), request["own"]
    columns = slice(0, own) if rank == 0 else slice(own, None)
    if args["dmlc_communicator"] == "federated":
        args = {**args, "federated_rank": rank}
    with xgboost.collective.CommunicatorContext(**args):
        split = xgboost.core.DataSplitMode.COL
        label = data["y"] if rank == 0 or args["dmlc_communicator"] == "rabit" else None
        rows = xgboost.DMatrix(data["X"][:, columns], label, data_split_mode=split)
        booster = xgboost.train(request["params"], rows, request["trees"])
        trained(now())
        test = xgboost.DMatrix(data["X_test"][:, columns], data_split_mode=split)
        chances = booster.predict(test)
        if rank == 0:
            np.save(request["out"], chances)


if __name__ == "__main__":
    request = json.load(sys.stdin)
    before = now()
    if request["communicator"] == "rabit":
        tracker = RabitTracker(n_workers=WORLD, host_ip="127.0.0.1")
        tracker.start()
        args = {**tracker.worker_args(), "dmlc_communicator": "rabit"}
        after = two_parties(work, request, args)
    else:
        (port,) = ports(1)
        args = {
            "dmlc_communicator": "federated",
            "federated_server_address": f"127.0.0.1:{port}",
            "federated_world_size": WORLD,
        }
        server = multiprocessing.get_context("fork").Process(
            target=xgboost.federated.run_federated_server, args=(WORLD, port)
        )
        server.start()
        time.sleep(0.5)
        after = two_parties(work, request, args)
        server.kill()
    answer(xgboost.__version__, before, after)
