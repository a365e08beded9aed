"""Trees that each use one party's columns, for two feature parties and the label party."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import ParameterError
from opboost.scores.flat_trees import by_group

GRID = op.Domain(1, 16)


def numeric(name: str) -> op.PrivateColumn:
    return op.PrivateColumn(name, op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 3.0))


def trained(structure: str, booster: str = "xgboost") -> op.OpBoostRegressor:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((900, 4)), columns=["a", "b", "c", "d"])
    y = 3 * X.a * X.b + X.c * X.d + X.a * X.c
    shop = op.FeatureParty(X[["a"]], [numeric("a")], name="shop")
    telco = op.FeatureParty(X[["b", "c"]], [numeric("b"), numeric("c")], name="telco")
    bank = op.LabelParty(
        X[["d"]], y, booster=booster, denoise=False, random_state=1, structure=structure
    )
    return bank.train([op.MemoryChannel(shop), op.MemoryChannel(telco)])


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm", "hist-gbdt"])
def test_each_tree_keeps_to_one_party(booster: str, tmp_path: Path) -> None:
    model = trained("by-party", booster)
    layout = model.trained_model_.layout
    assert layout.groups() == {None: (3,), "shop": (0,), "telco": (1, 2)}
    parts = by_group(model.trained_.additive().trees, list(layout.groups().values()))
    assert all(len(part) for part in parts)
    model.save(tmp_path / "m.opboost")
    assert op.load(tmp_path / "m.opboost").trained_model_.layout.parties == layout.parties


def test_without_the_constraint_trees_mix_parties() -> None:
    model = trained("free")
    groups = [(3,), (0,), (1, 2)]
    assert model.trained_model_.layout.parties == ()
    with pytest.raises(op.DataError, match="columns of two parties"):
        by_group(model.trained_.additive().trees, groups)


def test_a_booster_that_cannot_keep_to_a_party_is_refused_before_anybody_releases() -> None:
    with pytest.raises(ParameterError, match="'gbdt' cannot do"):
        op.LabelParty(None, [0, 1], booster="gbdt", structure="by-party")
    with pytest.raises(ParameterError, match="'free' or 'by-party'"):
        op.LabelParty(None, [0, 1], structure="sideways")  # type: ignore[arg-type]
