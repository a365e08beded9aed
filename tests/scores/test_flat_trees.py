"""Our tree traversal agrees with the boosters' libraries; by-party trees use one party only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opboost.boosting import Problem, make_booster
from opboost.boosting.booster import check_by_party, fit_booster
from opboost.errors import DataError, ParameterError
from opboost.scores.flat_trees import by_group, predicted

BOOSTERS = {
    "xgboost": {"n_estimators": 12, "max_depth": 4, "eta": 0.3},
    "lightgbm": {"n_estimators": 12, "min_data_in_leaf": 3},
    "hist-gbdt": {"max_iter": 12, "min_samples_leaf": 3},
}
GROUPS = ((0, 2, 4), (1, 3), (5,))


def problem(task: str, seed: int, gaps: float = 0.1) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 12, (400, 6)).astype(np.float32)
    shown = X[:, 0] * X[:, 1] / 10 - X[:, 3] + 3 * (X[:, 5] > 6) + rng.normal(0, 1, 400)
    X[rng.random(X.shape) < gaps] = np.nan
    if task == "regression":
        return Problem(X, shown, "regression", seed=0)
    classes = 2 if task == "binary" else 3
    edges = np.quantile(shown, np.arange(1, classes) / classes)
    return Problem(X, np.searchsorted(edges, shown), task, classes, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), by_party=st.booleans(), gaps=st.sampled_from([0.0, 0.2]))
def test_our_own_walk_predicts_what_the_library_predicts(
    booster: str, task: str, seed: int, by_party: bool, gaps: float
) -> None:
    given_ = problem(task, seed, gaps)
    asked = Problem(
        given_.X, given_.y, given_.task, given_.classes, seed=0, groups=GROUPS if by_party else None
    )
    trained = fit_booster(make_booster(booster, BOOSTERS[booster]), asked)
    fresh = problem(task, seed + 1, 0.3).X
    found = trained.additive().predict(fresh)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, trained.predict(fresh), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_by_party_a_score_is_a_sum_over_groups(booster: str) -> None:
    plain = problem("multiclass", 3)
    asked = Problem(plain.X, plain.y, plain.task, plain.classes, seed=0, groups=GROUPS)
    trained = fit_booster(make_booster(booster, BOOSTERS[booster]), asked)
    model = trained.additive()  # type: ignore[attr-defined]
    parts = by_group(model.trees, GROUPS)
    assert all(len(part) for part in parts[:2])
    X = np.asarray(plain.X)
    margins = model.base + sum(
        part.sums(X[:, list(group)]) for part, group in zip(parts, GROUPS, strict=True)
    )
    np.testing.assert_allclose(
        predicted(margins, model.link), trained.predict(X), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_free_model_is_no_sum_over_parties(booster: str) -> None:
    trained = fit_booster(make_booster(booster, BOOSTERS[booster]), problem("regression", 3))
    with pytest.raises(DataError, match="columns of two parties"):
        by_group(trained.additive().trees, GROUPS)  # type: ignore[attr-defined]


class Own:
    """A user-defined booster."""

    def train(self, problem: Problem) -> None:
        raise AssertionError("never asked")


def test_boosters_that_cannot_keep_to_a_party_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="'gbdt' cannot do"):
        check_by_party("gbdt")
    asked = Problem(np.zeros((2, 1)), np.zeros(2), "regression", groups=((0,),))
    with pytest.raises(ParameterError, match="Own cannot do"):
        fit_booster(Own(), asked)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="GradientBoosting cannot do"):
        fit_booster(make_booster("gbdt"), asked)


def test_constraints_of_a_user_clash_with_those_of_the_parties() -> None:
    asked = Problem(np.zeros((4, 2)), np.arange(4.0), "regression", groups=((0,), (1,)))
    booster = make_booster("xgboost", {"interaction_constraints": [[0, 1]]})
    with pytest.raises(ParameterError, match="interaction_constraints itself"):
        fit_booster(booster, asked)


def test_objectives_whose_sums_stand_for_something_else_are_refused() -> None:
    asked = problem("regression", 1)
    trained = fit_booster(
        make_booster("xgboost", {"objective": "reg:squaredlogerror"}),
        Problem(asked.X, np.abs(asked.y), "regression"),
    )
    with pytest.raises(ParameterError, match="squaredlogerror"):
        trained.additive()  # type: ignore[attr-defined]
