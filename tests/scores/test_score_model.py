"""A score model on the wire is either refused or evaluated exactly."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opboost as op
from opboost.errors import PeerError
from opboost.scores.flat_trees import FlatTrees, Tree
from opboost.scores.score_model import ScoreModel

GRID = op.Domain(1, 10)
AGE = op.PrivateColumn("age", op.NumericMapping(GRID, (0, 1)), op.WindowMap(GRID, total=2.0))
TOWN = op.PrivateColumn("town", None, op.SubsetSelection(["north", "south", "east"], 1.0))
COLUMNS = [AGE, TOWN]


def model(groups: int = 1) -> ScoreModel:
    trees = [
        Tree(
            k,
            [0, 2, 0, 0, 0],
            [4 + k, 1, 0, 0, 0],
            [1, 3, -1, -1, -1],
            [2, 4, -1, -1, -1],
            [0] * 5,
            [0, 0, 90, -20, 7 + k],
        )
        for k in range(groups)
    ]
    if groups == 1:
        return ScoreModel(FlatTrees.of(trees, 1), cuts=(0, 50))
    return ScoreModel(FlatTrees.of(trees, groups), book=np.eye(groups, dtype=np.int64))


@pytest.mark.parametrize("groups", [1, 3])
def test_a_model_comes_back_as_it_was(groups: int) -> None:
    plain = model(groups).to_plain()
    again = ScoreModel.of_plain(plain)
    again.check(COLUMNS)
    assert again.to_plain() == plain
    assert again.reads(COLUMNS) == [0, 1]


def test_cells_follow_the_sums() -> None:
    table = {"age": np.array([0.05, 0.05, 0.95]), "town": np.array(["south", "north", "east"])}
    import pandas as pd

    frame = pd.DataFrame(table)
    prepared = [c.prepare(frame) for c in COLUMNS]
    # age below cell 4: south has 7, others -20; age above: 90
    assert model().cells(COLUMNS, prepared, 2.0).cells.tolist() == [2, 1, 3]


@pytest.mark.parametrize("level", [0.5, 4.0, 8.0])
def test_the_promise_is_plain_ldp_at_the_level(level: float) -> None:
    for made in (model(), model(3)):
        column = made.column(level)
        assert column.guarantee() == op.LDP(level)
        assert column.mechanism.exact_epsilon() <= level


def test_every_part_of_a_model_is_in_its_digest() -> None:
    first = model()
    digest = first.digest(first.column(4.0))
    assert digest != first.digest(first.column(4.5))
    leaf, cut = first.to_plain(), first.to_plain()
    leaf[3][0][6][2] -= 1
    cut[1][0] += 1
    for plain in (leaf, cut):
        other = ScoreModel.of_plain(plain)
        assert other.digest(other.column(4.0)) != digest


numbers = st.one_of(
    st.integers(-(2**40), 2**40), st.integers(-3, 6), st.floats(), st.none(), st.text(max_size=2)
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_comes_is_refused_or_evaluated(data: Any) -> None:
    plain = copy.deepcopy(model(data.draw(st.sampled_from([1, 3]))).to_plain())
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = plain
        while True:
            k = data.draw(st.integers(0, len(place) - 1))
            if not isinstance(place[k], list) or not place[k] or data.draw(st.booleans()):
                break
            place = place[k]
        place[k] = data.draw(numbers)
    try:
        made = ScoreModel.of_plain(plain)
        made.check(COLUMNS)
    except PeerError:
        return
    made.cells_of(np.array([[1.0, 0, 1, 0], [10.0, 1, 0, 0]]), 4.0)
