from __future__ import annotations

import gc
import pickle
import re
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import opboost as op
from tests.support.checks import assert_samples_follow, counts_of

GRID = op.Domain(1, 10)
M = op.ClampMap(GRID, epsilon=0.64)
SEED = op.SeededRng(7)
PEOPLE = {
    "age": [23, 71, 40, 33, 58],
    "income": [2000.0, 5500.5, 4100.0, 150.0, 9999.0],
    "size": ["S", "L", "M", "M", "S"],
    "city": ["north", "south", "south", "east", "north"],
}
DECLARED = {
    "bounds": {"age": (17, 90), "income": (100, 10_000)},
    "categories": {"size": op.Ordered(["S", "M", "L"])},
    "scale": {"income": "log"},
    "mechanism": {
        "age": M,
        "income": op.GlobalMap(GRID, 0.5),
        "size": M,
        "city": op.UnaryEncoding(["north", "south", "east"], epsilon=1.0),
    },
}

KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def desensitizer(**changes):
    return op.Desensitizer(**{**DECLARED, "noise_rng": SEED, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_that_came_in_goes_out(kind):
    table = KINDS[kind](PEOPLE)
    d = desensitizer()
    out = d.fit_transform(table)
    assert type(out) is type(table)
    names = ["age", "income", "size", "city=north", "city=south", "city=east"]
    columns = out.column_names if kind == "arrow" else list(out.columns)
    assert columns == names == d.get_feature_names_out().tolist()
    expected = desensitizer().fit_transform(pd.DataFrame(PEOPLE))
    got = out.to_pandas() if kind != "pandas" else out
    assert got.to_numpy().tolist() == expected.to_numpy().tolist()


def test_pandas_keeps_narrow_types():
    out = desensitizer().fit_transform(pd.DataFrame(PEOPLE))
    assert {str(t) for t in out.dtypes} == {"uint8"}


INDEXES = {
    "IDs": pd.Index(["ann", "bob", "cat", "dan", "eve"], name="customer"),
    "raw values": pd.Index(PEOPLE["income"]),
    "shuffled": pd.Index([9, 8, 7, 6, 5]),
    "a slice": pd.RangeIndex(200, 205),
    "twice": pd.Index([1, 1, 2, 2, 2]),
    "levels": pd.MultiIndex.from_arrays([list("aabbb"), range(5)]),
}


@pytest.mark.parametrize("way", ["default", "pandas"])
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_does_not_leave(index, way):
    """An index may hold IDs or raw values, and nothing is declared about it."""
    table = pd.DataFrame(PEOPLE, index=index).assign(note=pd.array([1, None, 3, 4, 5], "Int64"))
    d = desensitizer(remainder="passthrough").set_output(transform=way).fit(table)
    words = r"index of the table is dropped.*reset_index\(drop=True\)"
    with pytest.warns(op.DroppedIndexWarning, match=words) as caught:
        out = d.transform(table)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    plain = pd.DataFrame(PEOPLE).assign(note=[1.0, np.nan, 3.0, 4.0, 5.0])
    expected = desensitizer(remainder="passthrough").fit_transform(plain)
    assert out.index.equals(pd.RangeIndex(5))
    assert out.index.names == [None]
    rows = out.to_numpy(dtype=float, na_value=np.nan)
    assert np.array_equal(rows, expected.to_numpy(dtype=float), equal_nan=True)
    assert d.set_output(transform="polars").transform(table).shape == (5, 7)  # no index to drop


def test_a_default_index_is_dropped_without_a_word():
    """Integer indexes, as from reading a file or concatenating tables, are dropped too."""
    table = pd.DataFrame(PEOPLE, index=pd.Index(range(5), name="row"))
    out = desensitizer().fit_transform(table)
    assert out.index.equals(pd.RangeIndex(5))
    assert out.index.names == [None]


@pytest.mark.filterwarnings("ignore::opboost.DroppedIndexWarning")
def test_rows_that_were_split_and_shuffled_go_through_searches_and_pipelines():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(17, 90, 300), "own": rng.normal(size=300)})
    y = (table["age"] > 50).astype(int)
    train, test, y_train, y_test = train_test_split(table, y, random_state=0)
    d = op.Desensitizer(op.ClampMap(GRID, 5.0), bounds={"age": (17, 90)}, remainder="passthrough")
    search = GridSearchCV(
        make_pipeline(d, DecisionTreeClassifier(random_state=0)),
        {"decisiontreeclassifier__max_depth": [1, 2]},
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(train, y_train)
    assert search.score(test, y_test) > 0.9
    assert d.fit(train).transform(train).index.equals(pd.RangeIndex(225))


def test_an_estimator_says_nothing_of_an_index_that_stays():
    table = pd.DataFrame(PEOPLE, index=list("abcde"))[["age", "income"]]
    clf = op.OpBoostClassifier(M, bounds=DECLARED["bounds"], booster="gbdt", denoise=False)
    clf.fit(table, [0, 1, 0, 1, 0], eval_set=(table, [0, 1, 0, 1, 0]))
    assert isinstance(clf.predict(table, desensitize=True), np.ndarray)
    assert len(clf.model_matrix(table, units="grid", desensitize=True)) == len(table)


def test_numpy_columns_are_named_by_number():
    table = np.column_stack([PEOPLE["age"], PEOPLE["income"]])
    d = op.Desensitizer(M, bounds={0: (17, 90), 1: (100, 10_000)}, noise_rng=SEED)
    out = d.fit_transform(table)
    assert isinstance(out, np.ndarray)
    assert out.shape == (5, 2)
    assert d.get_feature_names_out().tolist() == ["x0", "x1"]


def test_every_row_follows_the_distribution_of_its_cell():
    table = pd.DataFrame({"age": np.full(40_000, 40)})
    d = op.Desensitizer(M, bounds={"age": (17, 90)}, noise_rng=SEED)
    cell = int(op.NumericMapping(GRID, (17, 90)).to_grid([40])[0])
    out = d.fit_transform(table)["age"].to_numpy()
    assert_samples_follow(counts_of(out, GRID), M.pmf(cell))


def test_columns_do_not_share_noise():
    table = np.full((1000, 2), 0.5)
    out = op.Desensitizer(M, bounds=(0, 1), noise_rng=SEED).fit_transform(table)
    assert (out[:, 0] != out[:, 1]).mean() > 0.4


def test_the_guarantee_is_a_joint_with_the_total_of_a_person():
    d = desensitizer(noise_rng=None).fit(pd.DataFrame(PEOPLE))
    assert isinstance(d.guarantee_, op.Joint)
    assert d.guarantee_.parts["age"] == op.DLDP(0.64, GRID)
    assert d.guarantee_.parts["size"] == op.DLDP(0.64, op.Domain(1, 3))
    assert d.guarantee_.total == pytest.approx(9 * 0.64 + 9 * 0.5 + 2 * 0.64 + 1)
    assert str(desensitizer().fit(pd.DataFrame(PEOPLE)).guarantee_) == "none: seeded"


def test_a_table_transformed_again_gives_the_same_release():
    table = pd.concat([pd.DataFrame(PEOPLE)] * 20, ignore_index=True)
    d = desensitizer(noise_rng=None)
    first = d.fit_transform(table)
    for _ in range(5):
        assert d.transform(table).equals(first)
    assert d.releases_ == 1
    table.loc[0, "age"] = 80  # the same object with different content is a different table
    assert not d.transform(table).equals(first)
    assert not d.fit(table).transform(table).equals(first)


def test_a_release_is_forgotten_with_its_transformer_and_with_its_table():
    """Memory is freed at once, not at the next cycle collection: releases are large."""
    table = pd.DataFrame(PEOPLE)
    gc.disable()
    try:
        d = desensitizer().fit(table)
        released = weakref.ref(d.release(table)[1]["age"][0].values)
        assert released() is not None
        del table
        assert released() is None
        table = pd.DataFrame(PEOPLE)
        released = weakref.ref(d.release(table)[1]["age"][0].values)
        del d
        assert released() is None
    finally:
        gc.enable()
    del table  # nothing keeps the table alive


def test_equal_records_of_two_people_get_independent_noise():
    """Otherwise, anyone who knows one record could test whether another equals it."""
    d = op.Desensitizer(op.ClampMap(GRID, 0.1), bounds={"age": (17, 90)})
    d.fit(pd.DataFrame({"age": [40]}))
    people = [pd.DataFrame({"age": [40]}) for _ in range(60)]
    assert len({int(d.transform(p)["age"].iloc[0]) for p in people}) > 1
    assert d.releases_ == 60


def test_threads_share_one_release():
    table = pd.DataFrame({"age": np.full(50_000, 40)})
    d = op.Desensitizer(M, bounds={"age": (17, 90)}).fit(table)
    with ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda _: d.transform(table)["age"].to_numpy(), range(8)))
    assert all((o == outs[0]).all() for o in outs)
    assert d.releases_ == 1


