"""FATE's Hetero SecureBoost between two processes, with 1,024-bit Paillier keys.

Its standalone federation passes messages in files, so no bytes cross the loopback.
"""

import json
import os
import sys
import tempfile
from importlib.metadata import version

from loopback import answer, now, two_parties

PARTIES = [("guest", "9999"), ("host", "10000")]


def work(rank, request, trained, folder):
    """Run one party; the guest holds the label."""
    import numpy as np
    import pandas as pd
    from fate.arch import Context
    from fate.arch.computing.backends.standalone import CSession
    from fate.arch.dataframe import PandasReader
    from fate.arch.federation import FederationBuilder
    from fate.ml.ensemble import HeteroSecureBoostGuest, HeteroSecureBoostHost

    role, own = PARTIES[rank][0], request["own"]
    computing = CSession(f"session-{role}", data_dir=folder, options={"task_cores": 1})
    federation = FederationBuilder("job", PARTIES[rank], PARTIES).build_standalone(computing)
    ctx = Context(computing=computing, federation=federation)
    ctx.cipher.set_phe(ctx.device, {"kind": "paillier", "key_length": 1024})
    data = np.load(request["data"])

    def frame(key, labels):
        columns = data[key][:, :own] if rank == 0 else data[key][:, own:]
        table = pd.DataFrame(columns, columns=[f"x{j}" for j in range(columns.shape[1])])
        table.insert(0, "id", [f"{i:08d}" for i in range(len(table))])
        table.insert(0, "sample_id", table["id"])
        if rank == 0:
            table["y"] = labels
        name = "y" if rank == 0 else None
        reader = PandasReader("sample_id", match_id_name="id", label_name=name)
        return reader.to_frame(ctx, table)

    shape = {"num_trees": request["trees"], "max_depth": 3, "max_bin": 32}
    if rank == 0:
        model = HeteroSecureBoostGuest(**shape, learning_rate=0.1, l2=1.0)
    else:
        model = HeteroSecureBoostHost(**shape)
    model.fit(ctx.sub_ctx("fit"), frame("X", data["y"]))
    trained(now())
    test = frame("X_test", np.arange(len(data["X_test"])) % 2)
    predicted = model.predict(ctx.sub_ctx("predict"), test)
    if rank == 0:
        table = predicted.as_pd_df().sort_values("id")
        np.save(request["out"], table["predict_score"].to_numpy(dtype=float))
    os._exit(0)  # its workers would not end by themselves


if __name__ == "__main__":
    request = json.load(sys.stdin)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        before = now()
        after = two_parties(work, request, folder)
    answer(version("pyfate"), before, after)
