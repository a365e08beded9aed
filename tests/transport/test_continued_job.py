"""A job that continues a model: a party with different columns refuses before anybody draws."""

from __future__ import annotations

import json

import pyarrow.parquet
import pytest

import opboost as op
from opboost.config.job_file import load_feature
from opboost.demo.local_federation import LABEL_PARTY
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import Party, federation, joined, serving, wait_for
from tests.support.parties import ended, refused

SENTENCE = "has a mechanism that differs from the model that is continued"
BOOSTER = {"n_estimators": 2, "max_depth": 2, "nthread": 1}


def continuing(folder, parties=("shop", "telco"), **settings):
    """Make a federation whose label party continues a model trained on the same files."""
    made = federation(folder, parties, booster=BOOSTER, **settings)
    channels = []
    for name in parties:
        table, config = made.folder / name / "table.parquet", load_feature(made.config(name))
        party = op.FeatureParty(table, config.plan, ids="id", name=name)
        channels.append(op.MemoryChannel(party))
    own = pyarrow.parquet.read_table(made.folder / LABEL_PARTY / "table.parquet")
    label, ids = own.column("ill").to_numpy(), own.column("id").to_pylist()
    settings = {"booster_params": BOOSTER, "denoise": False, "held_out": 0}
    bank = op.LabelParty(own.drop_columns(["ill", "id"]), label, ids=ids, **settings)
    bank.train(channels).save(made.folder / LABEL_PARTY / "first.opboost")
    edit(made, LABEL_PARTY, "[label]\n", '[label]\ncontinue_from = "first.opboost"\n')
    edit(made, LABEL_PARTY, "[booster]\n", "[train]\nheld_out = 0\n[booster]\ndenoise = false\n")
    return made


def edit(made, name, old, new):
    config = made.config(name)
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


def kinds(made, party):
    """Return the kinds of the entries in a party's ledger."""
    return [e["kind"] for e in json.loads(run("ledger", "export", "-c", made.config(party))[1])]


def rounds(made):
    return op.load(made.folder / LABEL_PARTY / "model.opboost").trained_.rounds


@pytest.mark.parametrize("align", ["given", "psi"])
def test_over_the_network_nobody_draws_until_all_parties_have_the_models_columns(tmp_path, align):
    made = continuing(tmp_path, align=align)
    edit(made, "telco", "epsilon = 2.0", "epsilon = 1.5")
    with serving(made) as (process, address):
        shop = Party([*made.command("shop"), "--connect", address])
        state = tmp_path / LABEL_PARTY / "state"
        note = "agreed" if align == "given" else "00000.raised"
        wait_for(lambda: list(state.glob(f"*/parties/shop/{note}")))
        telco = ended([*made.command("telco"), "--connect", address])
        words = " ".join(telco.stderr.split())
        assert (telco.returncode, SENTENCE in words) == (5, True), words
        assert "epsilon 1.5" in words
        assert "epsilon 2.0" in words
        assert "reserve" not in kinds(made, "shop")
        assert kinds(made, "telco") == ["open"]
        assert not list((tmp_path / "telco" / "state").glob("2*"))
        edit(made, "telco", "epsilon = 1.5", "epsilon = 2.0")
        assert joined(made, address, parties=["telco"])[0]["phase"] == "done"
        assert shop.communicate()[1]
        said = process.communicate()[1]
        assert process.returncode == 0, said
    told = "telco refuses to release (its declaration of columns)"
    assert said.count(told) == 1
    assert "epsilon" not in said
    assert rounds(made) == 4
    assert kinds(made, "shop").count("commit") == kinds(made, "telco").count("commit") == 1


def test_by_bundles_a_party_with_other_columns_leaves_everything_as_it_was(tmp_path):
    made = continuing(tmp_path)
    office = Office(made)
    sent = office.begun()
    met = [office.written("shop", "align", sent["shop"])[LABEL_PARTY]]
    edit(made, "telco", "epsilon = 2.0", "epsilon = 1.5")
    assert office.tried("telco", "align", sent["telco"]).returncode == 5  # it begins its ledger
    status, words = refused(office, "telco", "align", sent["telco"])
    assert (status, SENTENCE in words) == (5, True), words
    assert not {"align", "reserve"} & set(kinds(made, "telco"))
    assert "reserve" not in kinds(made, "shop")
    edit(made, "telco", "epsilon = 1.5", "epsilon = 2.0")
    met.append(office.written("telco", "align", sent["telco"])[LABEL_PARTY])
    queries = office.queries(office.written(LABEL_PARTY, "align", *met))
    answers = [office.written(p, "answer", queries[p])[LABEL_PARTY] for p in made.parties]
    office.run(LABEL_PARTY, "finish", *answers)
    assert rounds(made) == 4


def test_one_party_of_given_rows_is_refused_by_bundles_before_it_draws(tmp_path):
    made = continuing(tmp_path, ("shop",), align="given")
    office = Office(made)
    sent = office.begun()["shop"]
    edit(made, "shop", "epsilon = 2.0", "epsilon = 1.5")
    done = office.tried("shop", "export", sent)
    assert (done.returncode, SENTENCE in done.stderr) == (5, True)
    assert kinds(made, "shop") == ["open"]
    edit(made, "shop", "epsilon = 1.5", "epsilon = 2.0")
    assert office.written("shop", "export", sent)


def test_what_the_label_party_knows_to_be_refused_is_refused_before_the_job_begins(tmp_path):
    made = continuing(tmp_path, align="given")
    done = Office(made).tried(LABEL_PARTY, "align")
    assert done.returncode == 2
    assert "continues a model ([label] continue_from)" in done.stderr
    assert 'Write align = "psi" under [job]' in done.stderr
    config = made.config(LABEL_PARTY)
    config.write_text(f"{config.read_text()}\n[peers.telco]\nrevoked = true\n")
    for verb in ("serve", "doctor"):
        status, out, words = run(verb, "-c", config, "--format", "json")
        assert (status, "'telco' takes no part in the job" in out + words) == (2, True), verb
    assert not list((tmp_path / LABEL_PARTY).glob("state/2*"))
