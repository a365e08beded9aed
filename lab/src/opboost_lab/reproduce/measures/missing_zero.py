"""Treat zeros as the paper's code does (docs/errata.md, 12).

It trains XGBoost with 0 as "missing", though ranks and one-hot features start at 0, and then
predicts with 0 as an ordinary value.  In OpBoost, "missing" has one meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost as xgb

from opboost.boosting.xgboost_backend import TrainedXGBoost
from opboost.columns.codebook import Codebook, encode
from opboost.columns.dataframes import as_numbers, column
from opboost.grid import NumericMapping
from opboost.randomness.streams import SeededRng
from opboost.training.feature_matrix import OwnColumn
from opboost_lab.accuracy import GRID, PARAMS, measured
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.source import Source
from opboost_lab.reproduce.task import Json


def zeros_missing(
    source: Json, method: Json | None, epsilon: float, seed: int, consistent: bool
) -> Json:
    """Train XGBoost on two classes and ranks from 0, without noise if ``method`` is None.

    ``consistent`` treats zeros as missing in prediction, too.
    """
    data = Source(**source).data(seed)
    X, y, X_test, y_test = data.split()
    own = [OwnColumn.of(X, n) for n in X.column_names if n not in data.bounds]
    blocks: list[Any] = []
    books: dict[int, Codebook] = {}
    tests: list[Any] = []
    noise = SeededRng(seed)
    for place, (name, bounds) in enumerate(data.bounds.items()):
        mapping = NumericMapping(GRID, bounds, mapping="paper")
        cells = mapping.to_grid(as_numbers(name, column(X, name)).astype(np.float64))
        if method is not None:
            mechanism = Method(**method).mechanism(GRID, epsilon)
            cells = mechanism.sample(cells, rng=noise.child(name))
        codes, books[place] = encode(cells)
        blocks.append(codes.astype(np.float32)[:, None])
        plain = mapping.to_grid(as_numbers(name, column(X_test, name)).astype(np.float64))
        tests.append(plain.astype(np.float32)[:, None])
    train = np.hstack([*blocks, *(c.block(X).astype(np.float32) for c in own)])
    test = np.hstack([*tests, *(c.block(X_test).astype(np.float32) for c in own)])
    classes, coded = np.unique(y, return_inverse=True)
    params = {k: v for k, v in PARAMS["xgboost"].items() if k != "n_estimators"}
    params |= {"objective": "binary:logistic", "seed": seed}
    booster = xgb.train(params, xgb.DMatrix(train, coded, missing=0.0), 80)
    in_values = TrainedXGBoost(booster, "binary", train.shape[1]).replaced(
        {f: book.value_of for f, book in books.items()}
    )
    rows = xgb.DMatrix(test, missing=0.0 if consistent else np.nan)
    chances = in_values.native.predict(rows)
    return {"scores": measured(data, np.column_stack([1 - chances, chances]), y_test, classes)}
