"""A release in parts draws noise once and charges once, wherever it is interrupted."""

import os
import shutil
import stat
from dataclasses import replace
from threading import Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import opboost as op
from opboost.config.columns_file import parse
from opboost.files.whole_table import read_table
from opboost.ledger import Ledger
from opboost.ledger.chain import Chain
from opboost.ledger.person_totals import totals
from opboost.ledger.store import UNITS_PER_EPSILON
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import Welcome
from opboost.scale import Charge, desensitize, read_manifest
from opboost.scale.release_secret import SECRET
from opboost.storage import atomic_files
from robustness.command_line import run
from tests.support.ledger import opened
from tests.support.releases import (
    AGE_ONLY,
    PLAN,
    charge_to,
    files,
    kinds,
    made,
    people,
    release_of,
    rows_of,
    toml,
    with_secret,
)
from tests.support.workers import kill_a_worker

TABLE = people()
AGE_ALONE = parse(AGE_ONLY, "b.toml")
HALVES = [TABLE.slice(0, 150), TABLE.slice(150)]
THIRDS = [TABLE.slice(0, 100), TABLE.slice(100, 100), TABLE.slice(200, 100)]


def test_what_is_stored_does_not_depend_on_how_the_rows_are_cut(tmp_path):
    one = with_secret(tmp_path / "one")
    made(one, [TABLE])
    for name, tables in {
        "thirds": THIRDS,
        "uneven": [TABLE.slice(0, 1), TABLE.slice(1, 250), TABLE.slice(251)],
        "shuffled": [TABLE.take(np.random.default_rng(0).permutation(300))],
        "with an empty part": [TABLE.slice(0, 0), TABLE, TABLE.slice(0, 0)],
    }.items():
        target = with_secret(tmp_path / name)
        assert made(target, tables).rows == 300
        assert_frame_equal(rows_of(target), rows_of(one))


def test_a_task_that_is_repeated_writes_the_same_bytes(tmp_path):
    with release_of(tmp_path / "out", 1) as release:
        release.block.write(0, [TABLE])
        first = (release.folder / "parts" / "part-00000.parquet").read_bytes()
        release.block.write(0, [TABLE])
        assert (release.folder / "parts" / "part-00000.parquet").read_bytes() == first
        changed = TABLE.set_column(2, "age", pa.array(np.full(300, 60.0)))
        release.block.write(0, [changed])
        assert (release.folder / "parts" / "part-00000.parquet").read_bytes() != first


def test_two_releases_have_unrelated_noise_and_leave_no_secret(tmp_path):
    for name in ("a", "b"):
        made(tmp_path / name, THIRDS)
    assert (rows_of(tmp_path / "a")["pay"] != rows_of(tmp_path / "b")["pay"]).mean() > 0.7
    names = {p.name for p in (tmp_path / "a").iterdir()}
    assert names == {"_manifest.json", *(f"part-0000{n}.parquet" for n in range(3))}
    assert not list(tmp_path.glob(".*"))


def test_the_secret_is_one_s_own_while_it_lasts(tmp_path):
    with release_of(tmp_path / "out", 1) as release:
        secret = release.folder / SECRET
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert len(secret.read_bytes()) == 32
        secret.chmod(0o644)
        with pytest.raises(op.PrivacyError, match="can be read by others"):
            release.block.write(0, [TABLE])
        secret.chmod(0o600)
        before = secret.read_bytes()
        held = os.open(secret, os.O_RDONLY)
        release.block.write(0, [TABLE])
        release.commit()
        assert os.read(held, 32) != before, "unlinked, but not overwritten"
        os.close(held)
        with pytest.raises(op.PrivacyError, match="destroyed"):
            release.block.write(0, [TABLE])


def test_the_output_is_read_like_any_table(tmp_path):
    made(tmp_path / "out", THIRDS)
    table = read_table(tmp_path / "out", ())
    assert table.column_names[:3] == ["id", "age", "pay"]
    assert table.num_rows == 300
    assert set(table["age"].to_pylist()) <= set(range(1, 11))


