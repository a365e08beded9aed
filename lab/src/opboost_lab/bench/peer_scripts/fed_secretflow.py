"""SecretFlow between two processes: SGB under homomorphic encryption, or XGBoost under MPC."""

import json
import sys
from importlib.metadata import version

from loopback import answer, now, ports, two_parties

PARTIES = ("label", "feature")
OKAMOTO_UCHIYAMA = {"schema": "ou", "key_pair": {"generate": {"bit_size": 2048}}}


def work(rank, request, trained, free):
    """Run one party; both run the same program, as SecretFlow requires."""
    import numpy as np
    import secretflow as sf
    import spu
    from secretflow.data import FedNdarray, PartitionWay
    from secretflow.ml.boost.sgb_v import Sgb, get_classic_XGB_params
    from secretflow.ml.boost.ss_xgb_v import Xgb

    places = {name: {"address": f"127.0.0.1:{free[i]}"} for i, name in enumerate(PARTIES)}
    sf.init(
        cluster_config={"parties": places, "self_party": PARTIES[rank]},
        ray_mode=False,
        logging_level="error",
    )
    label, feature = (sf.PYU(name) for name in PARTIES)
    own = request["own"]

    def part(key, first, last):
        return np.load(request["data"])[key][:, first:last]

    def rows(key):
        parts = {label: label(part)(key, 0, own), feature: feature(part)(key, own, None)}
        return FedNdarray(parts, PartitionWay.VERTICAL)

    y = label(lambda: np.load(request["data"])["y"].reshape(-1, 1))()
    truth = FedNdarray({label: y}, PartitionWay.VERTICAL)
    settings = {
        "num_boost_round": request["trees"],
        "max_depth": 3,
        "learning_rate": 0.1,
        "objective": "logistic",
        "reg_lambda": 1.0,
        "sketch_eps": 1 / 64,
    }
    if request["protocol"] == "he":
        heu = sf.HEU(
            {
                "sk_keeper": {"party": PARTIES[0]},
                "evaluators": [{"party": PARTIES[1]}],
                "he_parameters": OKAMOTO_UCHIYAMA,
            },
            spu.FieldType.FM128,
        )
        more = {"first_tree_with_label_holder_feature": False}
        booster = Sgb(heu)
        model = booster.train({**get_classic_XGB_params(), **settings, **more}, rows("X"), truth)
    else:
        nodes = [
            {"party": name, "address": f"127.0.0.1:{free[2 + i]}"} for i, name in enumerate(PARTIES)
        ]
        kind = {"protocol": "SEMI2K", "field": "FM64"}
        device = sf.SPU({"nodes": nodes, "runtime_config": kind})
        model = Xgb(device).train(settings, rows("X"), truth)
    predicted = model.predict(rows("X_test"), to_pyu=label)
    chances = sf.reveal(next(iter(predicted.partitions.values())))  # training runs until here
    trained(now())
    if rank == 0:
        np.save(request["out"], np.asarray(chances))
    sf.shutdown()


if __name__ == "__main__":
    request = json.load(sys.stdin)
    before = now()
    after = two_parties(work, request, ports(4))
    answer(version("secretflow"), before, after)
