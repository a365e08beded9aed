"""Parties in one process: the federated model equals one trained on the released values."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import opboost as op
from opboost.budgets.release_accounting import LOADED
from opboost.columns.dataframes import OutColumn
from opboost.columns.row_ids import id_bytes
from opboost.errors import ColumnError, DataError, ParameterError, PeerError, PrivacyError
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label import split_query
from opboost.parties.label.label_party import LabelParty
from opboost.protocol.messages import Cuts, SplitQuery, SplitValues, Values, Welcome, encode
from opboost.training.feature_matrix import OwnTable
from opboost.training.released_columns import from_sample
from opboost.training.targets import Target
from opboost.training.train_model import train_model
from opboost.training.training_settings import TrainingSettings

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
COLUMNS = [c for c in X.columns if c.startswith(("mean", "worst"))][:16]
BOUNDS = {c: (float(X[c].min()) * 0.9, float(X[c].max()) * 1.1) for c in COLUMNS}
GRID = op.Domain(1, 10)
IDS = [f"p{i}" for i in range(len(X))]
JOB = "20260102T030405Z-01020304"


def column(name, epsilon=0.64, grid=GRID, **more):
    mapping = op.NumericMapping(grid, BOUNDS[name], **more)
    return op.PrivateColumn(name, mapping, op.ClampMap(grid, epsilon))


def party(names, name="shop", **settings):
    frame = X[names].assign(id=IDS)
    return FeatureParty(frame, [column(n) for n in names], ids="id", name=name, **settings)


def label(own=("mean radius",), **settings):
    features = X[list(own)] if own else None
    ids = id_bytes([IDS], ["id"])
    return LabelParty(features, Y, ids=ids, random_state=0, **settings)


def split(count):
    names = COLUMNS[4:]
    return [list(part) for part in np.array_split(names, count)]


def released(parties):
    """Return the values behind the codes, from each party's own files."""
    from opboost.protocol.stored_columns import read_column

    found = {}
    for p in parties:
        folder = next(f for f in p._jobs.state.iterdir())
        for c, file in zip(p.plan.private, sorted(folder.glob("*.arrow")), strict=True):
            found[c.name] = read_column(file)[1].values
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("booster", "count"),
    [("xgboost", 1), ("xgboost", 2), ("xgboost", 8), ("lightgbm", 2), ("gbdt", 2)],
)
def test_the_model_is_the_one_that_the_released_values_give(count, booster):
    if booster != "xgboost" and count == 8:
        pytest.skip("one booster is enough for many parties")
    parties = [party(names, f"party-{i}") for i, names in enumerate(split(count))]
    model = label(booster=booster).train([op.MemoryChannel(p) for p in parties])
    values = released(parties)
    # The same training on the released values, without parties.
    own = X[["mean radius"]]
    columns = tuple(c for p in parties for c in p.plan.private)
    sample = {c.name: [OutColumn(c.name, values[c.name].to_numpy())] for c in columns}
    stock = train_model(
        from_sample(columns, sample, sent=1.0),
        OwnTable.of(own),
        Target.of_classes(Y),
        TrainingSettings.of(booster, None, "auto", 0),
    )
    table = pd.concat([own, X[values.columns]], axis=1)
    rows = stock.layout.plain_values(*model.desensitizer_.prepare(table), stock.trained.floats)
    assert np.array_equal(model.predict_proba(table), stock.trained.predict(rows))
    assert model.guarantee_.total == pytest.approx(12 * 5.76)
    assert (model.predict(table) == Y).mean() > 0.9


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm", "hist-gbdt"])
def test_withheld_codebooks_and_grid_units_give_the_same_model(booster, tmp_path):
    names = COLUMNS[4:9]
    ledger = op.Ledger(tmp_path / "ledger", tmp_path / "key")  # the same noise for all four
    models = []
    for codebook in ("full", "cuts"):
        for units in ("raw", "grid"):
            p = party(names, codebook=codebook, units=units, ledger=ledger)
            bank = label(booster=booster, denoise=False)
            models.append((units, bank.train([op.MemoryChannel(p)])))
    raw = pd.concat([X[["mean radius"]], X[names]], axis=1).astype(np.float32)
    cells = raw.copy()
    for n in names:
        cells[n] = column(n).mapping.to_grid(raw[n].to_numpy())
    reference = models[0][1].predict_proba(raw)
    for units, model in models:
        given = raw if units == "raw" else cells
        assert np.array_equal(model.predict_proba(given), reference)
    grid_model = models[1][1]
    assert "90" not in repr(grid_model.desensitizer_.columns_[0].mapping.bounds)