def test_a_pickle_holds_nothing_about_the_data_and_still_transforms():
    table = pd.DataFrame({"age": [5, 120, 40]})
    d = op.Desensitizer(M, bounds={"age": (17, 90)}).fit(table)
    d.transform(table)
    again = pickle.loads(pickle.dumps(d))
    assert again.outside_ == {}
    assert again.transform(table).shape == (3, 1)
    assert pickle.loads(pickle.dumps(desensitizer())).get_params() == desensitizer().get_params()


def test_changed_parameters_wait_for_the_next_fit():
    table = np.random.default_rng(0).uniform(0, 1, (400, 3))
    d = op.Desensitizer(M, bounds=(0, 1), budget=op.Budget.sampled(1)).fit(table)
    d.set_params(budget=None, noise_rng=SEED)
    assert (np.isfinite(d.transform(table)).sum(axis=1) == 1).all()
    assert isinstance(d.guarantee_, op.Joint)


def test_a_fit_that_fails_leaves_the_last_one_whole():
    table = pd.DataFrame({"age": np.full(500, 40.0)})
    d = op.Desensitizer(M, bounds={"age": (17, 90)}).fit(table)
    d.set_params(mechanism=op.ClampMap(GRID, 50.0))
    with pytest.raises(op.ColumnError, match="missing"):
        d.fit(pd.DataFrame({"age": [np.nan]}))
    assert d.guarantee_.parts["age"] == op.DLDP(0.64, GRID)
    assert d.transform(table)["age"].nunique() > 3
    fresh = op.Desensitizer(M, bounds={"age": (17, 90)})
    with pytest.raises(op.ColumnError):
        fresh.fit(pd.DataFrame({"age": [np.nan]}))
    with pytest.raises(NotFittedError):
        fresh.transform(table)


