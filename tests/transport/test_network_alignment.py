"""Private alignment between real processes: rows, kills during it, and refusals."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
    write_federation,
)
from opboost.parties.alignment import PsiPeer, kept_secret
from opboost.protocol.messages import Ack, Aligned, Points, PointsQuery, Poll
from opboost.protocol.stored_columns import read_column
from opboost.psi.row_keys import Normalisation, key_digests, row_keys
from robustness.command_line import run
from robustness.party_processes import (
    Party,
    identity_of,
    joined,
    serving,
    shaken_hands,
    stop,
    wait_for,
)
from tests.support.parties import ended

BOOSTER = {"num_boost_round": 5, "max_depth": 3, "nthread": 1}
NOISELESS = 40.0


def value(person, shift):
    return (person * 7 + shift) % 10 + 1


def table(people, shift, spelt=lambda i: f"person-{i:06d}"):
    values = [value(int(i), shift) for i in people]
    return pa.table({f"x{shift}": values, "id": [spelt(i) for i in people]})


def federation(folder, people, **settings):
    """Make parties that hold the given people in the given order; the first is the label party."""
    (_, own), *theirs = people.items()
    label = pa.array([int(value(int(i), 1) > 5) for i in own])
    tables = {name: table(ids, k + 2) for k, (name, ids) in enumerate(theirs)}
    bounds = {f"x{k}": (0.5, 10.5) for k in range(10)}
    return write_federation(
        folder,
        table(own, 1).append_column("y", label),
        "y",
        tables,
        bounds,
        epsilon=NOISELESS,
        booster=BOOSTER,
        **settings,
    )


def draw(seed, **sizes):
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(of)[:count] for name, (count, of) in sizes.items()}


def in_order(people):
    keys = row_keys([[f"person-{i:06d}" for i in people]], ["id"], Normalisation())
    return [people[k] for k in np.argsort(key_digests(keys).view("S32").ravel())]


def check_rows(folder, people):
    """Check that the label party received exactly the common people's values, in their order."""
    common = sorted(set.intersection(*(set(map(int, ids)) for ids in people.values())))
    order = in_order(common)
    for k, name in enumerate(list(people)[1:]):
        newest = sorted((folder / LABEL_PARTY / "state").glob("*/job.json"))[-1].parent
        head, column = read_column(newest / "parties" / name / "00000.arrow")
        assert head.codebook.values[column.codes].tolist() == [value(i, k + 2) for i in order]
    return len(common)


def leftovers(folder):
    """Return the files of secrets and points that are still there."""
    kinds = ("secret", "*.points", "*.label", "*.doubled", "*.feature", "*.raised")
    return [f for kind in kinds for f in folder.rglob(kind)]


def test_tables_that_overlap_in_part_and_stand_in_any_order_make_one_model(tmp_path):
    people = draw(0, bank=(900, 1000), shop=(800, 1100), telco=(850, 1000))
    made = federation(tmp_path, people)
    outcome = run_federation(made, timeout=120)
    common = check_rows(tmp_path, people)
    manifest = outcome.manifests[LABEL_PARTY]
    assert manifest["rows"] == common
    align = manifest["align"]
    assert (align["own"], align["theirs"]) == (900, {"shop": 800, "telco": 850})
    assert align["common"] == common
    assert outcome.manifests["shop"]["rows"] == common
    assert leftovers(tmp_path) == []
    theirs = [f for f in tmp_path.rglob("*") if f.is_file() and f.name != "table.parquet"]
    assert not any(b"person-" in f.read_bytes() for f in theirs)
    for name in made.parties:
        shown = json.loads(run("ledger", "show", "-c", made.config(name), "--format", "json")[1])
        assert shown["releases"][0]["what"].endswith(f"with 900: {common} in common")
        assert shown["spent"][-1]["people"] == common
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    first = model.predict_proba(_cells(model))

    # A new run with reordered tables has the same rows, the same codes and the same model.
    for name, k in (("shop", 2), ("telco", 3)):
        pa.parquet.write_table(table(people[name][::-1], k), tmp_path / name / "table.parquet")
    with serving(made, "--again") as (process, address):
        joined(made, address)
        assert process.wait(60) == 0
    check_rows(tmp_path, people)
    again = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert np.array_equal(again.predict_proba(_cells(again)), first)


def _cells(model):
    return pa.table({name: np.arange(1, 11) for name in model.feature_names_in_})


