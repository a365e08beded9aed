"""A pilot between real processes over TLS: weights of columns, and kills before and after them."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pyarrow as pa
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY, write_federation
from opboost.protocol.messages import Weights, decode
from robustness.command_line import run
from robustness.party_processes import BOOSTER, Party, joined, serving, wait_for

COUNT, ROWS = 8, 5_000
NAMES = [f"c{k}" for k in range(COUNT)]


def federation(folder, align="given", pilot=0.3, label="", parties=("shop",), piloting=None):
    rng = np.random.default_rng(0)
    ids = pa.array([f"person-{k:04d}" for k in range(ROWS)])
    values = rng.random((ROWS, COUNT))
    own = pa.table({"ill": (values[:, 2] > 0.5).astype(int), "id": ids})
    tables = {}
    for party in parties:
        names = NAMES if party == "shop" else [f"{party}-{n}" for n in NAMES]
        tables[party] = pa.table({**dict(zip(names, values.T, strict=True)), "id": ids})
    bounds = {n: (0, 1) for t in tables.values() for n in t.column_names}
    made = write_federation(
        folder, own, "ill", tables, bounds, epsilon=1.0, booster=BOOSTER, align=align
    )
    for party in parties if piloting is None else piloting:
        head, _, rest = made.config(party).read_text().partition("[grid]")
        columns = rest[rest.index("[columns.") :]
        budget = f"[budget]\nrecord = 4.0\ncolumns_per_row = 1\npilot = {pilot}\n\n"
        made.config(party).write_text(head + budget + columns)
    bank = made.config(LABEL_PARTY)
    bank.write_text(bank.read_text().replace("[label]\n", f"[label]\n{label}"))
    return made


def new_cells(made, party="shop"):
    shown = json.loads(run("ledger", "show", "-c", made.config(party), "--format", "json")[1])
    return [r["new_cells"] for r in shown["releases"] if r.get("new_cells") is not None]


def told(made, party="shop"):
    (file,) = (made.folder / LABEL_PARTY / "state").glob(f"*/parties/{party}/weights")
    (theirs,) = (made.folder / party / "state").glob("*/weights")
    assert theirs.read_bytes() == file.read_bytes()
    return decode(file.read_bytes(), Weights).columns


def finished(made):
    with serving(made) as (process, address):
        done = joined(made, address)
        assert process.wait(60) == 0
    return done


def check_whole(made):
    halved = told(made)
    assert halved[2] == 0
    assert np.mean([h for k, h in enumerate(halved) if k != 2]) > 1.5
    cells = new_cells(made)
    assert sum(cells) == ROWS  # one column per person, once
    assert 0.2 * ROWS < cells[0] < 0.4 * ROWS
    assert run("ledger", "verify", "-c", made.config("shop"))[0] == 0
    op.load(made.folder / LABEL_PARTY / "model.opboost")


@pytest.mark.parametrize("align", ["given", "psi"])
def test_a_pilot_goes_first_and_the_others_choose_by_its_weights(tmp_path, align):
    made = federation(tmp_path, align)
    (done,) = finished(made)
    assert done["phase"] == "done"
    assert done["total"] <= 4.0
    check_whole(made)


@pytest.mark.parametrize("moment", ["parties/shop/pilot/00003.arrow", "parties/shop/weights"])
def test_a_kill_of_both_sides_in_between_loses_nothing(tmp_path, moment):
    made = federation(tmp_path)
    with serving(made) as (process, address):
        victim = Party([*made.command("shop"), "--connect", address])
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob(f"*/{moment}")))
        os.kill(victim.pid, signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        victim.communicate()
        process.communicate()
    before = [f.read_bytes() for f in (tmp_path / LABEL_PARTY / "state").glob(f"*/{moment}")]
    finished(made)
    after = [f.read_bytes() for f in (tmp_path / LABEL_PARTY / "state").glob(f"*/{moment}")]
    assert after == before
    check_whole(made)


def test_two_parties_are_weighed_each_by_itself_and_weights_may_be_refused(tmp_path):
    made = federation(tmp_path, label="share_weights = false\n", parties=("shop", "telco"))
    finished(made)
    assert told(made) == told(made, "telco") == ()
    assert sum(new_cells(made)) == sum(new_cells(made, "telco")) == ROWS


def test_too_few_people_for_a_pilot_are_refused_before_anything_is_drawn(tmp_path):
    made = federation(tmp_path, pilot=0.1)
    with serving(made) as (_, address):
        victim = Party([*made.command("shop"), "--connect", address])
        _, said = victim.communicate(timeout=60)
    assert victim.returncode == 2
    assert "too few to tell columns apart" in said
    assert new_cells(made) == []
