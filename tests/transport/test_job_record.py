"""``[job] record``: the most that all feature parties together reveal about one person."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.budgets.job_limit import check_record
from opboost.config import BoosterSection, Plan
from opboost.config.job_file import load_feature, load_job
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ConfigError, PeerError, PrivacyError
from opboost.parties.message_checks import check_total
from opboost.protocol.messages import Welcome
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import Party, federation, joined, serving, wait_for
from tests.support.parties import ended


def limited(folder, record, totals, **settings):
    """Make a federation whose parties have record budgets and whose job has a limit."""
    made = federation(folder, tuple(totals), **settings)
    for name in (LABEL_PARTY, *totals):
        job = made.folder / name / "job.toml"
        job.write_text(job.read_text().replace("[job]\n", f"[job]\nrecord = {record}\n"))
    for name, total in totals.items():
        budget(made, name, total)
    return made


def budget(made, name, total):
    config = made.config(name)
    head, _, tail = config.read_text().partition("[grid]")
    columns = tail[tail.index("[columns") :]
    head = head.partition("[budget]")[0]
    config.write_text(f"{head}[budget]\nrecord = {total}\n[grid]\n{columns}")


def kinds(made, party):
    """Return the kinds of the entries in a party's ledger."""
    status, out, words = run("ledger", "export", "-c", made.config(party))
    return [e["kind"] for e in json.loads(out)] if status == 0 else words


def join(made, party, address):
    return ended([*made.command(party), "--connect", address])


# In memory


def parties(totals, rows=300):
    rng = np.random.default_rng(0)
    found = {}
    for name, total in totals.items():
        bounds = {f"{name}-a": (0, 1), f"{name}-b": (0, 1)}
        made = op.RecordPlan.of(op.Budget.record(total), bounds=bounds)
        names = tuple(bounds)
        plan = Plan("test", made.columns, (), (), made.budget, BoosterSection(), names, made)
        table = pd.DataFrame({c: rng.uniform(size=rows) for c in bounds})
        found[name] = op.FeatureParty(table, plan, name=name)
    return found


def trained(totals, record):
    found = parties(totals)
    y = np.arange(300) % 2
    bank = op.LabelParty(None, y, booster="gbdt", random_state=0, record=record)
    bank.train([op.MemoryChannel(p) for p in found.values()])
    return [e.kind for p in found.values() for e in p.ledger.entries("reserve")]


def test_parties_within_the_limit_meet_in_memory():
    assert trained({"shop": 4.0, "telco": 4.0}, 8.0) == ["reserve", "reserve"]
    assert trained({"shop": 4.0, "telco": 4.0}, None) == ["reserve", "reserve"]


def test_parties_beyond_the_limit_are_refused_in_memory_before_anything_is_drawn():
    found = parties({"shop": 4.0, "telco": 5.0})
    bank = op.LabelParty(None, np.arange(300) % 2, booster="gbdt", record=8)
    words = (
        r"allows 8 to be revealed about one person .*\[job\] record.*: shop 4, telco 5 \(9 in all\)"
    )
    with pytest.raises(PrivacyError, match=words):
        bank.train([op.MemoryChannel(p) for p in found.values()])
    assert not [e for p in found.values() for e in p.ledger.entries("reserve", "commit")]


def test_a_party_that_alone_goes_beyond_the_limit_refuses_by_itself():
    shop = parties({"shop": 4.0})["shop"]
    with pytest.raises(PrivacyError, match=r"allows 3 .*: shop 4\."):
        shop.hello(3.0)
    assert shop.hello(4.0).total == 4.0
    assert shop.hello(0.0).total == 0.0  # no limit was sent


@pytest.mark.parametrize("record", [0, -1, float("inf"), float("nan"), True, "8"])
def test_a_limit_is_a_positive_number(record):
    with pytest.raises(op.errors.ParameterError, match="positive, finite number"):
        op.LabelParty(None, [0, 1], record=record)


def test_totals_add_up_as_people_write_them():
    check_record({"a": 0.1, "b": 0.2}, 0.3)  # as floats: 0.30000000000000004
    with pytest.raises(PrivacyError, match=r"a 0\.1, b 0\.21 \(0\.31 in all\)"):
        check_record({"a": 0.1, "b": 0.21}, 0.3)
    with pytest.raises(PrivacyError, match=r"Party 'b' may reveal any amount about one person"):
        check_record({"a": 0.1, "b": float("inf")}, 8.0)


def test_a_release_that_reveals_more_than_was_said_is_refused():
    shop = parties({"shop": 4.0})["shop"]
    channel = op.MemoryChannel(shop)
    schema = channel.open(Welcome("20260102T030405Z-01020304", bytes(32), b""))
    check_total(schema, 4.0)
    with pytest.raises(PeerError, match=r"'shop' said that it reveals 3 .* reveals 4"):
        check_total(schema, 3.0)


