"""``opboost predict --with-peers --release score``: over mutual TLS and by bundles."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet
import pytest

from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
)
from robustness.bundle_office import Office
from robustness.party_processes import BOOSTER, DATA, Party, federation, wait_for
from tests.support.parties import refused
from tests.transport.test_predict_peers import OWN, THEIRS, TRAINED, Prediction, people

ROWS = {
    LABEL_PARTY: np.arange(350, 569),
    "shop": np.arange(330, 560),
    "telco": np.arange(370, 569)[::-1],
}


@pytest.fixture(scope="module")
def by_party(tmp_path_factory):
    """Make a federation whose parties have trained a by-party model on the first 400 people."""
    folder = tmp_path_factory.mktemp("by-party")
    # With little noise and many trees, each party's columns are used by some tree.
    rounds = {**BOOSTER, "num_boost_round": 40}
    made = federation(folder, align="given", epsilon=8.0, booster=rounds)
    for name in (LABEL_PARTY, *made.parties):
        table = people(TRAINED, THEIRS.get(name, OWN), name == LABEL_PARTY)
        pyarrow.parquet.write_table(table, folder / name / "table.parquet")
        config, text = made.config(name), made.config(name).read_text()
        if name == LABEL_PARTY:
            text += 'denoise = true\nstructure = "by-party"\n'
            text = text.replace("[label]\n", "[label]\nshare_trees = true\n")
        else:
            text = text.replace("[ledger]\n", "[ledger]\ncap_person = 1000.0\n")
            text += "[budget]\nscore = 6.0\nscore_despite_radius = true\n"
        config.write_text(text)
    run_federation(made, timeout=120)
    return made


class Scored(Prediction):
    """A prediction whose label party keeps the section that shares trees."""

    def __init__(self, trained, folder, align):
        super().__init__(trained, folder, ROWS, align)
        config = self.config(LABEL_PARTY)
        text = config.read_text()
        if "[label]" not in text:
            text += "\n[label]\nshare_trees = true\n"
        config.write_text(text)

    def decline(self, name):
        text = self.config(name).read_text()
        self.config(name).write_text(text[: text.index("[budget]")])


def answers(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_scores_by_network_and_by_bundles_are_the_same_draws(by_party, tmp_path):
    found = Scored(by_party, tmp_path, "psi")
    _, words = found.predicted("-o", tmp_path / "net.csv", "--release", "score")
    rows = answers(tmp_path / "net.csv")
    assert [int(r["id"][-4:]) for r in rows] == found.common()
    right = [r["prediction"] == str(DATA.target[int(r["id"][-4:])]) for r in rows]
    assert np.mean(right) > 0.8, words
    office = Office(found)
    more = ["--again", "--release", "score", "--model", found.model]
    sent = office.written(LABEL_PARTY, "align", *more)
    met = [office.written(p, "align", sent[p])[LABEL_PARTY] for p in found.parties]
    sent = office.written(LABEL_PARTY, "align", *met)
    came = [office.written(p, "export", sent[p])[LABEL_PARTY] for p in found.parties]
    out = tmp_path / "bundles.csv"
    office.run(LABEL_PARTY, "finish", *came, "--model", found.model, "--out", out)
    assert answers(out) == rows
    assert found.new_cells("shop")[-1] == 0


@pytest.mark.parametrize("align", ["given", "psi"])
def test_a_party_that_declined_ends_the_job_in_one_sentence(by_party, tmp_path, align):
    found = Scored(by_party, tmp_path, align)
    rows = np.arange(380, 480)
    for name in (LABEL_PARTY, *found.parties):
        found.put(name, people(rows, THEIRS.get(name, OWN)))
    found.decline("shop")

    def jobs(name):
        return sorted(p.parent.name for p in found.folder.glob(f"{name}/**/binding.json"))

    before, charged = jobs("shop"), [found.new_cells(name) for name in found.parties]
    assert before
    out = tmp_path / "never.csv"
    trained = set((tmp_path / LABEL_PARTY / "state").glob("*/parties/telco/*"))
    label = Party(found.command("-o", out, "--release", "score"))
    address, state = label.address(), tmp_path / LABEL_PARTY / "state"
    telco = found.join("telco", address)
    note = "agreed" if align == "given" else "00000.raised"
    wait_for(lambda: set(state.glob(f"*/parties/telco/{note}")) - trained)
    shop = found.join("shop", address)
    _, said = shop.communicate(timeout=120)
    assert (shop.returncode, "releases no scores" in said) == (3, True)
    _, words = label.communicate(timeout=120)
    assert (label.returncode, "'shop' declined to release a score" in words) == (4, True)
    _, said = telco.communicate(timeout=120)
    assert (telco.returncode, "The label party ended the job." in said) == (4, True), said
    assert not out.exists()
    assert jobs("shop") == before
    assert [found.new_cells(name) for name in found.parties] == charged
    if align == "psi":
        return
    office = Office(found)
    more = ["--again", "--release", "score", "--model", found.model]
    sent = office.written(LABEL_PARTY, "align", *more)
    status, words = refused(office, "shop", "export", sent["shop"])
    assert (status, "releases no scores" in words) == (3, True)