def test_the_saved_model_predicts_and_knows_its_promise(tmp_path):
    model = label().train([op.MemoryChannel(party(COLUMNS[4:9]))])
    model.save(tmp_path / "m.opboost")
    again = op.load(tmp_path / "m.opboost")
    table = X[["mean radius", *COLUMNS[4:9]]]
    assert np.array_equal(model.predict_proba(table), again.predict_proba(table))
    assert str(again.guarantee_) == f"{model.guarantee_}\nnot covered: {LOADED}"
    model.save_model(tmp_path / "raw.json")


def test_a_label_party_without_features_and_a_regression():
    frame = X[COLUMNS[4:9]]
    p = FeatureParty(frame, [column(n) for n in COLUMNS[4:9]])
    model = LabelParty(None, X["mean radius"]).train([op.MemoryChannel(p)])
    assert model.score(frame, X["mean radius"]) > 0.2


def test_all_kinds_of_columns_travel():
    rng = np.random.default_rng(0)
    n = 2000
    size, city, pay = rng.integers(0, 3, n), rng.integers(0, 4, n), rng.uniform(0, 10, n)
    table = pd.DataFrame(
        {
            "size": np.array(["S", "M", "L"])[size],
            "city": np.array(["n", "s", "e", "w"])[city],
            "pay": np.where(rng.random(n) < 0.1, np.nan, pay),
            "zone": np.array(["x", "y"])[city % 2],
        }
    )
    y = (size + (city == 2) + pay / 5 > 2.5).astype(int)
    small = op.Domain(1, 3)
    schema = [
        op.PrivateColumn(
            "size", op.OrdinalMapping(small, op.Ordered(["S", "M", "L"])), op.ClampMap(small, 3.0)
        ),
        op.PrivateColumn("city", None, op.UnaryEncoding(["n", "s", "e", "w"], 6.0)),
        op.PrivateColumn(
            "pay", op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, 2.0), missing=op.Flag(3.0, 5)
        ),
        op.PrivateColumn(
            "zone",
            op.OrdinalMapping(op.Domain(1, 2), op.Ordered(["x", "y"])),
            op.RandomizedResponse(op.Domain(1, 2), 3.0),
        ),
    ]
    for settings in ({}, {"codebook": "cuts"}, {"units": "grid", "names": "hidden"}):
        channel = op.MemoryChannel(FeatureParty(table, schema, **settings))
        model = LabelParty(None, y, random_state=0).train([channel])
        if not settings.get("names"):
            assert model.score(table, y) > 0.85
            assert list(model.feature_names_in_) == ["size", "city", "pay", "zone"]
        else:
            assert list(model.feature_names_in_) == [f"features-{i}" for i in range(1, 5)]


def test_sampled_columns_travel_as_gaps():
    from opboost.config import parse

    lines = "".join(f'[columns."{n}"]\nbounds = {list(BOUNDS[n])}\n' for n in COLUMNS[4:9])
    plan = parse(
        '[mechanism]\nepsilon = 3.0\n[budget]\nsplit = "sampled"\ncolumns_per_row = 2\n' + lines,
        "b.toml",
    )
    channel = op.MemoryChannel(FeatureParty(X[COLUMNS[4:9]], plan))
    model = LabelParty(None, Y).train([channel])
    assert model.guarantee_.columns_per_row == 2
    assert model.guarantee_.total == pytest.approx(2 * 9 * 1.5)