def test_a_repeated_id_is_refused_within_and_across_parts(tmp_path):
    twice = pa.concat_tables([TABLE.slice(0, 10), TABLE.slice(5, 10)])
    for name, tables in {
        "within": [twice],
        "across": [TABLE.slice(0, 10), TABLE.slice(9, 1)],
    }.items():
        with pytest.raises(op.DataError, match="repeat an ID of another row"):
            made(tmp_path / name, tables)
        assert not (tmp_path / name).exists()


def test_a_number_and_its_text_are_one_person(tmp_path):
    plain = parse(
        '[mechanism]\nepsilon = 0.64\n[columns.age]\nbounds = [0, 9]\n[table]\npublic = ["id"]',
        "b.toml",
    )
    tables = [pa.table({"id": [7], "age": [1]}), pa.table({"id": ["7"], "age": [1]})]
    with pytest.raises(op.DataError, match="1 rows repeat an ID"):
        made(tmp_path / "out", tables, plan=plain)


def test_parts_that_are_missing_damaged_or_of_nobody_are_refused(tmp_path):
    with release_of(tmp_path / "out", 2) as release:
        release.block.write(0, [THIRDS[0]])
        with pytest.raises(op.DataError, match="1 of 2 parts are missing"):
            release.commit()
        release.block.write(1, [THIRDS[1]])
        part = release.folder / "parts" / "part-00001.parquet"
        whole = part.read_bytes()
        part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(op.DataError, match=r"part-00001.parquet is damaged"):
            release.commit()
        part.write_bytes(whole)
        stray = part.with_name("part-00009.parquet")
        stray.write_bytes(whole)
        with pytest.raises(op.DataError, match=r"files that belong to no part: part-00009.parquet"):
            release.commit()
        stray.unlink()
        assert release.commit().rows == 200


def test_the_advice_about_a_damaged_release_helps(tmp_path):
    """Damaged parts are made again with the same noise; other damage ends the release."""
    target = with_secret(tmp_path / "out")
    with release_of(target, 2) as release:
        for number in (0, 1):
            release.block.write(number, [THIRDS[number]])
        first = release.folder / "parts" / "part-00000.parquet"
        whole, receipt = first.read_bytes(), release.folder / "part-00000.json"
        receipt.write_bytes(receipt.read_bytes()[:-1])
        with pytest.raises(op.DataError, match=f"is damaged. Remove {receipt} and run again"):
            release.commit()
        receipt.unlink()
        assert release.missing() == [0]
        release.block.write(0, [THIRDS[0]])
        assert first.read_bytes() == whole
    state = release.folder / "release.json"
    kept = state.read_bytes()
    state.write_bytes(kept[:-1])
    with pytest.raises(op.DataError, match=f"is damaged.*remove {release.folder} to abandon the"):
        release_of(target, 2).__enter__()
    state.write_bytes(kept)
    secret = release.folder / SECRET
    secret.write_bytes(bytes(31))
    with (
        release_of(target, 2) as again,
        pytest.raises(
            op.DataError, match=f"secret is damaged.*remove {again.folder} to abandon the"
        ),
    ):
        again.block.write(1, [THIRDS[1]])
    shutil.rmtree(release.folder)
    manifest = made(target, THIRDS[:2])
    assert manifest.rows == 200
    (target / "_manifest.json").write_bytes(b"{}")
    with pytest.raises(op.DataError, match=r"_manifest.json is damaged.*make another release"):
        read_manifest(target)


def test_what_was_put_aside_must_be_whole_when_people_are_charged(tmp_path):
    with (
        charge_to(tmp_path).ledger as ledger,
        release_of(tmp_path / "out", 1, Charge(ledger, "bank")) as release,
    ):
        release.block.write(0, [TABLE.slice(0, 100), TABLE.slice(100)])
        for name, cut in (("part-00000.rows", 16), ("part-00000.people", 1)):
            file = release.folder / name
            whole = file.read_bytes()
            file.write_bytes(whole[:-cut])
            with pytest.raises(op.DataError, match=f"{name} is damaged.*made again with the same"):
                release.commit()
            file.write_bytes(whole)
        people = release.folder / "part-00000.people"
        first = 4 + int.from_bytes(whole[:4], "big")
        people.write_bytes(whole[:first])
        with pytest.raises(op.DataError, match=r"is damaged.*remove .*out.release to abandon the"):
            release.commit()
        people.write_bytes(whole)
        assert release.commit().rows == 300
        assert totals(ledger)[""].people == 300