def test_released_names_must_differ():
    m = op.UnaryEncoding(["x", "y"], 1.0)
    table = pd.DataFrame({"a": ["x", "y"], "a=x": [7, 8]})
    with pytest.raises(op.ColumnError, match="'a' would be released as 'a=x'"):
        op.Desensitizer({"a": m}, remainder="passthrough").fit(table)
    twins = op.UnaryEncoding([1, "1"], 1.0)
    with pytest.raises(op.ColumnError, match="released as 'a=1'"):
        op.Desensitizer({"a": twins}).fit(pd.DataFrame({"a": [1, "1"]}, dtype=object))


def test_columns_that_leave_as_they_are_stand_in_the_guarantee():
    table = pd.DataFrame(PEOPLE)[["age", "city"]]
    d = op.Desensitizer(M, bounds={"age": (17, 90)}, remainder="passthrough").fit(table)
    assert "not covered: columns released without noise (city)" in str(d.guarantee_)


def test_whole_numbers_as_names_and_odd_values_are_understood():
    d = op.Desensitizer(M, bounds=(0, 10), noise_rng=SEED)
    assert d.fit_transform(pd.DataFrame(np.ones((3, 2)))).shape == (3, 2)
    gaps = pd.DataFrame({"age": pd.Series([20, pd.NA, 40], dtype=object)})
    for table in (gaps, gaps.astype("Int64"), gaps.astype("Float64")):
        out = op.Desensitizer(M, bounds={"age": (17, 90)}, missing=40).fit_transform(table)
        assert out["age"].between(1, 10).all()
    flags = pd.DataFrame({"b": [True, False, True]})
    assert op.Desensitizer(M, bounds={"b": (0, 1)}).fit_transform(flags).shape == (3, 1)
    big = pd.DataFrame({"n": pd.Series([2**53 + 1, None], dtype="Int64")})
    order = op.OrdinalMapping(op.Domain(1, 2), op.Ordered([2**53, 2**53 + 1]))
    column = op.PrivateColumn("n", order, op.ClampMap(op.Domain(1, 2), 1.0), missing=2**53)
    assert column.prepare(big).cells.tolist() == [2, 1]