def test_ids_of_several_columns_under_other_names_and_spellings_meet(tmp_path):
    people = draw(1, bank=(400, 500), shop=(450, 500))
    made = federation(tmp_path, people)
    job = (made.folder / "shop" / "job.toml").read_text()
    for name in (LABEL_PARTY, "shop"):
        spelling = (
            '[align]\ntrim = true\ncase = "lower"\nunicode = "NFKC"\nparts = ["town", "number"]\n'
        )
        (made.folder / name / "job.toml").write_text(job + spelling)

    def two(name, shift, first, last, more=None):
        ids = people[name]
        columns = {f"x{shift}": [value(int(i), shift) for i in ids]}
        columns |= {first[0]: [first[1](i) for i in ids], last[0]: [last[1](i) for i in ids]}
        pa.parquet.write_table(
            pa.table(columns | (more or {})), made.folder / name / "table.parquet"
        )
        config = made.config(name)
        text = config.read_text()
        config.write_text(text.replace('id = "id"', f'id = ["{first[0]}", "{last[0]}"]'))

    label = {"y": [int(value(int(i), 1) > 5) for i in people["bank"]]}
    two("bank", 1, ("town", lambda i: f"Ｔown-{i % 7}"), ("number", int), label)
    two("shop", 2, ("ort", lambda i: f" TOWN-{i % 7}"), ("nummer", lambda i: f"{i} "))
    outcome = run_federation(made, timeout=120)
    common = set(map(int, people["bank"])) & set(map(int, people["shop"]))
    assert outcome.manifests["shop"]["rows"] == len(common)


def test_ids_of_several_columns_need_parts_that_the_job_file_names(tmp_path):
    made = federation(tmp_path, {"bank": np.arange(200), "shop": np.arange(200)})
    config, job = made.config("shop"), made.folder / "shop" / "job.toml"
    config.write_text(config.read_text().replace('id = "id"', 'id = ["number", "branch"]'))
    agreed = job.read_text()
    for spelling, words in (
        ("", "have not agreed on its parts"),
        ('[align]\nparts = ["branch", "number"]\n', "List them in that order"),
        ('[align]\nparts = ["branch", "number", "year"]\n', "have 3 parts"),
        ('[align]\nparts = ["branch", "branch"]\n', "different names"),
    ):
        job.write_text(agreed + spelling)
        status, _, said = run("join", "-c", config)
        assert (status, words in said) == (2, True), said


def test_both_sides_may_be_killed_in_the_midst_and_take_it_up_again(tmp_path):
    people = draw(2, bank=(30_000, 36_000), shop=(32_000, 36_000))
    made = federation(tmp_path, people)
    state = tmp_path / LABEL_PARTY / "state"

    def killed_at(process, kind, count=1):
        wait_for(lambda: len(list(state.rglob(f"0*.{kind}"))) >= count)
        assert not list(state.rglob("aligned"))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

    def join(address):
        return Party([*made.command("shop"), "--connect", address])

    secrets = set()
    for shop_at, serve_at in ((("feature", 1), ("feature", 2)), (("raised", 1), ("doubled", 1))):
        with serving(made) as (serve, address):
            killed_at(join(address), *shop_at)
            secrets.add(next((tmp_path / "shop" / "state").rglob("secret")).read_bytes())
            shop = join(address)
            killed_at(serve, *serve_at)
            stop(shop)
    assert len(secrets) == 1
    with serving(made) as (serve, address):
        (done,) = joined(made, address)
        assert done["phase"] == "done"
        assert serve.wait(60) == 0
    assert done["rows"] == check_rows(tmp_path, people)
    assert leftovers(tmp_path) == []
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    assert [e["kind"] for e in entries].count("align") == 1
    assert [e["kind"] for e in entries].count("aligned") == 1


def test_parties_that_come_one_after_the_other_are_aligned_when_the_last_is_there(tmp_path):
    people = draw(3, bank=(500, 600), shop=(500, 600), telco=(500, 600))
    made = federation(tmp_path, people)
    with serving(made) as (process, address):
        first = Party([*made.command("shop"), "--connect", address])
        points = tmp_path / LABEL_PARTY / "state"
        wait_for(lambda: list(points.glob("*/parties/shop/*.raised")))
        status, out, _ = run(
            "serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json"
        )
        where = json.loads(out)
        assert (status, where["phase"]) == (0, "aligning")
        assert where["parties"]["shop"]["phase"] == "aligning"
        assert where["parties"]["telco"]["phase"] == "expected"
        assert 0 < where["parties"]["telco"]["aligned"] < where["parties"]["shop"]["aligned"] < 1
        joined(made, address, parties=["telco"])
        first.communicate(timeout=60)
        assert first.returncode == 0
        assert process.wait(60) == 0
    check_rows(tmp_path, people)


@pytest.mark.parametrize("stern", [LABEL_PARTY, "shop"])
def test_too_few_common_rows_end_with_3_and_nothing_is_released(tmp_path, stern):
    people = {"bank": np.arange(400), "shop": np.arange(250, 700)}
    made = federation(tmp_path, people)
    config = made.config(stern)
    text = config.read_text()
    config.write_text(text.replace('id = "id"\n', 'id = "id"\nminimum_rows = 151\n'))
    with serving(made) as (serve, address):
        shop = ended([*made.command("shop"), "--connect", address])
        if stern == LABEL_PARTY:
            assert serve.wait(30) == 3
            assert shop.returncode == 4
            assert "too few rows in common" in shop.stderr
            assert "150" not in shop.stderr
        else:
            assert shop.returncode == 3, shop.stderr
            assert "150 rows in common; with fewer than 151 nothing is released" in shop.stderr
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open", "align"]


