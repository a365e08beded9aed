"""A record total holds per person and period, and the first release of a period fixes its plan."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import opboost as op
from opboost.columns.row_ids import id_bytes
from opboost.config.columns_file import parse
from opboost.errors import PrivacyError
from opboost.ledger.frozen_plan import frozen_plan
from opboost.ledger.ledger_summary import summary
from opboost.ledger.renewal import renew
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import Welcome
from opboost.scale import Charge
from opboost.scale.release_in_parts import ReleaseInParts
from robustness.command_line import run
from tests.support.ledger import AGE, opened, release, values

BOUNDS = {"age": (0, 100), "pay": (0, 9_000), "hours": op.Integers(0, 23)}


def plan(total=4.0, bounds=None, **more):
    return op.RecordPlan.of(op.Budget.record(total, **more), bounds=bounds or BOUNDS)


def rows(count=400, first=0):
    rng = np.random.default_rng(first)
    return pd.DataFrame(
        {
            "id": np.arange(first, first + count),
            "age": rng.uniform(0, 100, count),
            "pay": rng.uniform(0, 9_000, count),
            "hours": rng.integers(0, 24, count),
        }
    )


def released(ledger, people, made, job="1", **more):
    more = {"new_attributes": ["age", "pay", "hours"], **more}
    return release(ledger, people, made.columns, job=job, budget=made.budget, **more)


def sent(out):
    return np.column_stack([~c[0].missing for c in out])


def most(ledger):
    return summary(ledger)["spent"][-1]["most"]


def test_a_person_spends_the_total_once_in_a_period_whatever_the_jobs(tmp_path):
    with opened(tmp_path) as ledger:
        first, made = released(ledger, rows(), plan())
        again, repeated = released(ledger, rows(), plan(), job="2", to="rival")
        assert made.new_cells == 800
        assert repeated.new_cells == 0
        assert values(first) == values(again)
        assert most(ledger) == 4.0
        assert not verify(ledger)


def test_what_other_plans_charged_in_the_period_counts(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows(100), (AGE,))  # with a mechanism: 4.5 per person
        before = ledger.head().number
        with pytest.raises(PrivacyError) as refused:
            released(ledger, rows(), plan(8.0), job="2")
        words = str(refused.value)
        assert "the record total allows 8 per person and period" in words
        assert "100 people would exceed it, and one of them has 3.5 left" in words
        assert "opboost ledger renew; caps still cover all periods" in words
        assert [e.kind for e in ledger.entries()][before + 1 :] == ["reserve", "abort"]
        _, made = released(ledger, rows(100, first=100), plan(8.0), job="3")
        assert made.new_cells > 0


def test_the_total_of_the_period_binds_releases_by_a_mechanism_too(tmp_path):
    with opened(tmp_path) as ledger:
        released(ledger, rows(100), plan(4.0))
        with pytest.raises(PrivacyError, match=r"allows 4 per person .* 100 people .* has 0 left"):
            release(ledger, rows(100), (AGE,), job="2")
        assert most(ledger) == 4.0


def test_a_new_period_has_the_total_again_and_caps_run_on(tmp_path):
    with opened(tmp_path, person=9.0) as ledger:
        first, _ = released(ledger, rows(), plan())
        renew(ledger, "age")  # only one attribute, so the record's period continues
        with pytest.raises(PrivacyError, match=r"allows 4 per person and period"):
            released(ledger, rows(), plan(), job="2")
        renew(ledger)
        second, made = released(ledger, rows(), plan(), job="3")
        assert made.new_cells == 800
        assert most(ledger) == 8.0
        assert 0.2 < np.mean((sent(first) == sent(second)).all(axis=1)) < 0.5  # one in three
        renew(ledger)
        with pytest.raises(PrivacyError, match=r"all attributes together no more than 9"):
            released(ledger, rows(), plan(), job="4")


def test_two_jobs_of_one_plan_choose_the_same_columns_of_a_person(tmp_path):
    with opened(tmp_path) as ledger:
        made = plan()
        first, _ = released(ledger, rows(300), made)
        # With other people, and columns reversed, the choice still depends only on the person.
        turned = op.RecordPlan.of(made.budget, bounds=dict(reversed(BOUNDS.items())))
        second, _ = released(ledger, rows(500), turned, job="2")
        assert (sent(first) == sent(second)[:300, ::-1]).all()
        assert (sent(second).sum(axis=1) == 2).all()
        new = sent(second)[300:].mean(axis=0)
        assert ((new > 0.5) & (new < 0.83)).all()


def test_the_columns_with_the_smallest_words_of_the_ledger_are_sent(tmp_path):
    people = rows()
    with opened(tmp_path) as ledger:
        out, _ = released(ledger, people, plan())
        ids = id_bytes([people["id"].tolist()], ["id"], spelling=ledger.ids)
        words = ledger.sampling_words(ledger.people(ids), list(BOUNDS))
        assert (sent(out) == (np.argsort(np.argsort(words, axis=1), axis=1) < 2)).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (plan(8.0, columns_per_row=2), r"\(total 4 → 8\)"),
        (plan(columns_per_row=1), r"\(columns per person 2 → 1\)"),
        (plan(cells={"age": 20}), r"\(column 'age' 32 → 20 cells\)"),
        (plan(bounds={**BOUNDS, "age": (0, 90)}), r"column 'age' bounds \[0, 100\] → \[0, 90\]"),
        (plan(bounds={**BOUNDS, "cars": (0, 9)}), r"\(column 'cars' is new\)"),
        (plan(weights={"age": 2, "pay": 1, "hours": 1}), r"\(different column weights\)"),
        (plan(radius=0.5), r"column 'age' .*LDP → .*, column 'pay'"),
        (
            plan(8.0, columns_per_row=1, cells=20, bounds={"age": (0, 100), "cars": (0, 9)}),
            r"total 4 → 8, columns per person 2 → 1, column 'cars' is new and \d more",
        ),
    ],
)
def test_another_record_plan_is_refused_in_the_same_period_with_what_differs(
    tmp_path, changed, words
):
    more = {"new_attributes": ["cars"]}
    people = rows().assign(cars=3)
    with opened(tmp_path) as ledger:
        released(ledger, people, plan())
        before = ledger.head()
        with pytest.raises(PrivacyError, match=words) as refused:
            released(ledger, people, changed, job="2", **more)
        assert "restore the old file, or start a new period with opboost" in str(refused.value)
        assert ledger.head() == before  # not even reserved
        renew(ledger)
        _, made = released(ledger, people, changed, job="3", **more)
        assert made.new_cells == 400 * changed.columns_per_row
        assert summary(ledger)["record"]["total"] == changed.total


def test_the_plan_is_frozen_by_a_commit_and_not_by_a_reservation(tmp_path):
    with opened(tmp_path) as ledger:
        with pytest.raises(op.errors.DataError):  # the same person twice, so it is aborted
            released(ledger, pd.concat([rows(5), rows(5)]), plan())
        assert frozen_plan(ledger) is None
        released(ledger, rows(), plan(8.0), job="2")
        assert frozen_plan(ledger).total == 8.0
        (reserved,) = [e for e in ledger.entries("reserve") if e.body["job"] == "2"]
        assert reserved.body["plan"] == {
            "total": 8.0,
            "columns_per_row": plan(8.0).columns_per_row,
            "pilot": 0.0,
            "weights": None,
            "digest": frozen_plan(ledger).digest,
        }


def test_columns_may_be_left_out_while_nobody_is_charged(tmp_path):
    fewer = plan(bounds={name: BOUNDS[name] for name in ("age", "hours")}, columns_per_row=2)
    with opened(tmp_path) as ledger:
        first, _ = released(ledger, rows(), plan())
        second, made = released(ledger, rows(), fewer, job="2")
        assert made.new_cells == 0
        assert values(second) == [values(first)[0], values(first)[2]]
        before = ledger.head().number
        with pytest.raises(PrivacyError, match=r"leaves out 'pay'.* 7 people would be charged"):
            released(ledger, rows(407), fewer, job="3")
        assert not [e for e in ledger.entries("commit") if e.number > before]
        assert frozen_plan(ledger).digest == _digest(ledger, "1")


def _digest(ledger, job):
    (found,) = [e.body["plan"]["digest"] for e in ledger.entries("reserve") if e.body["job"] == job]
    return found


def test_a_reservation_without_a_plan_freezes_nothing(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows(), (AGE,))
        assert "plan" not in next(iter(ledger.entries("reserve"))).body
        assert frozen_plan(ledger) is None
        assert summary(ledger)["record"] is None


TOML = """
[budget]
record = %s
[columns.age]
bounds = [0, 100]
[columns.pay]
bounds = [0, 9000]
[columns.hours]
bounds = [0, 23]
integers = true
[align]
id = "id"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
"""


def in_parts(target, ledger, text, people):
    made = parse(text, "b.toml")
    args = {"parts": 1, "source": str(target), "charge": Charge(ledger, "bank", ("pay", "hours"))}
    tables = [pa.Table.from_pandas(people, preserve_index=False)]
    with ReleaseInParts(target, made, ["id"], **args) as release_:
        release_.check(lambda: [t.select(["id"]) for t in tables])
        release_.block.write(0, tables)
        return release_.commit()


def test_a_release_in_parts_is_held_to_the_total_and_the_plan(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows(100), (AGE,), known_by="id")
        with pytest.raises(PrivacyError, match=r"allows 4 per person .* 100 people"):
            in_parts(tmp_path / "a", ledger, TOML % "4.0", rows(200))
        assert not (tmp_path / "a").exists()
        assert not list(tmp_path.glob("*.making*"))  # refused before any part was made
        in_parts(tmp_path / "b", ledger, TOML % "4.0", rows(100, first=100))
        assert summary(ledger)["record"]["total"] == 4.0
        with pytest.raises(PrivacyError, match=r"total 4 → 2"):
            in_parts(tmp_path / "c", ledger, TOML % "2.0", rows(100, first=300))


def test_a_party_refuses_people_before_anything_is_drawn(tmp_path):
    """People who would exceed the total are found after alignment, before noise is drawn."""
    made = parse(TOML % "4.0", "b.toml")
    with opened(tmp_path) as ledger:
        release(ledger, rows(1, first=399), (AGE,), known_by="id")
        before = ledger.head()
        about = {"ledger": ledger, "ids": "id", "new_attributes": ["pay", "hours"]}
        party = op.FeatureParty(rows(), made, state=tmp_path / "state", **about)
        with pytest.raises(PrivacyError, match=r"1 people would exceed it"):
            party.release(Welcome("20260102T030405Z-01020304", bytes(32), b""))
        assert ledger.head() == before  # nothing was reserved
        others = op.FeatureParty(rows(399), made, state=tmp_path / "state-2", **about)
        others.release(Welcome("20260102T030406Z-01020304", bytes(32), b""))
        assert most(ledger) == 4.5


def test_a_prediction_with_peers_reuses_the_plan_of_the_period(tmp_path):
    known, later = rows(400), rows(500)[300:]
    with opened(tmp_path) as ledger:

        def shop(people, text, state):
            made = parse(text, "b.toml")
            place = tmp_path / state
            return op.FeatureParty(people, made, ledger=ledger, ids="id", state=place)

        bank = op.LabelParty(None, known["age"] > 50, ids=known["id"].tolist(), booster="hist-gbdt")
        model = bank.train([op.MemoryChannel(shop(known, TOML % "4.0", "train"))])
        asking = op.LabelParty(None, None, ids=later["id"].tolist())
        found = asking.predict(model, [op.MemoryChannel(shop(later, TOML % "4.0", "predict"))])
        assert len(found.rows) == 200
        commits = [e.body for e in ledger.entries("commit")]
        assert [c["new_cells"] for c in commits] == [800, 200]  # 100 new people, two columns each
        assert commits[1]["old_cells"] == 200
        with pytest.raises(PrivacyError, match=r"total 4 → 2"):
            asking.predict(model, [op.MemoryChannel(shop(later, TOML % "2.0", "other"))])
        assert most(ledger) == 4.0


def test_the_summary_shows_the_total_of_the_period(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text(TOML % "4.0")
    rows().to_csv(tmp_path / "people.csv", index=False)
    done = run("desensitize", tmp_path / "people.csv", "-c", file, "-o", tmp_path / "out.csv")
    assert done[0] == 0, done
    shown = " ".join(run("ledger", "show", "-c", file)[1].split())
    assert "Record total of this period: 4 per person, over all jobs" in shown
    assert "2 of 3 columns are sent for each person" in shown
    plain = json.loads(run("ledger", "show", "-c", file, "--format", "json")[1])
    assert plain["record"]["columns"] == ["age", "pay", "hours"]
