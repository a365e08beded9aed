"""A stored release is sent unchanged: no new noise, no new charge, nothing uncharged."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opboost as op
from opboost.config.columns_file import parse
from opboost.demo.local_federation import LABEL_PARTY, started_process
from opboost.errors import ColumnError, DataError, PrivacyError
from opboost.files.stored_release import read_manifest
from opboost.ledger import Drawing
from opboost.ledger.ledger_summary import summary
from opboost.ledger.person_answers import about_person
from opboost.ledger.renewal import renew
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import Welcome
from opboost.protocol.stored_columns import read_column
from opboost.runtime.child_processes import python_command
from robustness.party_processes import federation, joined, serving
from tests.support.releases import PLAN, charge_to, kinds, made, people

TABLE = people()
THIRDS = [TABLE.slice(0, 100), TABLE.slice(100, 100), TABLE.slice(200, 100)]
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")
SAMPLED = parse(
    "[mechanism]\nepsilon = 2.0\n[columns.age]\nbounds = [17, 90]\n[columns.pay]\n"
    'bounds = [0, 9000]\nmissing = 0\n[budget]\nsplit = "sampled"\n'
    'columns_per_row = 1\n[table]\npublic = ["id"]\ndrop = ["name", "city"]',
    "b.toml",
)


@pytest.fixture
def charge(tmp_path):
    charge = charge_to(tmp_path)
    yield charge
    charge.ledger.close()


def shop(tmp_path, charge, plan=PLAN, **settings):
    settings = {"ids": "id", "state": tmp_path / "state", **settings}
    return op.FeatureParty(tmp_path / "out", plan, ledger=charge.ledger, **settings)


def sent(party, welcome=WELCOME):
    """Return what is sent, as values with gaps."""
    schema, files = party.release(welcome)
    found = []
    for file in files:
        column = read_column(file)[1]
        gaps = np.zeros(schema.rows, bool) if column.missing is None else column.missing
        values = zip(column.values.tolist(), gaps.tolist(), strict=True)
        found.append([None if gap else value for value, gap in values])
    return found


def stored(folder, plan):
    table = pq.read_table(folder)
    return [table[str(n)].to_pylist() for c in plan.private for n in c.release_names()]


@pytest.mark.parametrize("plan", [PLAN, SAMPLED], ids=["whole", "sampled"])
def test_what_is_sent_is_what_is_stored_and_costs_nothing_more(tmp_path, charge, plan):
    made(tmp_path / "out", THIRDS, charge, plan)
    before = summary(charge.ledger)["spent"]
    for job in ("a", "b"):
        welcome = Welcome(f"20260102T030405Z-0102030{job}", bytes(32), b"")
        assert sent(shop(tmp_path, charge, plan), welcome) == stored(tmp_path / "out", plan)
    assert summary(charge.ledger)["spent"] == before
    lines = [r for r in summary(charge.ledger)["releases"] if r["job"].startswith("2026")]
    assert [(r["rows"], r["new_cells"]) for r in lines] == [(300, 0)] * 2
    columns = plan.budget.columns_per_row if plan.budget else len(plan.private)
    assert lines[0]["old_cells"] == 300 * columns
    assert not verify(charge.ledger)


def test_a_stored_release_sent_after_a_renewal_is_reported_for_each_person(tmp_path, charge):
    """Its noise belongs to the old period, even if the new period has draws of its own."""
    columns = {"private": PLAN.private[:1], "attributes": ("age",)}
    plan = replace(PLAN, **columns, drop=("name", "pay", "city"))
    ledger = charge.ledger
    made(tmp_path / "out", THIRDS, charge, plan)
    release = read_manifest(tmp_path / "out").release
    renew(ledger)
    sent(shop(tmp_path, charge, plan))
    drawn = {"ids": "id", "state": tmp_path / "other"}
    party = op.FeatureParty(TABLE.slice(0, 50), plan, ledger=ledger, **drawn)
    party.release(Welcome("20260102T030405Z-0b020304", bytes(32), b""))
    sent(shop(tmp_path, charge, plan), Welcome("20260102T030405Z-0c020304", bytes(32), b""))
    kept = f"kept in the stored release {release}"
    (level,) = (c.guarantee().total for c in plan.private)
    for person, jobs in ((b"person 10", ["old", "old", "new", "old"]), (b"person 70", 3 * ["old"])):
        answer = about_person(ledger, person)
        assert len(answer.releases) == len(jobs)
        cells = [cell for release in answer.releases for cell in release.cells]
        assert all(cell.sent for cell in cells)
        again = [cell.means == kept for cell in cells]
        assert again == [job != "new" for job in jobs]
        assert [cell.charged for cell in cells] == [
            level if n == 0 or job == "new" else 0.0 for n, job in enumerate(jobs)
        ]
        assert answer.spent[-1]["spent"] == level * (1 + jobs.count("new"))
    cells = [(r["new_cells"], r["old_cells"]) for r in summary(ledger)["releases"]]
    assert cells == [(300, 0), (0, 300), (50, 0), (0, 300)]
    assert not verify(ledger)


def test_common_rows_alone_are_sent_in_the_common_order(tmp_path, charge):
    made(tmp_path / "out", THIRDS, charge)
    known = TABLE["id"].to_pylist()[50:250]
    bank = op.LabelParty(
        None, np.arange(200) % 2 == 0, ids=known, align=op.AlignRules(minimum_rows=10),
        booster_params={"n_estimators": 2}, denoise=False,
    )  # fmt: skip
    party = shop(tmp_path, charge, align=op.AlignRules(minimum_rows=10))
    model = bank.train([op.MemoryChannel(party)], welcome=WELCOME)
    assert model.n_features_in_ == 3
    rows = party.psi_session(WELCOME).rows()
    assert sorted(rows) == list(range(50, 250))
    whole = stored(tmp_path / "out", PLAN)
    assert sent(party) == [[column[r] for r in rows] for column in whole]


def test_a_release_that_nobody_was_charged_for_is_not_sent(tmp_path, charge):
    made(tmp_path / "out", THIRDS)
    with pytest.raises(PrivacyError, match="nobody was charged for it"):
        shop(tmp_path, charge)
    assert kinds(charge.ledger) == []


def test_another_declaration_is_refused_by_its_column(tmp_path, charge):
    made(tmp_path / "out", THIRDS, charge)
    wider = [
        op.PrivateColumn("age", op.NumericMapping(op.Domain(1, 10), (0, 99)), op.ClampMap(
            op.Domain(1, 10), 0.64)),
        *PLAN.private[1:],
    ]  # fmt: skip
    with pytest.raises(PrivacyError, match="'age' was released under a different declaration"):
        shop(tmp_path, charge, wider)
    with pytest.raises(PrivacyError, match="has 3 private columns, but 1 are declared"):
        shop(tmp_path, charge, PLAN.private[:1])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda out: shutil.copy(out / "part-00000.parquet", out / "part-00001.parquet"),
         "part-00001.parquet was changed"),
        (lambda out: (out / "part-00002.parquet").unlink(), "part-00002.parquet is missing"),
        (lambda out: shutil.copy(out / "part-00000.parquet", out / "part-00009.parquet"),
         "part-00009.parquet does not belong"),
    ],
)  # fmt: skip
def test_parts_that_are_not_those_charged_for_are_refused(tmp_path, charge, harm, words):
    made(tmp_path / "out", THIRDS, charge)
    harm(tmp_path / "out")
    with pytest.raises(DataError, match=words):
        shop(tmp_path, charge).release(WELCOME)
    assert "answer" not in kinds(charge.ledger)


def test_a_release_without_its_ids_is_refused(tmp_path, charge):
    plan = parse(
        "[mechanism]\nepsilon = 0.64\n[columns.age]\nbounds = [17, 90]\n"
        '[table]\ndrop = ["id", "name", "pay", "city"]',
        "b.toml",
    )
    made(tmp_path / "out", THIRDS, charge, plan)
    with pytest.raises(ColumnError, match="'id' is declared but not in the table"):
        shop(tmp_path, charge, plan)


def test_the_ledger_refuses_a_row_twice_also_here(tmp_path, charge):
    with (
        pytest.raises(DataError, match="repeat an ID"),
        Drawing(charge.ledger, PLAN.private, PLAN.attributes, job="x", recipient="y") as drawing,
    ):
        drawing.repeat([b"a", b"b", b"a"], "of then")


def test_by_command_desensitised_by_processes_then_joined(tmp_path):
    made_federation = federation(tmp_path, ("shop",), align="given")
    config = made_federation.config("shop")
    text = config.read_text().replace('table = "table.parquet"', 'table = "released"')
    config.write_text(text + '\n[table]\npublic = ["id"]\n')
    home = config.parent
    command = [
        *python_command("-m", "opboost"), "desensitize", str(home / "table.parquet"),
        "-c", str(config), "-o", str(home / "released"),
        "--engine", "local", "--workers", "2", "--to", LABEL_PARTY,
    ]  # fmt: skip
    with started_process(command) as process:
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    with serving(made_federation) as (process, address):
        (manifest,) = joined(made_federation, address)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert manifest["rows"] == len(pd.read_parquet(home / "released"))
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert model.n_features_in_ == 4
    entries = json.loads(
        started_output(python_command("-m", "opboost", "ledger", "export", "-c", str(config)))
    )
    drawn = [e["kind"] for e in entries]
    assert drawn == ["open", "reserve", "commit", "reserve", "commit", "answer"]


def started_output(command):
    with started_process(command) as process:
        return process.communicate(timeout=60)[0]


def test_a_table_that_only_looks_like_one_is_drawn_anew(tmp_path, charge):
    pq.write_table(pa.concat_tables(THIRDS), tmp_path / "raw.parquet")
    party = op.FeatureParty(tmp_path / "raw.parquet", PLAN, ledger=charge.ledger, ids="id",
                            state=tmp_path / "state")  # fmt: skip
    sent(party)
    assert summary(charge.ledger)["releases"][-1]["new_cells"] == 900
