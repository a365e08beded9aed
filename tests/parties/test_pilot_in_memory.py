"""A pilot between a feature party and a label party in one process."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.config.columns_file import parse
from opboost.errors import PeerError
from opboost.ledger import Ledger
from opboost.protocol.messages import Weights, decode, encode

COUNT, ROWS = 12, 6_000
NAMES = [f"c{k}" for k in range(COUNT)]
TOML = "[budget]\nrecord = 4.0\ncolumns_per_row = 1\npilot = {}\n[align]\nid = 'id'\n" + "\n".join(
    f"[columns.{name}]\nbounds = [0, 1]" for name in NAMES
)


def people(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.random((rows, COUNT)), columns=NAMES)
    table.insert(0, "id", [f"p{k}" for k in range(rows)])
    return table, (table["c4"] > 0.5).to_numpy()


def shop(table, place, pilot=0.3, **more):
    ledger = Ledger(place / "ledger", place / "key", ids="canonical")
    plan = parse(TOML.format(pilot), "b.toml")
    state = place / "state"
    return op.FeatureParty(table, plan, ledger=ledger, ids="id", state=state, **more)


def bank(y, **more):
    ids = [f"p{k}" for k in range(len(y))]
    params = {"n_estimators": 5, "max_depth": 2}
    return op.LabelParty(None, y, ids=ids, booster_params=params, random_state=0, **more)


def released(party):
    job = next(party.folder("x").parent.iterdir()).name
    return job, party._jobs.weights(job)


@pytest.mark.parametrize("align", ["given", "psi"])
def test_the_pilot_comes_first_and_everybody_is_charged_once(tmp_path, align):
    table, y = people()
    party = shop(table, tmp_path, align=align)
    model = bank(y, align=align).train([op.MemoryChannel(party)])
    job, told = released(party)
    weights = dict(zip(NAMES, told.columns, strict=True))
    assert weights["c4"] == 0
    assert np.mean([h for name, h in weights.items() if name != "c4"]) > 2
    commits = list(party.ledger.entries("commit"))
    assert [e.body["job"] for e in commits] == [job, job]
    first, rest = commits
    assert 0.25 * ROWS < first.body["new_cells"] < 0.35 * ROWS
    assert first.body["new_cells"] + rest.body["new_cells"] == ROWS
    assert rest.body["old_cells"] == first.body["new_cells"]
    assert party.guarantee().total <= 4
    assert np.mean(model.predict(table[NAMES]) == y) > 0.9


def test_a_label_party_may_keep_its_weights_to_itself(tmp_path):
    table, y = people()
    party = shop(table, tmp_path)
    bank(y, share_weights=False).train([op.MemoryChannel(party)])
    _, told = released(party)
    assert told.columns == ()


def test_label_noise_of_a_stated_level_is_drawn_first(tmp_path):
    table, y = people()
    party = shop(table, tmp_path)
    bank(y, weights_epsilon=4.0).train([op.MemoryChannel(party)])
    assert released(party)[1].columns[4] == 0
    with pytest.raises(op.ParameterError, match="weights_epsilon"):
        bank(y, weights_epsilon=0)


def test_a_second_job_repeats_what_was_drawn(tmp_path):
    table, y = people()
    party = shop(table, tmp_path)
    bank(y).train([op.MemoryChannel(party)])
    bank(table["c7"].to_numpy() > 0.5).train([op.MemoryChannel(party)])
    drawn = [e.body["new_cells"] for e in party.ledger.entries("commit")]
    assert sum(drawn) == ROWS
    assert drawn[2:] == [0, 0]


def test_too_few_rows_are_refused_before_anything_is_drawn(tmp_path):
    table, y = people(rows=2_000)
    party = shop(table, tmp_path)
    with pytest.raises(op.ParameterError, match="has 600, too few"):
        bank(y).train([op.MemoryChannel(party)])
    assert not list(party.ledger.entries("reserve"))


def test_weights_that_do_not_fit_are_refused(tmp_path):
    table, _ = people()
    party = shop(table, tmp_path)
    job = "20260101T000000Z-00000000"
    with pytest.raises(PeerError, match="before any pilot"):
        party.take_weights(Weights(job, ()))
    message = Weights(job, (0, 3, 1))
    assert decode(encode(message), Weights) == message
    with pytest.raises(op.OpBoostError, match="halved"):
        Weights(job, (4,))


def test_new_people_are_predicted_by_the_weights_of_the_training(tmp_path):
    table, y = people()
    party = shop(table, tmp_path)
    model = bank(y).train([op.MemoryChannel(party)])
    known = op.LabelParty(None, None, ids=table["id"].tolist())
    assert len(known.predict(model, [op.MemoryChannel(party)]).rows) == ROWS
    assert sum(e.body["new_cells"] for e in party.ledger.entries("commit")) == ROWS
    new, _ = people(seed=1)
    new["id"] = [f"q{k}" for k in range(ROWS)]
    plan = parse(TOML.format(0.3), "b.toml")
    party = op.FeatureParty(new, plan, ledger=party.ledger, ids="id", state=tmp_path / "state")
    later, channel = op.LabelParty(None, None, ids=new["id"].tolist()), op.MemoryChannel(party)
    assert len(later.predict(model, [channel]).rows) == ROWS
    sent = [np.mean(~column.missing) for _, column in channel.columns()]
    assert sent[4] > 1.5 / COUNT  # an even choice has 1 / COUNT, with a deviation of 0.004