def test_ids_must_be_in_the_table(tmp_path):
    with pytest.raises(op.ColumnError, match="'key' should hold the IDs but is not in the table"):
        desensitize(files(tmp_path / "raw"), PLAN, tmp_path / "out", ids="key", workers=1)


def test_another_table_or_plan_does_not_take_a_release_up(tmp_path):
    with release_of(tmp_path / "out", 2) as release:
        release.block.write(0, [THIRDS[0]])
    with pytest.raises(op.PrivacyError, match="another table or configuration"):
        made(tmp_path / "out", THIRDS)
    (release.folder / SECRET).unlink()
    with pytest.raises(op.PrivacyError, match="lost before the release was complete"):
        made(tmp_path / "out", THIRDS[:2])


def test_without_ids_and_over_a_stored_release_it_is_refused(tmp_path):
    with pytest.raises(op.ParameterError, match="Name the ID column"):
        desensitize(files(tmp_path / "raw"), PLAN, tmp_path / "out", ids=[])
    made(tmp_path / "out", THIRDS)
    with pytest.raises(op.DataError, match="exists already"):
        made(tmp_path / "out", THIRDS)


def test_only_some_columns_of_a_row_are_released_and_charged_if_the_budget_says_so(tmp_path):
    sampled = parse(
        "[mechanism]\nepsilon = 0.64\n"
        "[columns.age]\nbounds = [0, 99]\n[columns.pay]\nbounds = [0, 99]\n"
        '[budget]\nsplit = "sampled"\ncolumns_per_row = 1\n[table]\npublic = ["id"]',
        "b.toml",
    )
    table = pa.table({"id": range(500), "age": [7] * 500, "pay": [8] * 500})
    charge = charge_to(tmp_path)
    made(tmp_path / "out", [table], charge, sampled)
    rows = rows_of(tmp_path / "out")
    assert (rows[["age", "pay"]].notna().sum(axis=1) == 1).all()
    assert 180 < rows["age"].notna().sum() < 320
    charged = {name: of.people for name, of in totals(charge.ledger).items() if name}
    assert charged == {c: int(rows[c].notna().sum()) for c in ("age", "pay")}
    charge.ledger.close()


def assert_paid_once(home):
    with Ledger(home / "ledger", home / "keys" / "ledger.key") as ledger:
        assert verify(ledger) == []
        assert kinds(ledger).count("commit") == 1
        assert kinds(ledger).count("reserve") == 1
        for name, of in totals(ledger).items():
            promise = next((c for c in PLAN.private if c.name == name), PLAN).guarantee()
            assert of.people == 300
            assert of.most == pytest.approx(promise.total * UNITS_PER_EPSILON)


class Killed(BaseException):
    """Simulates a kill; it is not an Exception, so that nothing treats it as a refusal."""


def stopping_at(monkeypatch, where, name, step, after=lambda *args: True):
    """End the process at this step; return a function that tells whether it was reached."""
    real, count = getattr(where, name), 0

    def stopped(*args, **more):
        nonlocal count
        result = real(*args, **more)
        count += after(*args)
        if count == step:
            count += 1
            raise Killed
        return result

    monkeypatch.setattr(where, name, stopped)
    return lambda: count > step


@pytest.mark.parametrize("kind", ["file", "ledger"])
def test_a_release_that_is_cut_short_anywhere_goes_on_with_the_same_noise_and_one_charge(
    tmp_path, kind
):
    expected = with_secret(tmp_path / "expected")
    made(expected, HALVES)
    step = 0
    while True:
        step += 1
        home = tmp_path / f"{step}"
        home.mkdir()
        target = with_secret(home / "out")
        with pytest.MonkeyPatch.context() as patched:
            if kind == "file":
                reached = stopping_at(patched, atomic_files, "flush", step)
            else:
                commits = lambda chain, words, *more: words == "COMMIT"  # noqa: E731
                reached = stopping_at(patched, Chain, "_run", step, commits)
            cut = False
            try:
                with charge_to(home).ledger as ledger:
                    made(target, HALVES, Charge(ledger, "bank"))
            except Killed:
                cut = True
        if cut and not target.exists():
            with charge_to(home).ledger as ledger:
                made(target, HALVES, Charge(ledger, "bank"))
        assert_frame_equal(rows_of(target), rows_of(expected))
        assert_paid_once(home)
        if not reached():
            break
    assert step > (15 if kind == "file" else 3)


