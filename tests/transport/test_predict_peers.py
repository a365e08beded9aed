"""``opboost predict --with-peers``: new rows whose columns feature parties hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import opboost as op
from opboost.columns.dataframes import OutColumn
from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
)
from opboost.errors import ColumnError, ParameterError, PeerError
from opboost.parties.label.label_party import LabelParty
from opboost.protocol.messages import Cuts, SplitQuery, Welcome, encode
from opboost.transport.label.job_folder import JobRecord, PartyFolder
from opboost.transport.label.receive_columns import taken_schema
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import BOUNDS, DATA, NAMES, Party, federation, stop, wait_for

TRAINED = np.arange(400)
OWN = NAMES[:2]
THEIRS = {"shop": NAMES[3:5], "telco": NAMES[5:7]}


def people(rows, names, label=False):
    """Return a table of these people; the model was trained on the first 400."""
    columns = {n: DATA.data[rows, NAMES.index(n)] for n in names}
    more = {"ill": DATA.target[rows]} if label else {}
    return pa.table({**columns, **more, "id": [f"person-{i:04d}" for i in rows]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Make a federation whose parties have trained a model on the first 400 people."""
    folder = tmp_path_factory.mktemp("trained")
    made = federation(folder, align="given")
    for name in (LABEL_PARTY, *made.parties):
        table = people(TRAINED, THEIRS.get(name, OWN), name == LABEL_PARTY)
        pa.parquet.write_table(table, folder / name / "table.parquet")
    config = made.config(LABEL_PARTY)
    config.write_text(f"{config.read_text()}denoise = true\n")
    run_federation(made, timeout=120)
    return made


class Prediction:
    """A copy of a trained federation with a second job, a prediction."""

    def __init__(self, trained, folder, rows, align):
        shutil.copytree(trained.folder, folder, dirs_exist_ok=True)
        self.made = replace(trained, folder=folder)
        self.folder, self.rows, self.parties = folder, rows, self.made.parties
        self.model = folder / LABEL_PARTY / "model.opboost"
        for name in (LABEL_PARTY, *self.parties):
            self.put(name, people(rows[name], THEIRS.get(name, OWN)))
            job = (folder / name / "job.toml").read_text()
            job = job.replace('align = "given"', f'align = "{align}"\npurpose = "predict"')
            (folder / name / "predict.toml").write_text(job)
            text = self.made.config(name).read_text().replace('"job.toml"', '"predict.toml"')
            text = text.replace('"table.parquet"', '"new.parquet"')
            if name == LABEL_PARTY:
                text = re.sub(r"listen = .*", 'listen = "127.0.0.1:0"', text)
                text = re.sub(r"\[label\]\ncolumn = .*\n", "", text)
            self.config(name).write_text(text)

    def put(self, name, table):
        pa.parquet.write_table(table, self.folder / name / "new.parquet")

    def config(self, name):
        return self.folder / name / f"{name}-new.toml"

    def command(self, *more):
        table = str(self.folder / LABEL_PARTY / "new.parquet")
        arguments = ["predict", str(self.model), table, "--with-peers"]
        config = ["-c", str(self.config(LABEL_PARTY))]
        return [sys.executable, "-m", "opboost", *arguments, *config, *map(str, more)]

    def join(self, name, address, *more):
        config = str(self.config(name))
        command = [sys.executable, "-m", "opboost", "join", "-c", config, "--format", "json"]
        return Party([*command, "--connect", address, *more])

    def predicted(self, *more):
        """Return the label party's output after all parties' processes have succeeded."""
        label = Party(self.command(*more))
        address = label.address()
        joining = [self.join(name, address) for name in self.parties]
        for process in joining:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            assert json.loads(out)["phase"] == "done"
            assert "split query" not in err
        out, err = label.communicate(timeout=120)
        assert label.returncode == 0, err
        return out, err

    def common(self):
        """Return the people whom all parties have, in the order of the label party's table."""
        return [i for i in self.rows[LABEL_PARTY] if all(i in self.rows[p] for p in self.parties)]

    def on_one_machine(self, monkeypatch):
        """Return ``predict_proba(desensitize=True)`` of the common people, with the same noise."""
        rows, released = self.common(), {}
        for name in self.parties:
            home = self.folder / name
            with op.Ledger(home / "ledger", self.folder / "keys" / f"{name}.key") as ledger:
                before = ledger.runs()
                party = op.FeatureParty(
                    people(rows, THEIRS[name]), self.config(name), ledger=ledger, ids="id"
                )
                channel = op.MemoryChannel(party)
                channel.open(Welcome("20260102T030405Z-01020304", bytes(32), b""))
                for column, (_, came) in zip(party.plan.private, channel.columns(), strict=True):
                    released[column.name] = [OutColumn(column.name, came.values)]
                assert ledger.runs() == before
        model = op.load(self.model)
        table = people(rows, NAMES[:7])
        monkeypatch.setattr(model.desensitizer_, "release", lambda X: (X, released))
        return model.predict_proba(table, desensitize=True), model

    def new_cells(self, name):
        shown = json.loads(run("ledger", "show", "-c", self.config(name), "--format", "json")[1])
        return [r["new_cells"] for r in shown["releases"] if r.get("new_cells") is not None]