def test_bounds_from_the_data_warn_and_the_guarantee_says_so():
    table = pd.DataFrame(PEOPLE)[["age", "income"]]
    d = op.Desensitizer(M, bounds="infer")
    with pytest.warns(op.InferredBoundsWarning) as caught:
        d.fit(table)
    assert len(caught) == 2
    assert "'age' are taken from the data: its smallest and largest" in str(caught[0].message)
    assert "not covered: bounds of 'age' were taken from the data" in str(d.guarantee_)
    one = op.Desensitizer(M, bounds={"age": (17, 90), "income": "infer"})
    with pytest.warns(op.InferredBoundsWarning, match="'income'") as caught:
        one.fit(table)
    assert len(caught) == 1
    assert one.guarantee_.caveats == ("bounds of 'income' were taken from the data",)


def test_values_outside_are_clamped_and_counted_locally_or_refused():
    table = pd.DataFrame({"age": [5, 40, 120, 90]})
    d = op.Desensitizer(M, bounds={"age": (17, 90)}).fit(table)
    assert d.outside_ == {"age": 2}
    with pytest.raises(op.ColumnError, match=r"'age' holds values outside .*2 of 4 .*5.0 in row 0"):
        op.Desensitizer(M, bounds={"age": (17, 90)}, outside="raise").fit(table)


def test_missing_values_are_refused_filled_or_flagged():
    table = pd.DataFrame({"age": [23.0, np.nan, 40.0]})
    bounds = {"age": (17, 90)}
    with pytest.raises(
        op.ColumnError, match=r"'age' has missing .*1 of 3 rows, first: row 1.*op\.Flag"
    ):
        op.Desensitizer(M, bounds=bounds).fit(table)
    filled = op.Desensitizer(M, bounds=bounds, missing=40).fit_transform(table)
    assert str(filled["age"].dtype) == "uint8"
    d = op.Desensitizer(M, bounds=bounds, missing=op.Flag(eps_missing=2.0, constant=40))
    many = pd.DataFrame({"age": [23.0, np.nan] * 10_000})
    out = d.fit_transform(many)["age"]
    truth = np.exp(2.0) / (1 + np.exp(2.0))
    assert abs(out[many["age"].isna()].isna().mean() - truth) < 0.02
    assert abs(out[many["age"].notna()].isna().mean() - (1 - truth)) < 0.02
    assert d.fit(many).guarantee_.parts["age"] == op.Flagged(op.DLDP(0.64, GRID), 2.0, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_reported_missing_rows_are_missing_in_every_kind(kind):
    table = KINDS[kind]({"age": [23.0, None, 40.0] * 200})
    flag = op.Flag(eps_missing=0.5, constant=40)
    d = op.Desensitizer(M, bounds={"age": (17, 90)}, missing=flag, noise_rng=SEED)
    out = d.fit_transform(table)
    gaps = {
        "pandas": lambda t: t["age"].isna().sum(),
        "polars": lambda t: t["age"].null_count(),
        "arrow": lambda t: t["age"].null_count,
    }[kind](out)
    assert 200 < gaps < 400


def _slots(array):
    """Return the numbers in an Arrow column's slots, including those of nulls."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[: len(array)]


@pytest.mark.parametrize("grid", [(-5, 4), (-300, -290), (1, 10), (300, 309)])
@pytest.mark.parametrize("flag", ["raise", op.Flag(eps_missing=0.5, constant=0.5)])
@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_a_null_slot_holds_zero_whatever_was_drawn(kind, flag, grid):
    """A recipient of Arrow data can read the value in a null's slot."""
    values = {"a": np.linspace(0, 1, 300).tolist(), "b": np.linspace(1, 0, 300).tolist()}
    m = op.ClampMap(op.Domain(*grid), 0.5)
    d = op.Desensitizer(m, bounds=(0, 1), budget=op.Budget.sampled(1), missing=flag)
    out = d.fit_transform(KINDS[kind](values))
    for name in ("a", "b"):
        column = out[name] if kind == "arrow" else out[name].to_arrow()
        gone = column.is_null().to_numpy(zero_copy_only=False)
        assert gone.sum() > 50
        assert (_slots(column)[gone] == 0).all()


def test_a_flagged_row_holds_the_public_constant_and_no_draw():
    table = pa.table({"age": [23.0, None, 40.0] * 200})
    flag = op.Flag(eps_missing=0.5, constant=40)
    column = op.Desensitizer(M, bounds={"age": (17, 90)}, missing=flag).fit_transform(table)["age"]
    gone = column.is_null().to_numpy(zero_copy_only=False)
    assert set(_slots(column)[gone]) == {4}  # the cell of 40


@pytest.mark.parametrize("kind", KINDS)
def test_public_columns_leave_without_what_lies_below_their_nulls(kind):
    """Setting a value to null in polars, Arrow or pandas leaves it in the null's slot."""
    known = pa.array([7, 4711, 9])
    masked = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), known.buffers()[1]])
    assert _slots(masked).tolist() == [7, 4711, 9]
    table = pa.table({"age": [20, 30, 40], "code": masked})
    if kind == "polars":
        blank = pl.when(pl.col("code") != 4711).then(pl.col("code"))
        table = pl.DataFrame({"age": [20, 30, 40], "code": [7, 4711, 9]}).with_columns(blank)
        assert _slots(table["code"].to_arrow()).tolist() == [7, 4711, 9]
    elif kind == "pandas":
        code = pd.arrays.IntegerArray(np.array([7, 4711, 9]), np.array([False, True, False]))
        table = pd.DataFrame({"age": [20, 30, 40], "code": code})
    out = op.Desensitizer(M, bounds={"age": (17, 90)}, remainder="passthrough").fit_transform(table)
    if kind == "pandas":
        assert out["code"].isna().tolist() == [False, True, False]
        assert 4711 not in out["code"].array._data
    else:
        column = out["code"] if kind == "arrow" else out["code"].to_arrow()
        assert column.to_pylist() == [7, None, 9]
        assert _slots(column).tolist() == [7, 0, 9]