def test_totals_of_parties_with_record_budgets_add_up(tmp_path):
    from opboost.config import parse

    def plan(names, total):
        lines = "".join(f'[columns."{n}"]\nbounds = {list(BOUNDS[n])}\n' for n in names)
        return parse(f"[budget]\nrecord = {total}\n{lines}", "b.toml")

    channels = [
        op.MemoryChannel(FeatureParty(X[names], plan(names, total), name=name))
        for names, total, name in ((COLUMNS[4:9], 4.0, "shop"), (COLUMNS[9:12], 2.0, "telco"))
    ]
    model = LabelParty(None, Y).train(channels)
    assert model.guarantee_.total == 6
    model.save(tmp_path / "m.opboost")
    assert op.load(tmp_path / "m.opboost").guarantee_.total == 6


def test_parties_may_have_columns_of_one_name():
    one, two = (party(COLUMNS[4:6], name) for name in ("shop", "telco"))
    model = label().train([op.MemoryChannel(one), op.MemoryChannel(two)])
    assert list(model.feature_names_in_) == [
        "mean radius",
        *(f"{p}.{c}" for p in ("shop", "telco") for c in COLUMNS[4:6]),
    ]


# refusals


def test_rows_in_another_order_are_refused_before_anybody_draws(tmp_path):
    names = COLUMNS[4:6]
    frame, declared = X[names].assign(id=IDS), [column(n) for n in names]
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        shop, telco = (
            FeatureParty(rows, declared, ids="id", ledger=ledger, name=name)
            for name, rows in (("shop", frame), ("telco", frame.iloc[::-1]))
        )
        with pytest.raises(PeerError, match=r"'telco' are not the label party's in the same order"):
            label().train([op.MemoryChannel(shop), op.MemoryChannel(telco)])
        assert not list(ledger.entries("reserve"))
        model = label(own=()).train([op.MemoryChannel(shop)])
        known = len(list(ledger.entries()))
        turned = op.LabelParty(None, None, ids=id_bytes([IDS[::-1]], ["id"]))
        with pytest.raises(PeerError, match=r"'shop' are not the label party's in the same order"):
            turned.predict(model, [op.MemoryChannel(shop)])
        assert len(list(ledger.entries())) == known


def test_labels_that_are_missing_are_refused_at_once():
    for y in (np.where(np.arange(len(Y)) < 2, np.nan, Y), [None, None, *map(str, Y[2:])]):
        with pytest.raises(DataError, match=r"2 of 569 labels are missing\. Leave out rows"):
            LabelParty(X[["mean radius"]], y)


def test_a_path_is_no_model_to_continue():
    with pytest.raises(ParameterError, match=r"fitted estimator; got str\. .*op\.load\(path\)"):
        label(continue_from="m.opboost")


def test_another_number_of_rows_is_refused():
    names = COLUMNS[4:6]
    frame = X[names].assign(id=IDS)[:-1]
    p = FeatureParty(frame, [column(n) for n in names], ids="id")
    with pytest.raises(PeerError, match=r"sent 568 rows; the label party has 569"):
        label().train([op.MemoryChannel(p)])


def test_a_release_is_made_once_a_job_and_the_same_for_the_next():
    p = party(COLUMNS[4:6])
    welcome = Welcome(JOB, bytes(32), b"")
    first = [f.read_bytes() for f in p.release(welcome)[1]]
    assert [f.read_bytes() for f in p.release(welcome)[1]] == first
    other = Welcome("20260102T030406Z-01020304", bytes(32), b"")
    assert [f.read_bytes() for f in p.release(other)[1]] == first


def asked(*cuts, left=False):
    return SplitQuery(JOB, left, tuple(Cuts(c, codes) for c, codes in cuts))


def test_a_job_is_bound_to_its_recipient_and_configuration(tmp_path):
    welcome = Welcome(JOB, bytes(32), b"")
    first = party(COLUMNS[4:6], state=tmp_path)
    first.release(welcome)
    for other in (
        party(COLUMNS[4:6], state=tmp_path, recipient="rival"),
        party(COLUMNS[4:5], state=tmp_path),
        party(COLUMNS[5:3:-1], state=tmp_path),
        party(COLUMNS[4:6], state=tmp_path, units="grid"),
    ):
        with pytest.raises(PrivacyError, match=r"for another recipient or under another"):
            other.release(welcome)
        with pytest.raises(PrivacyError, match=r"for another recipient or under another"):
            other.answer(asked((0, (1,))))
    with pytest.raises(PrivacyError, match=r"for another recipient or under another"):
        first.release(Welcome(JOB, bytes(31) + b"1", b""))


