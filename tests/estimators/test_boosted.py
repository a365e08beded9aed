"""Classifier and regressor: privacy, prediction, saving, and use with scikit-learn."""

from __future__ import annotations

import datetime
import pickle
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import opboost as op
from opboost.boosting import make_booster
from opboost.budgets.release_accounting import LOADED
from opboost.grid import RawUnits

GRID = op.Domain(1, 10)
M = op.ClampMap(GRID, epsilon=0.64)
SEED = op.SeededRng(7)
BOOSTERS = ["xgboost", "lightgbm", "gbdt", "hist-gbdt"]


def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X[["mean radius", "worst texture", "worst area", "mean smoothness"]]
    bounds = {"mean radius": (5, 30), "worst texture": (10, 50), "worst area": (100, 4500)}
    return X, y, bounds


def classifier(**changes):
    bounds = cancer()[2]
    arguments = {"bounds": bounds, "noise_rng": SEED, "random_state": 0, **changes}
    return op.OpBoostClassifier(arguments.pop("mechanism", M), **arguments)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_it_learns_binary_multiclass_and_regression(booster):
    X, y, bounds = cancer()
    strong = op.ClampMap(GRID, 2.0)
    clf = op.OpBoostClassifier(
        strong, bounds=bounds, booster=booster, noise_rng=SEED, random_state=0
    )
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert roc_auc_score(y_test, clf.fit(train, y_train).predict_proba(test)[:, 1]) > 0.93
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["a", "b", "c"])[y]
    many = op.OpBoostClassifier(
        strong, bounds={"proline": (200, 1800)}, booster=booster, noise_rng=SEED, random_state=0
    ).fit(X, names)
    assert many.score(X, names) > 0.95
    assert many.classes_.tolist() == ["a", "b", "c"]
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    reg = op.OpBoostRegressor(
        strong,
        bounds={"bmi": (15, 45), "s5": (3, 7)},
        booster=booster,
        noise_rng=SEED,
        random_state=0,
    )
    assert r2_score(y, reg.fit(X, y).predict(X)) > 0.4


