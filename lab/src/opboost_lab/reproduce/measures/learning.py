"""Train one model: how well it predicts, and how many cuts it asks of the feature party."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.budgets.budget import Budget
from opboost_lab.accuracy import GRID, fitted, plain_scores, scores
from opboost_lab.declared_sets import all_private
from opboost_lab.record_totals import Way, trained
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.source import Source
from opboost_lab.reproduce.task import Json


def learned(
    source: Json,
    method: Json,
    epsilon: float,
    seed: int,
    booster: str,
    mapping: str,
    split: Json = None,
) -> Json:
    """Train on rows that a method desensitised, and measure on clean ones.

    With ``split``, ``epsilon`` is that of a whole record, and is split over the columns: over all
    of them (``"even"``), or over this many in each row.
    """
    data = Source(**source).data(seed)
    way = Method(**method)
    estimator = fitted(
        data,
        way.mechanism(GRID, epsilon),
        seed,
        booster,
        mapping,
        way.family == "FederBoost",
        "auto" if way.denoise else False,
        budget=_budget(split),
    )
    return {
        "scores": scores(data, estimator),
        "denoised": bool(estimator.denoised_),
        **_asked(estimator),
    }


def unprotected(source: Json, on_grid: bool, seed: int, booster: str, mapping: str) -> Json:
    """Train the same booster without noise, on raw values or on the cells of the grid."""
    data = Source(**source).data(seed)
    return {"scores": plain_scores(data, on_grid, booster, mapping, seed)}


def at_record_total(source: Json, total: float, way: Way, seed: int, booster: str) -> Json:
    """Train at a record total, with every column private.

    ``way`` is the plan of a record budget, denoised if that helps, or a mechanism whose level is
    split evenly over all columns, as the paper's text says.
    """
    data = all_private(Source(**source).data(seed))
    denoise = "auto" if way == "record" else False
    estimator = trained(data, total, seed, way, denoise, booster=booster)
    return {"scores": scores(data, estimator), "denoised": bool(estimator.denoised_)}


def _budget(split: Json) -> Budget | None:
    if split is None:
        return None
    return Budget.even() if split == "even" else Budget.sampled(int(split))


def _asked(estimator: Any) -> Json:
    """Return the number of cuts of private features, and the share of these in all split nodes."""
    private = sum(len(c.feature_names()) for c in estimator.private_columns_)
    trained = estimator.trained_
    cuts = sum(len(c) for feature, c in trained.cuts().items() if feature < private)
    if hasattr(trained.native, "get_score"):
        nodes = np.zeros(trained.features)
        for name, count in trained.native.get_score(importance_type="weight").items():
            nodes[int(name[1:])] = count
    else:
        nodes = trained.importance()
    return {"cuts": cuts, "share": float(nodes[:private].sum() / max(nodes.sum(), 1e-12))}