def test_what_a_run_left_behind_is_not_sent(tmp_path):
    p = party(COLUMNS[4:6], state=tmp_path)
    welcome = Welcome(JOB, bytes(32), b"")
    p._jobs.bind(JOB, welcome.nonce)
    (p.folder(JOB) / "00002.arrow").write_bytes(b"of a column that is gone")
    assert len(p.release(welcome)[1]) == 2


def test_cells_narrower_than_a_float_tells_apart_are_answered_on_the_grid():
    rng = np.random.default_rng(0)
    width = np.spacing(np.float32(1e6))
    values = 1e6 + rng.uniform(0, 10 * 0.5 * width, 500)
    mapping = op.NumericMapping(GRID, (1e6, 1e6 + 5 * float(width)))
    p = FeatureParty(
        pd.DataFrame({"x": values}), [op.PrivateColumn("x", mapping, op.ClampMap(GRID, 5.0))]
    )
    y = (mapping.to_grid(values) > 5).astype(int)
    model = LabelParty(None, y, random_state=0).train([op.MemoryChannel(p)])
    assert model.score(pd.DataFrame({"x": values}), y) > 0.95


def test_names_that_clash_in_every_way_still_train_and_predict():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 300)
    y = (x > 0.5).astype(int)

    def one(name, party_name):
        schema = [op.PrivateColumn(name, op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 3.0))]
        return op.MemoryChannel(FeatureParty(pd.DataFrame({name: x}), schema, name=party_name))

    own = pd.DataFrame({"x": x, "a.x": x, "city=n": x})
    city = FeatureParty(
        pd.DataFrame({"city": np.where(y, "n", "s")}),
        [op.PrivateColumn("city", None, op.UnaryEncoding(["n", "s"], 3.0))],
        name="d",
    )
    channels = [one("x", "a"), one("x", "b"), one("a.x", "c"), op.MemoryChannel(city)]
    model = LabelParty(own, y).train(channels)
    names = list(model.feature_names_in_)
    assert names == ["x", "a.x", "city=n", "a.x.2", "b.x", "c.a.x", "d.city"]
    table = pd.DataFrame({n: x for n in names if n != "d.city"})
    table["d.city"] = np.where(y, "n", "s")
    assert model.score(table[names], y) > 0.9
    assert len(set(model.model_features_)) == len(model.model_features_)


def test_one_split_query_is_answered_a_job():
    p = party(COLUMNS[4:6])
    with pytest.raises(PeerError, match=r"has released nothing"):
        p.answer(asked((0, (1,))))
    p.release(Welcome(JOB, bytes(32), b""))
    first = p.answer(asked((0, (1, 2))))
    assert p.answer(asked((0, (1, 2)))) == first
    with pytest.raises(PrivacyError, match=r"a second, different split query"):
        p.answer(asked((0, (1, 3))))
    (p.folder(JOB) / "answer").unlink()  # the ledger has it, too
    with pytest.raises(PrivacyError, match=r"a second, different split query"):
        p.answer(asked((0, (1, 3))))
    assert [e.body["cuts"] for e in p.ledger.entries("answer")] == [{"0": 2}]


@pytest.mark.parametrize("cuts", [(9, (1,)), (0, (99,))])
def test_a_query_for_what_is_not_there_is_refused(cuts):
    p = party(COLUMNS[4:6])
    p.release(Welcome(JOB, bytes(32), b""))
    with pytest.raises(PeerError, match=r"A split query names"):
        p.answer(asked(cuts))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: Values(v.column, v.units, v.values[:-1]), "some cuts of column"),
        (lambda v: Values(v.column, v.units, v.values[::-1]), "do not ascend"),
        (lambda v: Values(v.column, "grid", tuple(x + 50 for x in v.values)), "do not ascend"),
        (
            lambda v: Values(v.column, "grid", tuple(range(1, len(v.values) + 1))),
            "contradict its codebook",
        ),
        (lambda v: Values(v.column + 1, v.units, v.values), "leaves out columns"),
    ],
)
def test_an_answer_that_cannot_be_true_is_refused(change, words):
    p = party(COLUMNS[4:5])
    channel = op.MemoryChannel(p)
    honest = p.answer

    def lie(query):
        answer = honest(query)
        return SplitValues(answer.job, answer.query, tuple(map(change, answer.columns)))

    p.answer = lie
    with pytest.raises(PeerError, match=words):
        label(own=()).train([channel])