def test_a_missing_category_may_be_declared_as_one():
    table = pd.DataFrame({"city": ["north", None, "south"]})
    m = op.UnaryEncoding(["north", "south", None], epsilon=1.0)
    out = op.Desensitizer({"city": m}).fit_transform(table)
    assert list(out.columns) == ["city=north", "city=south", "city=None"]
    with pytest.raises(op.ColumnError, match=r"'city' is nominal.*Declare a category"):
        op.Desensitizer({"city": m}, missing=op.Flag(1.0, "north")).fit(table)


def test_randomised_response_serves_nominal_columns():
    table = pd.DataFrame({"city": ["north", "south", "east"]})
    d = op.Desensitizer(
        op.RandomizedResponse(GRID, 1.0), categories={"city": ["north", "south", "east"]}
    )
    assert set(d.fit_transform(table)["city"]) <= {1, 2, 3}
    assert d.guarantee_.parts["city"] == op.LDP(1.0)


def test_nominal_columns_among_others_take_unary_encoding_at_the_same_level():
    table = pd.DataFrame({"age": [20, 30, 40], "city": ["north", "south", None]})
    d = op.Desensitizer(
        M,
        bounds={"age": (17, 90)},
        categories={"city": ["north", "south", "east"]},
        missing="raise",
    )
    with pytest.raises(op.ColumnError, match="'city' has missing"):
        d.fit(table)
    d.set_params(missing={"city": "east"}).fit(table)
    assert d.guarantee_.parts["city"] == op.LDP(0.64)
    assert d.get_feature_names_out().tolist()[1:] == ["city=north", "city=south", "city=east"]


def test_public_columns_leave_only_when_asked():
    table = pd.DataFrame(PEOPLE)
    bounds = {"age": (17, 90)}
    with pytest.raises(op.ColumnError, match=r"'income' has no bounds.*bounds=\{'income'"):
        op.Desensitizer(M, bounds=bounds).fit(table)
    out = op.Desensitizer(M, bounds=bounds, remainder="passthrough").fit_transform(table)
    assert list(out.columns) == list(table.columns)
    assert out["city"].tolist() == PEOPLE["city"]
    dropped = op.Desensitizer(M, bounds=bounds, remainder="drop").fit_transform(table)
    assert list(dropped.columns) == ["age"]