def partly_known():
    rng = np.random.default_rng(0)
    return {
        LABEL_PARTY: rng.permutation(np.arange(350, 569)),
        "shop": rng.permutation(np.arange(330, 560)),
        "telco": rng.permutation(np.arange(370, 569)),
    }


def test_new_rows_are_predicted_as_on_one_machine_by_network_and_by_bundles(
    trained, tmp_path, monkeypatch
):
    found = Prediction(trained, tmp_path, partly_known(), "psi")
    out = tmp_path / "first.csv"
    _, err = found.predicted("--out", out)
    assert "29 rows are left out, because not all parties have them." in err
    chances, model = found.on_one_machine(monkeypatch)
    assert set(model.sent_shares_.values()) == {1.0}  # so each prediction uses a posterior
    first = pa.csv.read_csv(out)
    assert first.column_names == ["id", "prediction", "probability=0", "probability=1"]
    assert first["id"].to_pylist() == [f"person-{i:04d}" for i in found.common()]
    assert np.array_equal(first["probability=1"].to_numpy(), chances[:, 1])
    assert first["prediction"].to_pylist() == chances.argmax(axis=1).tolist()

    # The ledgers knew the training's people; the others are drawn once.
    known = [i for i in found.common() if i < 400]
    new = 2 * (len(found.common()) - len(known))
    assert known
    assert found.new_cells("shop")[:2] == [800, new]

    # The same people get the same answer again, and nothing is spent.
    out = tmp_path / "again.csv"
    said, _ = found.predicted("--out", out, "--again", "--format", "json")
    assert out.read_bytes() == (tmp_path / "first.csv").read_bytes()
    assert found.new_cells("telco")[-1] == 0
    manifest = json.loads(said)
    assert (manifest["rows"], manifest["left_out"]) == (190, 29)
    assert manifest["align"]["theirs"] == {"shop": 230, "telco": 199}

    # A finished job repeats its answer without any other party.
    status, text, _ = run(*found.command()[3:])
    assert (status, text) == (0, out.read_text())

    # By bundles.
    office = Office(found)
    sent = office.written(LABEL_PARTY, "align", "--again")
    met = [office.written(p, "align", sent[p])[LABEL_PARTY] for p in found.parties]
    sent = office.written(LABEL_PARTY, "align", *met)
    export = {p: office.run(p, "export", sent[p]) for p in found.parties}
    assert {e["manifest"]["phase"] for e in export.values()} == {"done"}
    assert {w["next"] for e in export.values() for w in e["written"]} == {"finish"}
    paths = {p: e["written"][0]["path"] for p, e in export.items()}
    refused = office.tried(LABEL_PARTY, "split-query", paths["shop"])
    assert (refused.returncode, "--model MODEL --out FILE" in refused.stderr) == (2, True)
    refused = office.tried("shop", "answer", sent["shop"])
    assert (refused.returncode, "A prediction has no split query" in refused.stderr) == (2, True)
    refused = office.tried(LABEL_PARTY, "finish", paths["shop"])
    assert (refused.returncode, "is a prediction. Add --model" in refused.stderr) == (2, True)
    out = tmp_path / "bundles.csv"
    more = ["--model", found.model, "--out", out]
    assert office.run(LABEL_PARTY, "finish", paths["shop"], *more)["waiting"] == {"telco": "export"}
    assert not out.exists()
    office.run(LABEL_PARTY, "finish", paths["telco"], *more)
    assert out.read_bytes() == (tmp_path / "first.csv").read_bytes()
    refused = office.tried(LABEL_PARTY, "finish", paths["telco"], *more)
    assert (refused.returncode, "exists already" in refused.stderr) == (5, True)
    assert found.new_cells("shop")[-1] == 0