def test_the_query_holds_cuts_and_nothing_of_trees():
    p = party(COLUMNS[4:6])
    seen = []
    honest = p.answer
    p.answer = lambda query: (seen.append(query), honest(query))[1]
    label(own=()).train([op.MemoryChannel(p)])
    (query,) = seen
    for cuts in query.columns:
        assert len(cuts.codes) < GRID.size
        assert list(cuts.codes) == sorted(set(cuts.codes))
    assert honest(query).query == hashlib.sha256(encode(query)).digest()


def queries_of(p, y, **settings):
    """Return the columns of the split query that a party receives if the labels are ``y``."""
    seen, honest = [], p.answer
    p.answer = lambda query: (seen.append(query), honest(query))[1]
    ids = id_bytes([IDS], ["id"])
    params = {"num_boost_round": 3, "max_depth": 2}
    model = LabelParty(None, y, ids=ids, random_state=0, booster_params=params, **settings).train(
        [op.MemoryChannel(p)]
    )
    p.answer = honest
    (query,) = seen
    return query.columns, model


def test_a_query_for_all_values_follows_from_the_release_alone():
    other = np.random.default_rng(3).permutation(Y)
    p = party(COLUMNS[4:8])
    used, used_otherwise = (queries_of(p, y, ask="used")[0] for y in (Y, other))
    assert used != used_otherwise  # it reveals something about the labels
    for settings in ({"ask": "all"}, {}):
        asked_all, model = queries_of(p, Y, **settings)
        assert queries_of(p, other, **settings)[0] == asked_all
        assert [c.column for c in asked_all] == [0, 1, 2, 3]
        assert all(c.codes == tuple(range(1, c.codes[-1] + 1)) for c in asked_all)
        table = X[COLUMNS[4:8]]
        same = queries_of(p, Y, ask="used")[1]
        assert np.array_equal(model.predict_proba(table), same.predict_proba(table))


def test_a_party_that_withholds_values_is_asked_for_those_used_unless_all_are_wanted():
    p = party(COLUMNS[4:8], codebook="cuts")
    used, model = queries_of(p, Y)
    assert used == queries_of(p, Y, ask="always")[0]
    asked_all, same = queries_of(p, Y, ask="all")
    cuts = {c.column: set(c.codes) for c in asked_all}
    assert all(set(c.codes) <= cuts[c.column] for c in used)
    assert sum(map(len, cuts.values())) > sum(len(c.codes) for c in used)
    table = X[COLUMNS[4:8]]
    assert np.array_equal(model.predict_proba(table), same.predict_proba(table))


def test_large_grids_are_asked_for_the_values_used(monkeypatch):
    monkeypatch.setattr(split_query, "MAX_VALUES_ASKED", GRID.size - 1)
    p = party(COLUMNS[4:8])
    assert queries_of(p, Y)[0] == queries_of(p, Y, ask="used")[0]
    with pytest.raises(ParameterError, match=r"ask must be one of 'auto', 'all'.*got 'none'"):
        label(ask="none")


def test_no_query_is_sent_where_none_is_needed():
    for codebook, expected in (("full", 0), ("cuts", 1)):
        p = party(COLUMNS[4:6], codebook=codebook)
        seen = []
        honest = p.answer
        p.answer = lambda query, h=honest, s=seen: (s.append(query), h(query))[1]
        label(ask="if-needed").train([op.MemoryChannel(p)])
        assert len(seen) == expected