def test_clamp_map_beats_global_map_at_the_same_promise():
    """Use the digits, with 64 private columns; swapped mechanisms would miss this margin."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    score = {}
    for kind in (op.ClampMap, op.GlobalMap):
        clf = op.OpBoostClassifier(
            kind(GRID, 0.32),
            bounds=(0, 16),
            booster_params={"n_estimators": 30},
            noise_rng=SEED,
            random_state=0,
            denoise=False,
        )
        score[kind] = clf.fit(train, y_train).score(test, y_test)
    assert score[op.ClampMap] > score[op.GlobalMap] + 0.05


def test_no_raw_private_value_reaches_the_booster():
    """This holds for training rows and for held-out rows."""
    X, y, bounds = cancer()
    seen = []

    class Watching:
        def train(self, problem):
            seen.extend([problem.X, problem.eval_set[0]])
            return make_booster("xgboost").train(problem)

    clf = classifier(booster=Watching(), noise_rng=None, denoise=False)
    clf.fit(X[:400], y[:400], eval_set=(X[400:], y[400:]), early_stopping_rounds=5)
    for matrix, rows in ((seen[0], X[:400]), (seen[1], X[400:])):
        for j, name in enumerate(bounds):
            column = matrix[:, j]
            assert set(np.unique(column)) <= set(range(10))  # only codes
            cells = op.NumericMapping(GRID, bounds[name]).to_grid(rows[name])
            assert (column + 1 != cells).mean() > 0.2  # and noisy ones
        assert np.allclose(matrix[:, 3], rows["mean smoothness"])  # own columns unchanged


@pytest.mark.parametrize("kind", [op.OpBoostClassifier, op.OpBoostRegressor])
def test_held_out_rows_are_a_pair_or_a_list_with_one(kind):
    X, y, bounds = cancer()
    pair = (X[400:], y[400:])
    found = []
    for given in (
        pair,
        list(pair),
        [pair],
        [list(pair)],
        (pair,),
        [(pl.DataFrame(X[400:]), y[400:])],
    ):
        model = kind(M, bounds=bounds, noise_rng=SEED, random_state=0, denoise=False)
        model.fit(X[:400], y[:400], eval_set=given, early_stopping_rounds=3)
        found.append(model.predict(X))
    assert all((f == found[0]).all() for f in found)
    model = kind(M, bounds=bounds)
    with pytest.raises(op.ParameterError, match="holds 2 pairs, and training watches one"):
        model.fit(X, y, eval_set=[pair, pair])
    for wrong in ([], (), X, (X, y, y), [X], "valid"):
        with pytest.raises(op.ParameterError, match=r"eval_set must be \(X, y\), or a list"):
            model.fit(X, y, eval_set=wrong)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_the_model_is_a_stock_object(booster):
    X, y, _ = cancer()
    clf = classifier(booster=booster).fit(X, y)
    kinds = {"xgboost": xgboost.Booster, "lightgbm": lightgbm.Booster}
    if booster in kinds:
        assert type(clf.model_) is kinds[booster]
    else:
        assert type(clf.model_).__module__.startswith("sklearn.")
    matrix = clf.model_matrix(X, units="grid").to_numpy()
    assert set(np.unique(matrix[:, 0])) <= set(range(1, 11))
    assert (clf.trained_.predict(matrix[:, :4]) == clf.predict_proba(X)).all()
    assert clf.feature_importances_.shape == (4,)
    assert clf.feature_importances_.sum() == pytest.approx(1)


def test_raw_cuts_beyond_the_grid_send_every_row_one_way():
    mapping = op.NumericMapping(GRID, (0, 1))
    assert RawUnits(mapping, False)(1.0) == -np.inf
    assert RawUnits(mapping, False)(11.0) == np.inf
    assert RawUnits(mapping, True)(10.0) == np.inf
    assert RawUnits(mapping, False)(-np.inf) == -np.inf


def test_prediction_on_plain_and_on_desensitised_rows():
    X, y, _ = cancer()
    clf = classifier(mechanism=op.ClampMap(GRID, 1.0)).fit(X[:300], y[:300])
    X, y = X[300:], y[300:]
    plain, noisy = clf.predict_proba(X), clf.predict_proba(X, desensitize=True)
    assert not (plain == noisy).all()
    assert roc_auc_score(y, plain[:, 1]) > roc_auc_score(y, noisy[:, 1]) > 0.6
    assert (clf.predict_proba(X, desensitize=True) == noisy).all()  # one release, remembered
    assert clf.predict(X, desensitize=True).shape == (269,)


def test_nominal_missing_and_own_categorical_columns():
    rng = np.random.default_rng(0)
    n = 800
    table = pd.DataFrame(
        {
            "city": rng.choice(["north", "south", "east"], n),
            "kind": rng.choice(["a", "b"], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(20, 80, n)),
            "own": rng.choice(["x", "y", None], n),
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    y = ((table["city"] == "north") ^ (table["own"] == "x")).astype(int)
    clf = op.OpBoostClassifier(
        {
            "city": op.UnaryEncoding(["north", "south", "east"], 6.0),
            "kind": op.RandomizedResponse(GRID, 3.0),
            "age": op.ClampMap(GRID, 2.0),
        },
        bounds={"age": (20, 80)},
        categories={"kind": ["a", "b"]},
        missing={"age": op.Flag(3.0, 50)},
        noise_rng=SEED,
        random_state=0,
    ).fit(table, y)
    assert clf.score(table, y) > 0.9
    assert clf.model_features_[:6] == [
        "city=north",
        "city=south",
        "city=east",
        "kind=a",
        "kind=b",
        "age",
    ]
    assert clf.feature_importances_.shape == (5,)
    gaps = clf.model_matrix(table)["age"].isna()
    assert gaps.sum() == table["age"].isna().sum()  # training and prediction agree
    new = table.head(3).assign(own=["never seen", "x", "y"])
    assert clf.predict(new).shape == (3,)
    bad = table.head(3).assign(city=["west", "north", "north"])
    with pytest.raises(op.ColumnError, match="'city' does not fit"):
        clf.predict(bad)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_names_does_not_get_into_a_model(kind, tmp_path):
    rng = np.random.default_rng(0)
    age, y = rng.uniform(20, 80, 300), rng.integers(0, 2, 300)
    names = [f"person-{i}" for i in range(300)]
    clf = op.OpBoostClassifier(M, bounds={"age": (20, 80)}, booster="gbdt")
    rule = (
        r"Column 'name' holds more than 64 different texts, and a model lists them all "
        r"\(300 different ones\)\. Declare them as public \(categories=\{'name': \[\.\.\.\]\}\), "
        r"replace them by numbers or fewer groups, or drop the column\."
    )
    with pytest.raises(op.ColumnError, match=rule) as error:
        clf.fit(kind({"age": age, "name": names}), y)
    assert "300" not in error.value.public
    assert "person" not in str(error.value)
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=i) for i in range(300)]
    clf.fit(kind({"age": age, "name": days}), y)  # dates are numbers, so their texts are not listed
    with pytest.raises(op.ColumnError, match="'name' holds more than 64 different texts"):
        op.LabelParty(kind({"name": names}), y)  # before any other party releases anything
    with pytest.raises(op.ColumnError, match="Column 1 holds more than 64 different texts"):
        op.OpBoostClassifier(M, bounds={0: (20, 80)}).fit(
            np.array(list(zip(age, names, strict=True)), dtype=object), y
        )
    few = [f"city-{i % 64}" for i in range(300)]
    clf.fit(kind({"age": age, "name": few}), y).save(tmp_path / "m.opboost")
    declared = op.OpBoostClassifier(
        {"age": M, "name": op.UnaryEncoding(names, 1.0)}, bounds={"age": (20, 80)}, booster="gbdt"
    )
    assert len(declared.fit(kind({"age": age, "name": names}), y).model_features_) == 301


def test_class_weights_and_sample_weights():
    """Denoising is off, because posterior draws make even the plain model more confident."""
    X, y, _ = cancer()
    naive = {"mechanism": op.ClampMap(GRID, 0.32), "denoise": False}
    plain = classifier(**naive).fit(X, y)
    heavy = classifier(**naive, class_weight={0: 30, 1: 1}).fit(X, y)
    weighted = classifier(**naive).fit(X, y, np.where(y == 0, 30.0, 1.0))
    assert (heavy.predict(X) == 0).mean() > (plain.predict(X) == 0).mean() + 0.05
    assert (heavy.predict_proba(X) == weighted.predict_proba(X)).all()


def test_other_losses_pass_through():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    losses = {
        "xgboost": {"objective": "reg:quantileerror", "quantile_alpha": 0.9},
        "lightgbm": {"objective": "quantile", "alpha": 0.9},
        "gbdt": {"loss": "quantile", "alpha": 0.9},
        "hist-gbdt": {"loss": "quantile", "quantile": 0.9},
    }
    for booster, params in losses.items():
        reg = op.OpBoostRegressor(
            op.ClampMap(GRID, 2.0),
            bounds={"bmi": (15, 45)},
            booster=booster,
            booster_params=params,
            noise_rng=SEED,
            random_state=0,
        ).fit(X, y)
        assert 0.8 < (y <= reg.predict(X)).mean() < 1.0, booster
    with pytest.raises(op.ParameterError, match="denoise must be 'auto', True or False"):
        op.OpBoostRegressor(M, bounds={"bmi": (15, 45)}, denoise="often").fit(X, y)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_saved_estimator_comes_back_without_pickle(booster, tmp_path):
    X, y, _ = cancer()
    mechanism = {
        "mean radius": op.AdjMap(GRID, 1.0, theta=2),
        "worst texture": op.LocalMap(GRID, epsilon=1.0, theta=(4, 8)),
        "worst area": op.Piecewise(GRID, 1.0),
    }
    clf = classifier(
        mechanism=mechanism, booster=booster, scale={"worst area": "log"}, noise_rng=None
    )
    clf.fit(X, np.array(["ill", "well"])[y])
    file = tmp_path / "clf.opboost"
    clf.save(file)
    assert [p.name for p in tmp_path.iterdir()] == ["clf.opboost"]
    with zipfile.ZipFile(file) as archive:
        assert not any(b"pickle" in archive.read(n)[:200] for n in archive.namelist())
    again = op.load(file)
    assert (again.predict_proba(X) == clf.predict_proba(X)).all()
    assert again.predict(X).tolist() == clf.predict(X).tolist()
    assert str(again.guarantee_) == f"{clf.guarantee_}\nnot covered: {LOADED}"
    assert again.releases_ == 1
    assert again.predict(X, desensitize=True).shape == (569,)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"mean radius": "radius"}))


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    X, y, _ = cancer()
    file = tmp_path / "clf.opboost"
    classifier().fit(X, y).save(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(op.DataError, match="not a saved estimator"):
        op.load(file)
    file.write_bytes(b"hello")
    with pytest.raises(op.DataError, match="not a saved estimator"):
        op.load(file)
    with pytest.raises(op.DataError, match="none does not exist"):
        op.load(tmp_path / "none")
    with pytest.raises(NotFittedError):
        classifier().save(file)


def test_life_in_scikit_learn():
    X, y, _ = cancer()
    clf = classifier()
    assert clone(clf).get_params() == clf.get_params()
    assert cross_val_score(clf, X, y, cv=3).mean() > 0.75
    flow = make_pipeline(FunctionTransformer(), clf).fit(X, y)
    assert flow.predict(X).shape == (569,)
    again = pickle.loads(pickle.dumps(clf.fit(X, y)))
    assert (again.predict_proba(X) == clf.predict_proba(X)).all()
    numbers = op.OpBoostClassifier(M, bounds={0: (5, 30), 1: (10, 50)}, noise_rng=SEED).fit(
        X.to_numpy(), y
    )
    assert numbers.predict(X.to_numpy()).shape == (569,)
    assert numbers.n_features_in_ == 4
    assert classifier().fit(pl.DataFrame(X), y).predict(pl.DataFrame(X)).shape == (569,)


@pytest.mark.filterwarnings("ignore")  # from shap itself, on import
def test_shap_explains_the_stock_model():
    import shap

    X, y, _ = cancer()
    clf = classifier(booster="lightgbm").fit(X, y)
    values = shap.TreeExplainer(clf.model_).shap_values(X[:20])
    told = clf.model_.predict(X[:20], pred_contrib=True)[:, :-1]
    np.testing.assert_allclose(values, told, atol=1e-6)


def test_it_talks_when_asked(capsys):
    X, y, _ = cancer()
    classifier(verbose=1).fit(X, y)
    assert "569 rows, 4 features; training on" in capsys.readouterr().err


def test_why_denoising_is_off_is_said_once(capsys):
    X, y, _ = cancer()
    private = {"mean radius": (5, 30), "worst texture": (10, 50)}
    schema = [
        op.PrivateColumn(n, op.NumericMapping(GRID, bounds), M) for n, bounds in private.items()
    ]
    party = op.FeatureParty(X[list(private)], schema, codebook="cuts")
    model = op.LabelParty(None, y, random_state=0).train([op.MemoryChannel(party)])
    assert not model.denoised_
    said = capsys.readouterr().err
    assert said.count("denoising is off, because a party withholds its codebook") == 1


def test_bad_input_gets_a_sentence():
    X, y, bounds = cancer()
    with pytest.raises(ValueError, match="only one class"):
        classifier().fit(X, np.zeros(569))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier().fit(X, y[:300])
    with pytest.raises(op.ParameterError, match="No column is private"):
        op.OpBoostClassifier(M).fit(X, y)
    with pytest.raises(op.DataError, match="must hold numbers"):
        op.OpBoostRegressor(M, bounds=bounds).fit(X, np.array(["a", "b"])[y])
    with pytest.raises(op.ColumnError, match=r"beyond 2\*\*24"):
        op.OpBoostClassifier(op.ClampMap(op.Domain(0, 2**30), 1.0), bounds=bounds).fit(X, y)
    for booster, params in (
        ("gbdt", {"depth": 3}),
        ("hist-gbdt", {"max_iter": -1}),
        ("xgboost", {"objective": "nonsense"}),
        ("lightgbm", {"objective": "nonsense"}),
    ):
        with pytest.raises(op.ParameterError, match=r"The booster refused: .*booster_params"):
            classifier(booster=booster, booster_params=params).fit(X, y)
    lazy = pl.LazyFrame(X)
    with pytest.raises(op.DataError, match=r"LazyFrame holds no rows yet\. .*X\.collect\(\)"):
        classifier().fit(lazy, y)
    with pytest.raises(op.DataError, match=r"X\.collect\(\)"):
        classifier(booster="gbdt").fit(X, y).predict(lazy)
    with pytest.raises(op.DataError, match="eval_set holds a class"):
        classifier().fit(X, y, eval_set=(X, np.full(569, 7)))
    with pytest.raises(NotFittedError):
        classifier().predict(X)


WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "a repeated row is another person with noise "
    "of their own, so weights are not repetitions",
}
EXTREME = {
    **WEIGHTS,
    "check_class_weight_classifiers": "the stock estimator, too, loses weights of 1e-4 against 1e3",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "booster", "failing"),
    [
        (op.OpBoostClassifier, "xgboost", WEIGHTS),
        (op.OpBoostRegressor, "xgboost", {}),
        (op.OpBoostClassifier, "lightgbm", {}),
        (op.OpBoostClassifier, "gbdt", EXTREME),
        (op.OpBoostRegressor, "gbdt", WEIGHTS),
        (op.OpBoostRegressor, "hist-gbdt", {}),
    ],
)
def test_check_estimator_with_every_column_private(kind, booster, failing):
    estimator = kind(op.ClampMap(GRID, 6.0), bounds="infer", booster=booster, noise_rng=SEED)
    results = check_estimator(estimator, expected_failed_checks=failing, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(failing)


DETERMINISM = {
    **WEIGHTS,
    "check_fit_idempotent": "a second fit makes a second release, with fresh noise",
    "check_regressor_data_not_an_array": "compares two fits",
    "check_regressors_int": "compares two fits",
    "check_classifier_data_not_an_array": "compares two fits",
    "check_supervised_y_2d": "compares two fits",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [op.OpBoostClassifier, op.OpBoostRegressor])
def test_check_estimator_without_a_seed_fails_only_where_noise_must_repeat(kind):
    """Which of the listed checks fail depends on chance, because two draws may agree."""
    estimator = kind(op.ClampMap(GRID, 6.0), bounds="infer")
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "failed"} <= set(DETERMINISM)
