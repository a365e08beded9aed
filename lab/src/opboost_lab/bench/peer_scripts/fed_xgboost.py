"""XGBoost's vertical federated mode over gRPC: gradients and the model are seen by both parties."""

import json
import multiprocessing
import socket
import sys
import time

import numpy as np
import xgboost
import xgboost.federated
from loopback import answer, carried

request = json.load(sys.stdin)
WORLD = 2


def serve(port):
    """The server that hands messages on."""
    xgboost.federated.run_federated_server(WORLD, port)


def work(rank, port, request):
    """One party: the first holds the label and its columns, the second the others."""
    data, own = np.load(request["data"]), request["own"]
    columns = slice(0, own) if rank == 0 else slice(own, None)
    args = {
        "dmlc_communicator": "federated",
        "federated_server_address": f"127.0.0.1:{port}",
        "federated_world_size": WORLD,
        "federated_rank": rank,
    }
    with xgboost.collective.CommunicatorContext(**args):
        split = xgboost.core.DataSplitMode.COL
        label = data["y"] if rank == 0 else None
        rows = xgboost.DMatrix(data["X"][:, columns], label, data_split_mode=split)
        booster = xgboost.train(request["params"], rows, request["trees"])
        test = xgboost.DMatrix(data["X_test"][:, columns], data_split_mode=split)
        chances = booster.predict(test)
        if rank == 0:
            np.save(request["out"], chances)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("fork")
    before, started = carried(), time.perf_counter()
    server = context.Process(target=serve, args=(port,))
    server.start()
    time.sleep(0.5)
    parties = [context.Process(target=work, args=(r, port, request)) for r in range(WORLD)]
    for party in parties:
        party.start()
    for party in parties:
        party.join()
    seconds = time.perf_counter() - started
    server.kill()
    if any(party.exitcode for party in parties):
        sys.exit("a party failed")
    answer(xgboost.__version__, seconds, before)