def test_bad_settings_say_what_to_do(tmp_path):
    with pytest.raises(ParameterError, match=r"Give ids='customer_id'"):
        FeatureParty(X, [column(COLUMNS[4])], ledger=op.Ledger(tmp_path / "l", tmp_path / "k"))
    with pytest.raises(ColumnError, match=r"'mean radius' is declared but not in the table"):
        FeatureParty(X[COLUMNS[4:5]], [column("mean radius")])
    shop = party(COLUMNS[4:5])
    for wrong, words in (
        ([], "at least one feature party"),
        (op.MemoryChannel(shop), "a list of channels"),
        ([shop], r"In one process: \[op.MemoryChannel\(party\)\]"),
        ([op.MemoryChannel(shop)] * 2, "Two channels lead to a party 'shop'"),
    ):
        with pytest.raises(ParameterError, match=words):
            label().train(wrong)
    with pytest.raises(ParameterError, match=r"The label has 50 rows"):
        LabelParty(X, Y[:50])
    with pytest.raises(ParameterError, match=r"A schema is"):
        FeatureParty(X, [])


def test_a_federated_model_is_denoised_where_the_codebook_is_full(capsys):
    for codebook, denoised in (("full", True), ("cuts", False)):
        p = party(COLUMNS[4:10], codebook=codebook)
        model = label(own=(), denoise=True).train([op.MemoryChannel(p)])
        assert model.denoised_ is denoised
        said = "denoising is off, because a party withholds its codebook"
        assert (said in capsys.readouterr().err) is not denoised
        assert model.score(X[COLUMNS[4:10]], Y) > 0.75


def test_a_restart_puts_the_values_of_the_first_run_into_its_model(tmp_path):
    """Draws with another seed have other codes, so the model in codes keeps its own codebooks."""
    names = COLUMNS[4:10]
    welcome = Welcome(JOB, bytes(32), b"")
    channel = op.MemoryChannel(party(names, state=tmp_path / "shop"))
    ids = id_bytes([IDS], ["id"])
    bank = LabelParty(None, Y, ids=ids, denoise=True)
    first = bank.train([channel], welcome=welcome, state=tmp_path)
    folder = next(tmp_path.glob("trained-*"))
    assert (folder / "books.json").exists()
    again = bank.train([channel], welcome=welcome, state=tmp_path)
    assert np.array_equal(first.predict_proba(X[names]), again.predict_proba(X[names]))
    (folder / "books.json").unlink()  # killed between the two files: train anew
    third = bank.train([channel], welcome=welcome, state=tmp_path)
    assert np.array_equal(first.predict_proba(X[names]), third.predict_proba(X[names]))


@pytest.mark.parametrize("units", ["raw", "grid"])
@pytest.mark.parametrize("codebook", ["full", "cuts"])
@pytest.mark.parametrize("denoise", [True, False])
def test_outputs_beyond_the_grid_travel_and_splits_among_them_are_placed_at_the_bound(
    tmp_path, units, codebook, denoise
):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, 600)
    mechanism = op.WindowMap(op.Domain(0, 15), 8.0, near=0.5, clipped=False)
    assert mechanism.outputs.size > 40
    column = op.PrivateColumn("x", op.NumericMapping(mechanism.domain, (0, 100)), mechanism)
    table = pd.DataFrame({"id": np.arange(600).astype(str), "x": x})
    ledger = op.Ledger(tmp_path / "ledger", tmp_path / "key")
    party = op.FeatureParty(
        table, [column], ids="id", ledger=ledger, units=units, codebook=codebook
    )
    label = LabelParty(None, (x > 50).astype(int), ids=table["id"], random_state=0, denoise=denoise)
    model = label.train([op.MemoryChannel(party)])
    rows = pd.DataFrame({model.feature_names_in_[0]: [2.0, 30.0, 70.0, 98.0]})
    if units == "grid":
        rows = pd.DataFrame({model.feature_names_in_[0]: [0, 4, 11, 15]})
    assert model.predict(rows).tolist() == [0, 0, 1, 1]
    assert model.guarantee_.total == 7.5
    again = op.FeatureParty(
        table, [column], ids="id", ledger=ledger, units=units, codebook=codebook
    )
    label.train([op.MemoryChannel(again)])
    commits = [e.body for e in ledger.entries("commit")]
    assert [b["new_cells"] for b in commits] == [600, 0]