BAD = [
    ({"age": ["old", 3]}, {}, r"'age' has bounds, so it must hold numbers \(row 0 holds 'old'\)"),
    (
        {"age": [1.0, np.inf]},
        {},
        r"'age' holds infinite values \(1 of 2 rows, first: inf in row 1",
    ),
    ({"age": [1.0, 2.0]}, {"bounds": {"age": (5, 5)}}, r"'age' cannot be set up: .*lower < upper"),
    ({"age": [1.0, 2.0]}, {"bounds": {"agee": (5, 9)}}, "'agee' is declared but .*mean 'age'"),
    ({"age": [1.0, 2.0]}, {"bounds": {"age": "auto"}}, r"bounds 'auto'.*\(lower, upper\)"),
    ({"age": [1.0, 2.0]}, {"mechanism": 0.64}, r"'age' needs a mechanism \(got 0.64\).*ClampMap"),
    ({"age": [1.0, 2.0]}, {"outside": "drop"}, "'age' has outside='drop'"),
    (
        {"age": [1.0, 2.0]},
        {"missing": 200},
        r"'age' needs a public constant within .*200.*\(17.0, 90.0\)",
    ),
    ({"age": [1.0, 2.0]}, {"missing": "flag"}, "'age' needs a public constant .*op.Flag"),
    (
        {"age": [1.0, 2.0]},
        {"remainder": "keep"},
        "'raise', 'passthrough', 'drop' or 'own'; got 'keep'",
    ),
    ({"age": [1.0, 2.0]}, {"scale": [1, 2]}, "'age' cannot be set up: 10 cells need 9"),
    (
        {"age": ["a", "b"]},
        {
            "bounds": None,
            "categories": {"age": ["a", "b"]},
            "mechanism": op.AdjMap(GRID, eps_prt=1.0, eps_ner=0.1, theta=2),
        },
        "'age' has categories without an order, which AdjMap cannot protect.*UnaryEncoding",
    ),
    (
        {"age": ["a", "z"]},
        {"bounds": None, "categories": {"age": op.Ordered(["a", "b"])}},
        r"'age' does not fit: a category .*1 of 2 rows, first: 'z' in row 1",
    ),
    ({"age": [None, None]}, {"bounds": "infer"}, "'age' holds no finite number"),
    ({"age": [True, "x"]}, {}, "row 1 holds 'x'"),
    ({"age": [b"5", b"6"]}, {}, "row 0 holds b'5'"),
    ({"age": [1, 10**400]}, {}, "row 1 holds 1000"),
    ({"age": [1.0]}, {"bounds": {}, "remainder": "drop"}, "No column is private"),
    ({"age": [1.0]}, {"scale": 3}, "'age' cannot be set up: scale must be"),
    ({"age": [1.0]}, {"scale": ["a"] * 9}, "'age' cannot be set up: scale must be"),
    ({"age": [1.0]}, {"budget": 1}, "budget must be an op.Budget; got 1"),
    ({"age": [1.0]}, {"categories": ["age"]}, "categories must be a dict by column"),
    ({"age": [1.0]}, {"noise_rng": 7}, "rng must be None .* got 7"),
    (
        {"age": [-3.0, 1.0]},
        {"bounds": "infer", "scale": "log"},
        "bounds from the data .*above zero",
    ),
    ({"age": pd.to_datetime(["2020-01-01", "2021-01-01"])}, {}, "must hold numbers"),
]


@pytest.mark.filterwarnings("ignore::opboost.InferredBoundsWarning")
@pytest.mark.parametrize(("table", "changes", "words"), BAD, ids=[w[:40] for _, _, w in BAD])
def test_bad_input_is_refused_with_column_rule_value_and_next_step(table, changes, words):
    arguments = {"mechanism": M, "bounds": {"age": (17, 90)}, **changes}
    with pytest.raises(op.OpBoostError, match=words) as error:
        op.Desensitizer(**arguments).fit(pd.DataFrame(table))
    assert str(error.value) == str(pickle.loads(pickle.dumps(error.value)))