def test_given_rows_are_predicted_also_when_parties_come_one_by_one_and_the_label_party_dies(
    trained, tmp_path, monkeypatch
):
    rows = dict.fromkeys((LABEL_PARTY, "shop", "telco"), np.arange(380, 480)[::-1])
    found = Prediction(trained, tmp_path, rows, "given")
    label = Party(found.command())
    shop = found.join("shop", label.address(), "--leave")
    shop.communicate(timeout=60)
    assert shop.returncode == 0
    os.kill(label.pid, signal.SIGKILL)
    label.communicate()
    shown = run("serve", "-c", found.config(LABEL_PARTY), "--status", "--format", "json")
    where = json.loads(shown[1])
    assert where["parties"]["shop"]["phase"] == "released"
    status, _, words = run("bundle", "align", "-c", found.config(LABEL_PARTY), "--to", tmp_path)
    assert (status, "begun with opboost predict --with-peers" in words) == (2, True)

    out, err = found.predicted("--out", tmp_path / "p.parquet")
    assert out == ""
    assert "left out" not in err
    table = pa.parquet.read_table(tmp_path / "p.parquet")
    chances, _ = found.on_one_machine(monkeypatch)
    assert np.array_equal(table["probability=0"].to_numpy(), chances[:, 0])
    assert table["id"].to_pylist() == [f"person-{i:04d}" for i in rows["shop"]]

    # Other rows need another job.
    found.put(LABEL_PARTY, people(np.arange(380, 479), OWN))
    status, _, words = run(*found.command()[3:])
    assert (status, "--again" in words) == (5, True)
    found.put(LABEL_PARTY, people(rows["shop"], OWN[:1]))
    status, _, words = run(*found.command()[3:])
    assert status == 5
    assert f"{OWN[1]!r} is needed by the model but is not in the table" in words


def test_a_job_is_refused_to_the_verb_of_the_other_purpose_and_peers_to_what_is_no_prediction(
    trained, tmp_path
):
    found = Prediction(trained, tmp_path, partly_known(), "psi")
    status, _, words = run("serve", "-c", found.config(LABEL_PARTY))
    assert status == 2
    assert "opboost predict MODEL TABLE --with-peers" in words
    train = found.made.config(LABEL_PARTY)
    table = found.folder / LABEL_PARTY / "new.parquet"
    base = ["predict", found.model, table]
    for more, said in (
        (["--with-peers", "-c", train], "Run, with the same -c: opboost serve"),
        (["--with-peers"], "--with-peers needs -c"),
        (["-c", train], "need --with-peers"),
        (["--with-peers", "-c", train, "--desensitize"], "is for one machine"),
    ):
        status, _, words = run(*base, *more)
        assert (status, said in words) == (2, True), words
    more = ["--model", found.model, "--out", tmp_path / "x.csv"]
    status, _, words = run("bundle", "finish", "-c", train, table, *more)
    assert (status, "this job trains" in words) == (2, True)

    # A party that withholds values is told before it connects.
    text = found.config("shop").read_text()
    found.config("shop").write_text(text.replace("[party]\n", '[party]\ncodebook = "cuts"\n'))
    status, _, words = run("join", "-c", found.config("shop"))
    assert (status, 'Write codebook = "full" under [party]' in words) == (2, True)