def test_a_release_is_charged_before_it_appears_and_known_afterwards(tmp_path):
    raw, charge = files(tmp_path / "raw"), charge_to(tmp_path)
    first = desensitize(raw, PLAN, tmp_path / "out", ids="id", workers=1, charge=charge)
    before = kinds(charge.ledger)
    again = desensitize(raw, PLAN, tmp_path / "out", ids="id", workers=1, charge=charge)
    assert (first.fresh, again.fresh) == (True, False)
    assert first.manifest == again.manifest == read_manifest(tmp_path / "out")
    assert kinds(charge.ledger) == before == ["reserve", "commit"]
    charge.ledger.close()


def test_a_cap_holds_for_a_release_in_parts(tmp_path):
    charge = charge_to(tmp_path, attribute=10)
    made(tmp_path / "first", [TABLE], charge, AGE_ALONE)
    finer = replace(AGE_ALONE.private[0], mechanism=op.ClampMap(op.Domain(1, 10), 0.6))
    with pytest.raises(op.PrivacyError, match="300 people would exceed it"):
        made(tmp_path / "second", [TABLE], charge, replace(AGE_ALONE, private=(finer,)))
    assert not (tmp_path / "second").exists()
    assert kinds(charge.ledger)[-1] == "abort"
    charge.ledger.close()


def test_people_who_were_drawn_before_are_not_drawn_again_in_parts(tmp_path):
    """Two independent draws of a cell would reveal more than one charge covers."""
    charge = charge_to(tmp_path)
    made(tmp_path / "first", [TABLE.slice(0, 100)], charge, AGE_ALONE)
    with pytest.raises(
        op.PrivacyError, match=r"For 100 people in the table, a release was made before"
    ):
        made(tmp_path / "second", [TABLE], charge, AGE_ALONE)
    party = op.FeatureParty(TABLE, AGE_ALONE, ledger=charge.ledger, ids="id")
    with pytest.raises(op.PrivacyError, match=r"For 100 people .* kept in that stored release"):
        party.release(Welcome("20260101T000000Z-01020304", bytes(32), b""))
    charge.ledger.close()


@pytest.mark.parametrize("why", ["drawn", "cap"])
def test_people_whom_the_ledger_refuses_are_refused_before_anything_is_drawn(tmp_path, why):
    """When the command refuses real files, it leaves no part, no secret and no entry."""
    raw = files(tmp_path / "raw", parts=2)
    (tmp_path / "b.toml").write_text(toml(AGE_ONLY))
    more = ("-c", tmp_path / "b.toml", "--engine", "local", "--workers", "1")
    pq.write_table(people(30, 150), tmp_path / "some.parquet")
    first = run("desensitize", tmp_path / "some.parquet", *more, "-o", tmp_path / "first")
    assert first[0] == 0, first
    words = "For 30 people in the table, a release was made before"
    if why == "cap":
        config = toml(AGE_ONLY.replace("0.64", "0.6")) + "cap_attribute = 9\n"
        (tmp_path / "b.toml").write_text(config)
        words = "30 people would exceed it"
    with opened(tmp_path) as ledger:
        before = [e.number for e in ledger.entries()]
    for _ in range(2):
        status, _, said = run("desensitize", raw, *more, "-o", tmp_path / "second")
        assert (status, words in said, "stay in" in said) == (3, True, False)
        assert not [f.name for f in tmp_path.iterdir() if "second" in f.name]
    with opened(tmp_path) as ledger:
        assert [e.number for e in ledger.entries()] == before
    pq.write_table(people(50, 500), tmp_path / "others.parquet")  # instead of the first
    others = run("desensitize", tmp_path / "others.parquet", *more, "-o", tmp_path / "second")
    assert others[0] == 0, others