def test_an_id_that_stands_twice_and_a_set_that_is_too_large_are_refused(tmp_path):
    people = {"bank": np.arange(300), "shop": np.arange(300)}
    made = federation(tmp_path, people)
    pa.parquet.write_table(table([*range(200), 5, 7, 7], 2), tmp_path / "shop" / "table.parquet")
    with serving(made) as (_, address):
        command = [*made.command("shop"), "--connect", address]
        shop = ended(command)
        assert shop.returncode == 5
        assert "2 IDs appear more than once, in 5 rows" in shop.stderr
        assert "person-" not in shop.stderr
        pa.parquet.write_table(table(range(200), 2), tmp_path / "shop" / "table.parquet")
        config = made.config("shop")
        text = config.read_text()
        config.write_text(text.replace('id = "id"\n', 'id = "id"\nmost_rows = 299\n'))
        shop = ended(command)
        assert shop.returncode == 3
        assert "has 300 rows" in shop.stderr
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open"]


def test_points_that_cannot_be_used_are_refused_and_the_party_may_come_again(tmp_path):
    people = draw(4, bank=(300, 400), shop=(350, 400))
    made = federation(tmp_path, people)
    with serving(made) as (serve, address):
        connection, welcome = shaken_hands(made, address, identity_of(made, "shop"))
        job, tag = welcome.job, bytes(16)
        bad = Points(job, "feature", tag, 2, 0, (b"\2" + bytes(31)) * 2)
        for wrong, words in (
            (Points(job, "label", tag, 1, 0, b"\2" + bytes(31)), "not expected"),
            (Points(job, "raised", tag, 1, 0, b"\2" + bytes(31)), "not the label party's"),
            (Points(job, "raised", tag, 300, 0, (b"\2" + bytes(31)) * 300), "before the party's"),
            (
                Points("20200101T000000Z-00000000", "feature", tag, 1, 0, b"\2" + bytes(31)),
                "another job now",
            ),
        ):
            with pytest.raises(op.PeerError, match=words):
                connection.call("points", wrong, Ack)
        many = Points(job, "feature", tag, 6_000_000, 0, (b"\2" + bytes(31)) * 8192)
        with pytest.raises(op.PeerError, match="6,000,000 rows are more than the label party"):
            connection.call("points", many, Ack)
        assert connection.call("points", bad, Ack).columns == (0,)
        refused = tmp_path / LABEL_PARTY / "state" / job / "parties" / "shop" / "refused"
        wait_for(refused.exists)  # the label party found a point that is not on the curve
        with pytest.raises(op.PeerError, match="does not lie on the curve"):
            connection.call("aligned", Poll(job), Aligned, Ack)

        # The same point twice; then pieces of two secrets, and a piece with changed points.
        digests = key_digests([b"a", b"b", b"c"])
        side = PsiPeer(job, "feature", kept_secret(None), digests, op.AlignRules())
        (good,) = side.pieces()
        double = Points(job, "feature", side.tag, 2, 0, good.points[:32] * 2)
        connection.call("points", double, Ack)
        with pytest.raises(op.PeerError, match="under another secret have already arrived"):
            connection.call("points", Points(job, "feature", tag, 2, 0, double.points), Ack)
        with pytest.raises(op.PeerError, match="of another set"):
            connection.call("points", good, Ack)
        other = Points(job, "feature", side.tag, 2, 0, good.points[32:])
        with pytest.raises(op.PeerError, match="arrived again with different points"):
            connection.call("points", other, Ack)
        ours = connection.call("want", PointsQuery(job, 0), Points, Ack)
        connection.call("points", side.raised(ours), Ack)
        wait_for(refused.exists)
        with pytest.raises(op.PeerError, match="occurs twice"):
            connection.call("aligned", Poll(job), Aligned, Ack)
        connection.close()
        (done,) = joined(made, address)
        assert done["phase"] == "done"
        assert serve.wait(60) == 0
    check_rows(tmp_path, people)
    assert leftovers(tmp_path) == []


def test_a_party_whose_state_was_lost_is_reported_to_begin_a_new_job(tmp_path):
    people = draw(5, bank=(300, 400), shop=(350, 400), telco=(300, 400))
    made = federation(tmp_path, people)
    with serving(made) as (_, address):
        shop = Party([*made.command("shop"), "--connect", address])
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/*.raised")))
        stop(shop)
        for file in (tmp_path / "shop" / "state").rglob("secret"):
            file.unlink()
        for file in (tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/*.feature"):
            file.unlink()
        again = ended([*made.command("shop"), "--connect", address])
        assert again.returncode == 4
        assert "lost its state of this job" in again.stderr


def test_where_rows_are_given_nobody_aligns(tmp_path):
    made = federation(tmp_path, {"bank": np.arange(200), "shop": np.arange(200)}, align="given")
    with serving(made) as (_, address):
        connection, welcome = shaken_hands(made, address, identity_of(made, "shop"))
        with pytest.raises(op.PeerError, match="Rows are given in this job"):
            connection.call("aligned", Poll(welcome.job), Aligned, Ack)
        points = Points(welcome.job, "feature", bytes(16), 1, 0, b"\2" + bytes(31))
        with pytest.raises(op.PeerError, match="not expected"):
            connection.call("points", points, Ack)
        connection.close()
