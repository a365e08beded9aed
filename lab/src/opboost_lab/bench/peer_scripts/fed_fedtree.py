"""FedTree's vertical mode, all parties in one process; it splits the columns evenly."""

from importlib.metadata import version

from fedtree import FLClassifier
from loopback import in_one_process


def train(request, data):
    """Train without privacy, or with homomorphically encrypted gradients."""
    model = FLClassifier(
        n_parties=2,
        mode="vertical",
        partition_mode="vertical",  # without it the library crashes
        privacy_tech=request.get("privacy", "none"),
        n_trees=request["trees"],
        max_depth=3,
        learning_rate=0.1,
        objective="binary:logistic",
    )
    model.fit(data["X"], data["y"])
    return lambda X: model.predict_proba(X)[:, -1]


in_one_process(version("fedtree"), train)