def test_columns_of_another_model_are_refused_on_both_sides_and_the_right_model_takes_them(
    trained, tmp_path
):
    found = Prediction(trained, tmp_path, partly_known(), "psi")
    right, found.model = found.model, tmp_path / "other.opboost"
    theirs = [n for names in THEIRS.values() for n in names]
    mechanism = op.ClampMap(op.Domain(1, 10), epsilon=1.5)
    bounds = {n: BOUNDS[n] for n in theirs}
    table = people(TRAINED, [*OWN, *theirs])
    other = op.OpBoostClassifier(mechanism, bounds=bounds, booster="gbdt", denoise=False)
    other.fit(table.drop_columns(["id"]), DATA.target[TRAINED]).save(found.model)
    out = tmp_path / "x.csv"
    label = Party(found.command("--out", out))
    address = label.address()
    joining = [found.join(name, address) for name in found.parties]
    for process in joining:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 4
        assert "refused: The columns are not those that the model was trained on." in err
    _, err = label.communicate(timeout=60)
    assert label.returncode == 4
    assert f"Column {theirs[0]!r} of party 'shop' differs in mechanism from the one" in err
    assert "epsilon 2.0 instead of kind ClampMap, grid [1, 10], epsilon 1.5" in err
    assert not out.exists()
    found.model = right
    found.predicted("--out", out)
    assert pa.csv.read_csv(out).num_rows == len(found.common())
    assert len(found.new_cells("shop")) == 2


def test_a_split_query_in_a_prediction_is_not_answered(trained, tmp_path):
    rows = dict.fromkeys((LABEL_PARTY, "shop", "telco"), np.arange(380, 480))
    found = Prediction(trained, tmp_path, rows, "given")
    label = Party(found.command())
    try:
        shop = found.join("shop", label.address())
        boxes = tmp_path / LABEL_PARTY / "state"
        wait_for(lambda: len(list(boxes.glob("*/parties/shop/sent"))) == 2)
        folder = max(boxes.glob("*/job.json"), key=lambda f: JobRecord.load(f.parent).run).parent
        query = SplitQuery(folder.name, False, (Cuts(0, (1,)),))
        PartyFolder(folder, "shop").write("query", encode(query))
        _, err = shop.communicate(timeout=60)
        assert (shop.returncode, "which has none" in err) == (4, True)
    finally:
        stop(label)
    entries = json.loads(run("ledger", "export", "-c", found.config("shop"))[1])
    assert [e["kind"] for e in entries].count("answer") == 1  # from training


GRID = op.Domain(1, 10)


def declared(name, epsilon=0.64, upper=10.0, **more):
    return op.PrivateColumn(
        name, op.NumericMapping(GRID, (0.0, upper)), op.ClampMap(GRID, epsilon), **more
    )


def numbers(rows, names, seed=0):
    drawn = np.random.default_rng(seed).uniform(0, 10, (rows, len(names)))
    return pd.DataFrame(drawn, columns=names)


class Organisation:
    """Parties in one process, with a model and channels for new rows."""

    def __init__(self, columns, *, regress=False, denoise="auto", **settings):
        self.columns, self.settings = columns, settings
        tables = {p: numbers(300, [c.name for c in cs], 1) for p, cs in columns.items()}
        own = numbers(300, ["mine"], 2)
        total = own["mine"] + sum(t.iloc[:, 0] for t in tables.values())
        y = total if regress else total > total.median()
        bank = LabelParty(own, y, random_state=0, booster="gbdt", denoise=denoise)
        self.model = bank.train([op.MemoryChannel(self.party(p, tables[p])) for p in columns])

    def party(self, name, table, columns=None, **settings):
        columns = columns or self.columns[name]
        return op.FeatureParty(table, columns, name=name, **{**self.settings, **settings})

    def predicted(self, columns=None, gaps=(), **settings):
        columns, channels = columns or self.columns, []
        for name, theirs in columns.items():
            table = numbers(50, [c.name for c in theirs], 3)
            table.loc[::5, [c for c in gaps if c in table]] = np.nan
            channels.append(op.MemoryChannel(self.party(name, table, theirs, **settings)))
        return LabelParty(numbers(50, ["mine", "more"], 4), None).predict(self.model, channels)