# With files


def test_a_file_is_refused_when_its_plan_alone_exceeds_the_job(tmp_path):
    made = limited(tmp_path, 8.0, {"shop": 9.0})
    with pytest.raises(PrivacyError, match=r"allows 8 .*: shop 9\."):
        load_feature(made.config("shop"))
    status, _, words = run("join", "-c", made.config("shop"))
    assert (status, "shop 9" in words) == (3, True)
    assert not (tmp_path / "shop" / "ledger").exists()
    budget(made, "shop", 8.0)
    assert load_feature(made.config("shop")).job.record == 8.0
    assert load_job(made.folder / "shop" / "job.toml").record == 8.0


@pytest.mark.parametrize("record", ["0", "-1", "inf", "nan", '"8"', "true"])
def test_a_bad_limit_in_the_job_file_is_refused(tmp_path, record):
    made = limited(tmp_path, record, {"shop": 4.0})
    with pytest.raises(ConfigError, match="record"):
        load_job(made.folder / "shop" / "job.toml")


@pytest.mark.parametrize("verb", ["certify", "plan", "doctor"])
def test_caps_that_the_plan_alone_exceeds_are_found_when_the_file_is_read(tmp_path, verb):
    made = limited(tmp_path, 8.0, {"shop": 4.0}, ledger={"cap_person": 3.9})
    status, out, words = run(verb, "-c", made.config("shop"), "--format", "json")
    said = " ".join((out + words).split())
    assert status != 0
    assert "all attributes together no more than 3.9 may be spent" in said
    text = made.config("shop").read_text()
    made.config("shop").write_text(text.replace("cap_person = 3.9", "cap_person = 4.0"))
    assert run(verb, "-c", made.config("shop"))[0] in ((0, 1) if verb == "doctor" else (0,))


# Over the network


@pytest.mark.parametrize("align", ["psi", "given"])
def test_parties_within_the_limit_meet_over_the_network(tmp_path, align):
    made = limited(tmp_path, 8.0, {"shop": 4.0, "telco": 4.0}, align=align)
    with serving(made) as (process, address):
        manifests = joined(made, address)
        assert process.wait(timeout=120) == 0
    assert [m["total"] for m in manifests] == [4.0, 4.0]


@pytest.mark.parametrize("align", ["psi", "given"])
def test_who_brings_the_parties_beyond_the_limit_is_refused_and_nobody_has_drawn(tmp_path, align):
    made = limited(tmp_path, 8.0, {"shop": 4.0, "telco": 5.0}, align=align)
    with serving(made) as (process, address):
        waiting = Party([*made.command("shop"), "--connect", address])
        first = made.folder / LABEL_PARTY / "state"
        wait_for(lambda: list(first.glob("*/parties/shop/hello")))
        refused = join(made, "telco", address)
        assert refused.returncode == 4, refused.stderr
        words = " ".join(refused.stderr.split())
        assert "allows 8 to be revealed about one person" in words
        assert "shop 4, telco 5 (9 in all)" in words
        assert "commit" not in kinds(made, "shop")
        assert "reserve" not in kinds(made, "shop")
        assert kinds(made, "telco") == ["open"]
        budget(made, "telco", 4.0)  # it joins again with a smaller total
        assert joined(made, address, parties=["telco"])[0]["total"] == 4.0
        assert waiting.communicate()[1] is not None
        assert process.wait(timeout=120) == 0
    assert kinds(made, "shop").count("commit") == 1


# By bundles


def test_parties_within_the_limit_meet_by_bundles(tmp_path):
    office = Office(limited(tmp_path, 8.0, {"shop": 4.0, "telco": 4.0}))
    assert office.model().exists()
    alone = Office(limited(tmp_path / "given", 4.0, {"shop": 4.0}, align="given"))
    assert alone.model().exists()


def test_parties_beyond_the_limit_are_refused_by_bundles_before_anything_is_drawn(tmp_path):
    office = Office(limited(tmp_path, 8.0, {"shop": 4.0, "telco": 5.0}))
    sent = office.begun()
    met = [office.written(p, "align", sent[p])[LABEL_PARTY] for p in ("shop", "telco")]
    done = office.tried(LABEL_PARTY, "align", *met)
    assert done.returncode == 3
    assert "shop 4, telco 5 (9 in all)" in done.stderr
    for party in ("shop", "telco"):
        assert not {"reserve", "commit"} & set(kinds(office.made, party))


def test_given_rows_by_bundles_have_no_meeting_before_the_release(tmp_path):
    made = limited(tmp_path, 8.0, {"shop": 4.0, "telco": 4.0}, align="given")
    done = Office(made).tried(LABEL_PARTY, "align")
    assert done.returncode == 2
    assert 'Write align = "psi" under [job]' in done.stderr
