"""DP-EBM of ``interpret``: one party holds all raw columns and labels; noise hides the rows."""

from importlib.metadata import version

from interpret.privacy import DPExplainableBoostingClassifier
from loopback import in_one_process


def train(request, data):
    """Train at (epsilon, delta) with declared bounds, so that none are taken from the data."""
    model = DPExplainableBoostingClassifier(
        epsilon=request["epsilon"],
        delta=request["delta"],
        privacy_bounds=data["bounds"],
        feature_types=["nominal" if nominal else "continuous" for nominal in data["nominal"]],
        n_jobs=1,
    )
    model.fit(data["X"], data["y"])
    return lambda X: model.predict_proba(X)[:, 1]


in_one_process(version("interpret-core"), train)