PLAIN = {"shop": [declared("a"), declared("b")], "telco": [declared("c")]}


@pytest.fixture(scope="module")
def organisation():
    return Organisation(PLAIN)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {**PLAIN, "shop": [declared("a")]},
            "No party sent 'b', which the model was trained on",
        ),
        (
            {**PLAIN, "telco": [declared("c"), declared("d")]},
            "Party 'telco' sent column 'd', which the model does not have",
        ),
        (
            {**PLAIN, "telco": [declared("c", 0.7)]},
            "'c' of party 'telco' differs in mechanism .* epsilon 0.7 instead of .* 0.64",
        ),
        (
            {**PLAIN, "telco": [declared("c", upper=11.0)]},
            "differs in mapping .* bounds .0.0, 11.0",
        ),
        (
            {**PLAIN, "telco": [declared("c", missing=op.Flag(1.0, 5.0))]},
            "differs in missing .* policy flag, eps_missing 1.0, constant 5.0 instead of policy",
        ),
        ({**PLAIN, "telco": [declared("a")]}, "sent column 'shop.a', which the model does not"),
    ],
)
def test_columns_that_are_not_the_models_are_refused_by_name(organisation, columns, said):
    with pytest.raises(PeerError, match=said):
        organisation.predicted(columns)


def test_parties_that_are_not_the_models_are_refused_before_anybody_releases(organisation):
    for columns, words in (
        ({"shop": PLAIN["shop"]}, "'telco' holds columns of the model and takes no part"),
        ({**PLAIN, "bakery": [declared("d")]}, "'bakery' takes part in the job but has no columns"),
    ):
        with pytest.raises(ParameterError, match=words):
            organisation.predicted(columns)


def test_a_policy_for_gaps_that_changes_no_distribution_is_the_partys_own_affair(organisation):
    with pytest.raises(op.ColumnError, match="'c'"):
        organisation.predicted(gaps=["c"])
    found = organisation.predicted({**PLAIN, "telco": [declared("c", missing=5.0)]}, gaps=["c"])
    assert found.rows.tolist() == list(range(50))
    assert found.guarantee == organisation.predicted().guarantee
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert set(found.prediction) == {False, True}


def test_withheld_codebooks_are_refused_by_the_label_party_too(organisation, tmp_path):
    with pytest.raises(PeerError, match=r'withholds its codebook.*codebook = "full" under \[party'):
        organisation.predicted(codebook="cuts")
    party = organisation.party("shop", numbers(50, ["a", "b"]), codebook="cuts")
    welcome = Welcome("20260102T030405Z-01020304", bytes(32), b"")
    schema, _ = party.release(welcome)
    record = JobRecord(
        welcome.job, "", bytes(32).hex(), 50, schema.ids.hex(), "bank", ("shop",), (), True, 9, 1
    )
    box = PartyFolder(tmp_path, "shop")
    taken_schema(record, box, encode(schema))
    with pytest.raises(PeerError, match="withholds its codebook"):
        taken_schema(replace(record, purpose="predict"), box, encode(schema))