def test_who_is_drawn_while_parts_are_made_is_refused_in_the_end(tmp_path):
    raw, charge = files(tmp_path / "raw", parts=2), charge_to(tmp_path)
    rival = Charge(charge.ledger, recipient="rival")

    def draw_between(done, parts):
        if done == 1:
            made(tmp_path / "rival", [people(7)], rival, AGE_ALONE)

    refused = r"For 7 people in the table, a release was made before.* stay in"
    more = {"ids": "id", "workers": 1, "charge": charge}
    with pytest.raises(op.PrivacyError, match=refused):
        desensitize(raw, AGE_ALONE, tmp_path / "out", progress=draw_between, **more)
    assert len(list((tmp_path / ".out.release" / "parts").iterdir())) == 2
    (tmp_path / ".out.release" / "part-00001.json").unlink()  # so that a part must be made again
    with pytest.raises(op.PrivacyError, match=refused):
        desensitize(raw, AGE_ALONE, tmp_path / "out", **more)
    assert (tmp_path / ".out.release" / "secret").exists()
    more |= {"ids": "nobody", "charge": replace(charge, people="id")}
    with pytest.raises(
        op.ColumnError, match="'nobody' should hold the IDs but is not in the table"
    ):
        desensitize(raw, AGE_ALONE, tmp_path / "other", **more)
    charge.ledger.close()


def test_spellings_of_an_id_meet_in_a_release_in_parts(tmp_path):
    charge = charge_to(tmp_path)
    table = TABLE.slice(0, 2).set_column(0, "id", pa.array(["Ann001", "ann001"]))
    with pytest.raises(op.DataError, match="1 rows repeat an ID"):
        made(tmp_path / "out", [table], charge, AGE_ALONE)
    charge.ledger.close()


def test_an_attribute_that_the_ledger_does_not_know_is_refused_before_any_work(tmp_path):
    charge = charge_to(tmp_path)
    made(tmp_path / "first", [TABLE], charge, AGE_ALONE)
    with pytest.raises(op.PrivacyError, match="which this ledger has never seen"):
        release_of(tmp_path / "second", 1, charge).__enter__()
    charge.ledger.close()


def test_processes_make_the_same_release_though_one_is_killed(tmp_path):
    raw = files(tmp_path / "raw")
    with_secret(tmp_path / "a"), with_secret(tmp_path / "b")
    killer = Thread(target=kill_a_worker, args=(0.01, []))
    killer.start()
    with pytest.raises(OSError, match="A worker process was killed"):
        desensitize(raw / "*.parquet", PLAN, tmp_path / "b", ids="id", workers=2)
    killer.join()
    for name, workers, table in (("a", 1, raw), ("b", 2, raw / "*.parquet")):
        told = []
        target = tmp_path / name
        made_ = desensitize(
            table, PLAN, target, ids="id", workers=workers, progress=lambda *p, t=told: t.append(p)
        )
        assert made_.manifest.rows == 400
        assert told[-1] == (4, 4)
    assert_frame_equal(rows_of(tmp_path / "a"), rows_of(tmp_path / "b"))


def test_a_refusal_comes_back_from_a_task_with_its_words(tmp_path):
    raw = files(tmp_path / "raw", parts=2)
    bad = people(5, 900).set_column(4, "city", pa.array(["north"] * 4 + ["west"]))
    pq.write_table(bad, raw / "9.parquet")
    with pytest.raises(op.ColumnError, match=r"'city'.*west"):
        desensitize(raw, PLAN, tmp_path / "out", ids="id", workers=1)


def test_a_table_in_memory_and_an_unknown_engine_are_refused(tmp_path):
    with pytest.raises(op.ParameterError, match="got DataFrame"):
        desensitize(pd.DataFrame(), PLAN, tmp_path / "out", ids="id")
    with pytest.raises(op.ParameterError, match="'local', 'dask' or 'spark'; got 'ray'"):
        desensitize("x.csv", PLAN, tmp_path / "out", ids="id", engine="ray")