@pytest.mark.filterwarnings("ignore::opboost.InferredBoundsWarning")
def test_the_public_form_of_an_error_holds_no_value_of_the_data():
    with pytest.raises(op.ColumnError) as error:
        op.Desensitizer(M, bounds={"age": (17, 90)}, outside="raise").fit(
            pd.DataFrame({"age": [4217.25]})
        )
    assert "4217.25" in str(error.value)
    assert "4217.25" not in error.value.public
    assert "'age'" in error.value.public
    for bad, changes in [
        ({"age": [-1234.5, 99.0]}, {"bounds": "infer", "scale": "log"}),
        ({"age": [1234.5, 7890.25]}, {"bounds": "infer", "missing": 5}),
        ({"age": [np.nan, 1.0, 2.0]}, {"bounds": {"age": (0, 9)}}),
    ]:
        with pytest.raises(op.ColumnError) as error:
            op.Desensitizer(M, **changes).fit(pd.DataFrame(bad))
        assert not re.search(r"\d{2}|1 of 3", error.value.public)


def test_empty_tables_and_other_columns_are_refused():
    d = op.Desensitizer(M, bounds={"age": (17, 90)})
    with pytest.raises(ValueError, match="0 sample"):
        d.fit(pd.DataFrame({"age": []}))
    d.fit(pd.DataFrame({"age": [20]}))
    with pytest.raises(ValueError, match="feature names"):
        d.transform(pd.DataFrame({"wage": [20]}))
    plain = op.Desensitizer(M, bounds=(0, 9)).fit(np.ones((3, 1)))
    with pytest.raises(ValueError, match="2 features"):
        plain.transform(np.ones((3, 2)))
    with pytest.raises(op.DataError, match="several rows of column names"):
        op.Desensitizer(M, bounds=(0, 9)).fit(
            pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
        )
    with pytest.raises(op.DataError, match="occurs twice"):
        op.Desensitizer(M, bounds="infer").fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_set_output_pipelines_column_transformers_and_clone():
    table = pd.DataFrame(PEOPLE)[["age", "income"]]
    bounds = {"age": (17, 90), "income": (100, 10_000)}
    d = op.Desensitizer(M, bounds=bounds, noise_rng=SEED)
    for kind, cls in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = clone(d).set_output(transform=kind).fit_transform(table)
        assert isinstance(out, cls)
        assert list(out.columns) == ["age", "income"]
    flow = make_pipeline(d, StandardScaler(), DecisionTreeClassifier(random_state=0))
    assert flow.fit(table, [0, 1, 0, 0, 1]).predict(table).shape == (5,)
    mixed = ColumnTransformer(
        [("private", op.Desensitizer(M, bounds={"age": (17, 90)}), ["age"])],
        remainder="passthrough",
    )
    assert mixed.fit_transform(table).shape == (5, 2)
    assert clone(d).get_params() == d.get_params()


@pytest.mark.filterwarnings("ignore::opboost.InferredBoundsWarning")
def test_check_estimator_passes_with_every_column_private_and_a_seed():
    results = check_estimator(op.Desensitizer(M, bounds="infer", noise_rng=SEED), on_skip=None)
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    assert "check_methods_sample_order_invariance" in passed
    assert "check_methods_subset_invariance" in passed
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # it requires an environment variable of scipy


DETERMINISM = {
    "check_estimators_pickle": "a pickle forgets past releases: it must not describe the data",
    "check_fit_idempotent": "a second fit makes a second release, with fresh noise",
}


@pytest.mark.filterwarnings("ignore::opboost.InferredBoundsWarning")
def test_check_estimator_without_a_seed_fails_only_where_noise_must_repeat():
    results = check_estimator(
        op.Desensitizer(M, bounds="infer"),
        expected_failed_checks=DETERMINISM,
        on_skip=None,
    )
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(DETERMINISM)
    skipped = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "skipped"}
    skipped.pop("check_array_api_input", None)
    # scikit-learn skips these itself for an estimator that declares itself non-deterministic.
    assert set(skipped) == {
        "check_pipeline_consistency",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
    }
    assert all("non deterministic" in reason for reason in skipped.values())


def test_warnings_name_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        op.Desensitizer(M, bounds="infer").fit(np.array([[1.0], [2.0]]))
    assert caught[0].filename == __file__