@pytest.mark.parametrize("denoise", [True, False])
@pytest.mark.parametrize("regress", [True, False])
def test_the_answer_is_that_of_one_machine_given_the_same_noise(monkeypatch, denoise, regress):
    made = Organisation(PLAIN, regress=regress, denoise=denoise)
    tables = {p: numbers(50, [c.name for c in cs], 3) for p, cs in PLAIN.items()}
    parties = [made.party(p, table) for p, table in tables.items()]
    own = numbers(50, ["mine"], 4)
    found = LabelParty(own, None).predict(made.model, [op.MemoryChannel(p) for p in parties])
    assert (made.model.sent_shares_ is not None) == denoise
    released = {}
    for party in parties:
        channel = op.MemoryChannel(party)
        channel.open(Welcome("20260102T030405Z-01020304", bytes(32), b""))  # it answers from memory
        for column, (_, came) in zip(party.plan.private, channel.columns(), strict=True):
            released[column.name] = [OutColumn(column.name, came.values)]
    everything = pd.concat([own, *tables.values()], axis=1)
    monkeypatch.setattr(made.model.desensitizer_, "release", lambda X: (X, released))
    alone = made.model.predict(everything, desensitize=True)
    assert np.array_equal(found.prediction, alone)
    if not regress:
        chances = made.model.predict_proba(everything, desensitize=True)
        assert np.array_equal(found.probabilities, chances)


@pytest.mark.parametrize("settings", [{}, {"units": "grid", "names": "hidden"}, {"regress": True}])
def test_names_are_told_apart_as_in_the_training(settings):
    # Both have a column "a", and the label party has one named like a feature of theirs.
    same = {"shop": [declared("a"), declared("mine")], "telco": [declared("a")]}
    made = Organisation(same, **settings)
    found = made.predicted()
    assert found.rows.tolist() == list(range(50))
    assert len(found.prediction) == 50
    assert (found.probabilities is None) == ("regress" in settings)
    assert found.guarantee.total == pytest.approx(3 * 9 * 0.64)
    columns = found.table().column_names
    assert columns[0] == "prediction"
    assert len(columns) == (1 if "regress" in settings else 3)
    # With parties in another order, the answer still has all the same columns.
    made.predicted(dict(reversed(same.items())))


def test_rows_without_a_label_are_not_learnt_from_and_need_what_the_model_takes(organisation):
    channels = [op.MemoryChannel(organisation.party("shop", numbers(50, ["a", "b"])))]
    with pytest.raises(ParameterError, match="no label to learn"):
        LabelParty(numbers(50, ["mine"]), None).train(channels)
    with pytest.raises(ParameterError, match="need features=, or ids"):
        LabelParty(None, None)
    with pytest.raises(ColumnError, match="'mine' is needed by the model"):
        LabelParty(numbers(50, ["other"]), None).predict(organisation.model, channels)


def test_a_column_that_no_row_sent_is_a_gap_and_another_share_is_refused(tmp_path):
    def schema(per_row):
        file = tmp_path / f"{per_row}.toml"
        budget = f'[budget]\nsplit = "sampled"\ncolumns_per_row = {per_row}\n' if per_row else ""
        columns = "".join(f"[columns.{n}]\nbounds = [0, 10]\n" for n in "abc")
        file.write_text(f'[mechanism]\nkind = "clamp-map"\nepsilon = 1.0\n{columns}{budget}')
        return file

    def channel(rows, per_row=1):
        table = numbers(rows, list("abc"))
        return [op.MemoryChannel(op.FeatureParty(table, schema(per_row)))]

    def mine(rows):
        return numbers(rows, ["mine"], 1)

    y = numbers(400, list("abc"))["a"] > 5
    model = LabelParty(mine(400), y, random_state=0, denoise=True).train(channel(400))
    assert model.sent_shares_ == pytest.approx(dict.fromkeys("abc", 1 / 3))
    for rows in (1, 2):
        found = LabelParty(mine(rows), None).predict(model, channel(rows))
        assert np.isfinite(found.probabilities).all()
    with pytest.raises(PeerError, match=r"differs in mechanism|different share"):
        LabelParty(mine(5), None).predict(model, channel(5, 2))
    with pytest.raises(PeerError, match=r"differs in mechanism|different share"):
        LabelParty(mine(5), None).predict(model, channel(5, 0))
