"""A ledger's answers about a person, a recipient or an attribute, as text, JSON and CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.columns.row_ids import id_bytes
from opboost.errors import ConfigError, DataError, PrivacyError
from opboost.ledger import Drawing
from opboost.ledger.compaction import MAX_ALIKE_RUNS
from opboost.ledger.forget_person import erase
from opboost.ledger.ledger_summary import summary
from opboost.ledger.lookup import spent
from opboost.ledger.open_ledger import declared_person
from opboost.ledger.person_answers import about_person
from opboost.ledger.renewal import renew
from opboost.ledger.store import UNITS_PER_EPSILON
from opboost.ledger.verify_ledger import verify
from opboost.storage import atomic_files
from robustness.command_line import run
from tests.support.ledger import AGE, CITY, FINER, GAPS, LEVEL, opened, release, table, values

SIZE = op.PrivateColumn(
    "size",
    op.OrdinalMapping(op.Domain(1, 3), op.Ordered(["small", "medium", "large"])),
    op.ClampMap(op.Domain(1, 3), 0.5),
)
LONG = "a-recipient-whose-name-is-longer-than-half-a-line-of-a-terminal"

CONFIG = """
[columns.age]
bounds = [0, 100]
[align]
id = "id"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "shop.toml").write_text(CONFIG)
    return tmp_path


def shown(home, *arguments):
    status, out, words = run("ledger", "show", "-c", home / "shop.toml", *arguments)
    assert status == 0, words
    return out


def about(ledger, person, **chosen):
    return about_person(ledger, str(person).encode(), **chosen)


def everybody(rows=60):
    sizes = ["small", "medium", "large"] * (rows // 3)
    gaps = np.where(np.arange(rows) % 2, 42.0, np.nan)
    return table(rows, city=list("abcdefghij") * (rows // 10), gaps=gaps, size=sizes)


def test_each_release_tells_what_was_sent_to_whom_and_when(home):
    people = everybody()
    with opened(home) as ledger:
        first, one = release(ledger, people[:40], (AGE, CITY), job="a")
        again, two = release(ledger, people[20:], (AGE, CITY), job="b", to="insurer")
        found = about(ledger, 30)
        assert [(r.entry, r.at, r.recipient, r.job) for r in found.releases] == [
            (one.entry.number, one.entry.at, "bank", "a"),
            (two.entry.number, two.entry.at, "insurer", "b"),
        ]
        for answer, out, row in zip(found.releases, (first, again), (30, 10), strict=True):
            age, city = answer.cells
            assert age.output == {"age": out[0][0].values[row]}
            assert city.output == {c.name: c.values[row] for c in out[1]}
            assert (age.attribute, age.guarantee) == ("age", str(AGE.guarantee()))
            assert age.sent
            assert age.amount == LEVEL
        assert [c.charged for r in found.releases for c in r.cells] == [LEVEL, 1.0, 0.0, 0.0]
        assert [line["spent"] for line in found.spent] == [LEVEL, 1.0, LEVEL + 1.0]
        assert [r.recipient for r in about(ledger, 5).releases] == ["bank"]
        assert [r.recipient for r in about(ledger, 55).releases] == ["insurer"]


def test_noisy_values_are_shown_in_words(home):
    people = everybody()
    with opened(home) as ledger:
        out, _ = release(ledger, people, (AGE, CITY, GAPS, SIZE))
        for row in range(len(people)):
            ((age, city, gaps, size),) = (r.cells for r in about(ledger, row).releases)
            cell = int(out[0][0].values[row])
            assert age.means == f"{cell * 10 - 10} to {cell * 10} (cell {cell} of 1..10)"
            bits = [c.values[row] for c in out[1]]
            named = ", ".join(n for n, bit in zip("abcdefghij", bits, strict=True) if bit)
            assert city.means == (named or "no category")
            missing = out[2][0].missing[row]
            assert gaps.output == {"gaps": None if missing else out[2][0].values[row]}
            assert (gaps.means == "missing") == missing
            assert size.means.startswith(SIZE.mapping.to_raw([out[3][0].values[row]])[0])


def test_a_column_that_was_not_sent_is_shown_as_such_and_costs_nothing(home):
    columns = (AGE, CITY, SIZE)
    people = everybody()
    with opened(home) as ledger:
        out, _ = release(ledger, people, columns, budget=op.Budget.sampled(1))
        for row in range(len(people)):
            (answer,) = (found := about(ledger, row)).releases
            sent = [not c[0].missing[row] for c in out]
            assert [c.sent for c in answer.cells] == sent
            assert sum(sent) == 1
            assert [c.means == "not sent" for c in answer.cells] == [not s for s in sent]
            assert found.spent[-1]["spent"] == sum(c.charged for c in answer.cells)


def test_totals_run_over_periods_mechanisms_and_recipients(home):
    people = table(30)
    with opened(home) as ledger:
        first, _ = release(ledger, people, job="1")
        release(ledger, people, (FINER,), job="2", to="insurer")
        renew(ledger)
        third, _ = release(ledger, people.assign(age=3.0), job="3")
        release(ledger, people, job="4")
        found = about(ledger, 7)
        ages = [r.cells[0] for r in found.releases]
        assert [c.charged for c in ages] == [LEVEL, LEVEL / 2, LEVEL, 0.0]
        assert [ages[k].output["age"] for k in (0, 2, 3)] == [
            values(first)[0][7], values(third)[0][7], values(third)[0][7],
        ]  # fmt: skip
        assert found.spent[-1]["spent"] == sum(c.charged for c in ages) == 2.5 * LEVEL


def test_the_printed_amounts_add_up_to_what_was_charged(home):
    """For every person, the charges of their releases add up to the total that caps compare."""
    people = everybody()
    with opened(home) as ledger:
        for k in range(MAX_ALIKE_RUNS + 2):
            release(ledger, people[4 * k : 4 * k + 15], (AGE, CITY), job=str(k))
        renew(ledger, "city")
        release(ledger, people[10:50], (AGE, CITY), job="renewed")
        assert any(r.merged for r in ledger.runs())
        files = [ledger.run_file(r) for r in ledger.runs()]
        rows = range(0, 60, 5)
        handles = ledger.handles(ledger.people([str(row).encode() for row in rows]))
        totals = spent(files, handles) / UNITS_PER_EPSILON
        assert len(set(totals)) == 3
        for row, total in zip(rows, totals, strict=True):
            found = about(ledger, row)
            told = sum(c.charged for r in found.releases for c in r.cells)
            assert told == found.spent[-1]["spent"] == total


def test_merged_and_rotated_runs_give_the_same_answers(home):
    people = everybody()
    with opened(home) as ledger:
        for week in range(MAX_ALIKE_RUNS):
            release(ledger, people[5 * week : 5 * week + 10], (AGE, CITY), job=str(week))
        before = [about(ledger, row) for row in (0, 12, 30)]
        assert [r.job for r in before[1].releases] == ["1", "2"]
        assert not any(r.merged for r in ledger.runs())
    key = home / "keys" / "ledger.key"
    key.write_text("ab" * 32 + "\n" + key.read_text())
    with opened(home) as ledger:
        release(ledger, people[50:], (AGE, CITY), job="last")
        kinds = {e.kind for e in ledger.entries()}
        assert {"rotate", "merge"} <= kinds
        assert [about(ledger, row) for row in (0, 12, 30)] == before


def test_somebody_never_released_or_forgotten_gets_that_answer(home):
    with opened(home) as ledger:
        release(ledger, table(20))
        nobody = about(ledger, 99)
        assert (nobody.remembered, nobody.releases, nobody.forgotten) == (False, (), None)
        assert [line["spent"] for line in nobody.spent] == [0.0]
        entry = ledger.entry(erase(ledger, b"7").entry)
    key = home / "keys" / "ledger.key"
    key.write_text("cd" * 32 + "\n" + key.read_text())
    with opened(home) as ledger:
        release(ledger, table(20), job="2")  # rotation encrypts the tombstone anew
        found = about(ledger, 7)
        assert (found.remembered, found.releases, found.spent) == (False, (), ())
        assert found.forgotten == entry.at
        assert about(ledger, 8).forgotten is None
    out = shown(home, "--person", "7")
    assert f"Forgotten at {entry.at}" in out
    assert out.splitlines()[-1] == "Total for this person: erased, so it is no longer known"
    out = shown(home, "--person", "99")
    assert "remembers nothing about this person" in out
    assert out.splitlines()[-1] == "Total for this person: 0 (no cap)"
    lines = json.loads(run("ledger", "export", "-c", home / "shop.toml")[1])
    stones = [e["body"]["tombstones"] for e in lines if "tombstones" in e["body"]]
    assert stones == [1, 1]  # how many, but not their handles


def test_an_alignment_is_reported_for_everybody(home):
    with opened(home) as ledger:
        release(ledger, table(20))
        with ledger.writing():
            body = {"job": "2", "recipient": "bank"}
            ledger.append("align", {**body, "rows": 20, "theirs": 50, "points": "", "tag": ""})
            ledger.append("aligned", {**body, "common": 9, "bitmap": ""})
        (line,) = about(ledger, 99).alignments
        assert line["what"] == "alignment of 20 rows with 50: 9 in common"
        assert about(ledger, 5).alignments == (line,)
    assert "Alignments, which covered everybody" in shown(home, "--person", "5")


def test_redrawn_values_are_reported_as_far_as_the_ledger_knows(home):
    with opened(home, changed="redraw") as ledger:
        one, _ = release(ledger, table(20).assign(age=5.0), job="1")
        two, _ = release(ledger, table(20).assign(age=95.0), job="2")
        release(ledger, table(20).assign(age=5.0), job="3")
        first, second, third = (r.cells[0] for r in about(ledger, 4).releases)
        assert first.output == {"age": values(one)[0][4]}
        assert second.output == {"age": values(two)[0][4]}
        assert (third.output, third.means, third.charged) == (None, "one of 2 draws", 0.0)
        assert about(ledger, 4).spent[-1]["spent"] == 2 * LEVEL
    assert "No bound over time" in shown(home)


def test_what_version_0_1_did_not_keep_is_said(home):
    with opened(home) as ledger:
        release(ledger, table(20), job="1")
        assert about(ledger, 4).migrated is None
        with ledger.writing():
            body = {"job": "2", "recipient": "bank", "people": "", "columns": []}
            ledger.append("reserve", body)
            entry = ledger.append("migrate", {"runs": [], "history": []})
            ledger.append("reserve", {**body, "job": "3"})
        assert about(ledger, 4).migrated == entry.at
        _, old, new = (line["what"] for line in summary(ledger)["releases"])
        assert old == "reserved, not finished: counts as spent"
        assert new == "reserved, not finished: nothing was sent"
    out = shown(home, "--person", "4")
    assert f"Version 0.1, in use until {entry.at}, did not record repeated draws" in out


def test_a_stored_release_is_named_where_it_holds_the_noisy_values(home):
    people = table(20)
    with opened(home) as ledger:
        kept = {"job": "release abc", "recipient": "bank", "stored": "abc"}
        with Drawing(ledger, [AGE], ["age"], **kept) as drawing:
            ids = id_bytes([people["id"].tolist()], ["id"])
            drawing.charge(ids, np.ones((20, 1), dtype=np.bool_))
        (cell,) = about(ledger, 4).releases[0].cells
        assert (cell.sent, cell.output, cell.charged) == (True, None, LEVEL)
        assert cell.means == "kept in the stored release abc"


def test_an_id_is_spelt_as_the_ledger_spells_it(home):
    people = pd.DataFrame({"id": ["Ann001", "bob"], "age": [40.0, 50.0]})
    with opened(home) as ledger:
        release(ledger, people)
    spellings = ("ann001", "ANN001", " Ann００1")
    answers = [json.loads(shown(home, "--person", s, "--format", "json")) for s in spellings]
    assert [a["releases"] for a in answers] == [answers[0]["releases"]] * 3
    assert answers[0]["remembered"]
    exact = home / "exact"
    exact.mkdir()
    (exact / "shop.toml").write_text(CONFIG)
    with opened(exact, ids="exact") as ledger:
        release(ledger, people)
    found = [json.loads(shown(exact, "--person", s, "--format", "json")) for s in spellings[:2]]
    assert [a["remembered"] for a in found] == [False, False]
    assert json.loads(shown(exact, "--person", "Ann001", "--format", "json"))["remembered"]


def test_an_id_of_several_columns_is_given_part_by_part(home):
    config = home / "shop.toml"
    config.write_text(CONFIG.replace('id = "id"', 'id = ["branch", "number"]'))
    ids = id_bytes([["north", "south"], [1, 1]], ["branch", "number"], spelling="canonical")
    people = table(2)
    with opened(home) as ledger:
        with Drawing(ledger, [AGE], ["age"], job="1", recipient="bank") as drawing:
            drawing.draw(ids[:1], [AGE.prepare(people[:1])])
        assert declared_person(config, ["North", "1"], ledger.ids).id == ids[0]
    assert "branch = north, number = 1" in shown(home, "--person", "north", "--person", "1")
    found = json.loads(shown(home, "--person", "south", "--person", "1", "--format", "json"))
    assert found["person"] == {"branch": "south", "number": "1"}
    assert not found["remembered"]
    status, _, words = run("ledger", "show", "-c", config, "--person", "north")
    assert status == 2
    assert "2 parts (branch, number)" in words
    assert "--person was given 1 times" in words
    config.write_text(CONFIG.replace('id = "id"', ""))
    status, _, words = run("ledger", "show", "-c", config, "--person", "north")
    assert (status, "Add [align] id" in words) == (2, True)


@pytest.mark.parametrize("nobody", ["", " ", "n/a"])
@pytest.mark.parametrize("verb", ["show", "forget"])
def test_an_id_that_is_none_is_refused_with_rule_value_and_next_step(home, verb, nobody):
    with opened(home) as ledger:
        release(ledger, table(5))
    status, _, words = run("ledger", verb, "-c", home / "shop.toml", "--person", nobody)
    assert status == 2
    assert words.strip() == (
        "An ID is text or a whole number: not empty, without spaces around it, and not a word for "
        f"a missing value; --person got {nobody!r}. Give the ID as column 'id' of the table holds "
        "it."
    )
    with opened(home) as ledger:
        assert not len(ledger.tombstones())


def test_releases_are_chosen_by_recipient_and_attribute(home):
    people = everybody()
    with opened(home) as ledger:
        release(ledger, people, (AGE, CITY), job="1")
        release(ledger, people, (AGE,), job="2", to="insurer")
        release(ledger, people, (CITY,), job="3", to="insurer")
        with ledger.writing():
            body = {"job": "1", "recipient": "bank", "query": ""}
            ledger.append("answer", {**body, "cuts": {"0": 3}})
            ledger.append("answer", {**body, "cuts": {"1": 2, "10": 1}})

        def jobs(**chosen):
            return [r["job"] for r in summary(ledger, **chosen)["releases"]]

        assert jobs() == ["1", "2", "3", "1", "1"]
        assert jobs(recipient="insurer") == ["2", "3"]
        assert jobs(attribute="age") == ["1", "2", "1"]
        assert jobs(attribute="city") == ["1", "3", "1"]  # a query names columns by number
        assert jobs(recipient="insurer", attribute="city") == ["3"]
        names = [line["attribute"] for line in summary(ledger, attribute="city")["spent"]]
        assert names == ["city", "all together"]
        chosen = about(ledger, 5, recipient="insurer", attribute="city")
        assert [(r.job, [c.attribute for c in r.cells]) for r in chosen.releases] == [
            ("3", ["city"])
        ]
        assert chosen.spent == about(ledger, 5).spent
        with pytest.raises(ConfigError, match=r"recipient 'bonk'. Known: bank, insurer"):
            summary(ledger, recipient="bonk")
        with pytest.raises(ConfigError, match=r"attribute 'pay'. Known: age, city"):
            about(ledger, 5, attribute="pay")


def test_json_and_csv_hold_the_same_releases(home):
    with opened(home, person=20.0) as ledger:
        release(ledger, everybody(), (AGE, CITY), job='with "quotes", and commas')
        release(ledger, everybody(), (AGE,), job="2", to="insurer")
    found = json.loads(shown(home, "--format", "json"))["releases"]
    lines = list(csv.DictReader(io.StringIO(shown(home, "--format", "csv"))))
    assert [line["job"] for line in lines] == [r["job"] for r in found]
    for line, plain in zip(lines, found, strict=True):
        assert line == {
            name: ", ".join(plain[name]) if name == "columns" else str(plain[name]) for name in line
        }
    arguments = ("--person", "5", "--format")
    found = json.loads(shown(home, *arguments, "json"))["releases"]
    lines = list(csv.DictReader(io.StringIO(shown(home, *arguments, "csv"))))
    cells = [(r, c) for r in found for c in r["cells"]]
    assert len(lines) == len(cells) == 3
    for line, (of, cell) in zip(lines, cells, strict=True):
        told = (of["at"], of["recipient"], cell["attribute"])
        assert (line["at"], line["recipient"], line["attribute"]) == told
        assert json.loads(line["output"]) == cell["output"]
        assert float(line["charged"]) == cell["charged"]


@pytest.mark.parametrize("width", [60, 80])
def test_no_time_and_no_name_is_cut_off(home, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    attribute = "an_attribute_whose_name_is_as_long_as_two_thirds_of_a_line"
    with opened(home, person=20.0) as ledger:
        release(ledger, table(20), to=LONG, job=f"file {LONG}.csv", names=[attribute])
        release(ledger, table(20), to="x", job="2", names=[attribute])
        times = {e.at for e in ledger.entries("commit")}
    for arguments in ((), ("--person", "5")):
        out = shown(home, *arguments)
        for whole in (*times, LONG, f"job: file {LONG}.csv", f"{attribute}"):
            assert whole in out
        assert "…" not in out
        table_ = out[out.lower().index("spent") :]
        first = (line.split("│")[1].strip() for line in table_.splitlines() if "│" in line)
        assert attribute in "".join(first)  # wrapped, not cut off
    assert shown(home).splitlines()[-1].startswith("Highest total for any one person: 4.5")
    assert shown(home, "--person", "5").splitlines()[-1] == "Total for this person: 4.5 (no cap)"


def test_a_name_does_not_steer_the_terminal(home):
    with opened(home) as ledger:
        release(ledger, table(5), to="bank\x1b[31m", job="a\rb")
    for arguments in ((), ("--person", "3")):
        out = shown(home, *arguments)
        assert "\x1b" not in out
        assert "\r" not in out
        assert r"bank\x1b[31m" in out


def test_a_cap_that_was_lowered_below_what_was_spent_is_marked(home):
    with opened(home) as ledger:
        release(ledger, table(20))
    config = home / "shop.toml"
    for caps, marked in (
        ("cap_attribute = 4.4\ncap_person = 4.5", [True, False]),
        ("cap_attribute = 4.5\ncap_person = 4.499999999", [False, True]),
        ("cap_attribute = 4.5", [False, False]),
    ):
        config.write_text(CONFIG + caps)
        for arguments in ((), ("--person", "3")):
            found = json.loads(shown(home, *arguments, "--format", "json"))["spent"]
            assert [line["exceeded"] for line in found] == marked
            out = shown(home, *arguments)
            assert out.count("EXCEEDED") == sum(marked) + marked[1]  # the last line repeats it
    assert out.splitlines()[-1] == "Total for this person: 4.5 (no cap)"


def test_a_release_that_was_taken_back_is_reported_without_the_name_of_an_exception(home):
    with opened(home) as ledger:
        with pytest.raises(DataError):
            release(ledger, table(5).assign(id=0))
        with pytest.raises(RuntimeError), Drawing(ledger, [AGE], ["age"], job="2", recipient="b"):
            raise RuntimeError("a defect")
    with opened(home, person=1.0) as ledger, pytest.raises(PrivacyError):
        release(ledger, table(5), job="3")
    out = shown(home)
    assert out.count("aborted (") == 3
    exported = run("ledger", "export", "-c", home / "shop.toml", "--format", "csv")[1]
    for said in (out, exported, shown(home, "--format", "json")):
        assert "Error" not in said


def test_an_answer_changes_nothing_and_waits_for_nobody(home):
    with opened(home) as ledger:
        release(ledger, table(20))

    def state():
        kept = [p for p in sorted(home.rglob("*")) if p.is_file() and p.suffix != ".html"]
        return {p: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest()) for p in kept}

    before = state()
    with atomic_files.alone(home / "ledger"):  # as a release does while it draws
        shown(home)
        shown(home, "--person", "3", "--format", "csv")
        for verb in (["export"], ["report", "-o", home / "ledger.html"]):
            assert run("ledger", *verb, "-c", home / "shop.toml")[0] == 0
    assert state() == before


FORGET = """
import sys, time
from pathlib import Path
from opboost.transport.feature.forget_everywhere import forget
from tests.support.ledger import opened
with opened(Path(sys.argv[1])) as ledger:
    for person in range(100, 112):
        forget(ledger, [str(person)], ["id"])
        time.sleep(0.05)
"""


def test_an_answer_that_is_given_while_people_are_forgotten_is_whole(home):
    """Runs are rewritten and overwritten while other processes read them."""
    rows = 10_000
    people = table(rows, city=list("abcdefghij") * (rows // 10))
    with opened(home) as ledger:
        release(ledger, people, (AGE, CITY), job="1")
        release(ledger, people.assign(gaps=1.0), (AGE, GAPS), job="2", new_attributes=["gaps"])
        expected = about(ledger, 7)
    command = [sys.executable, "-c", FORGET, str(home)]
    answers, counts, findings, status = [], [rows], [], None
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as forgetting:
        while status is None:
            status = forgetting.poll()
            with opened(home) as ledger:
                answers.append(about(ledger, 7))
                counts.append(summary(ledger)["spent"][-1]["people"])
                findings += verify(ledger)
    assert status == 0
    assert all(answer == expected for answer in answers)
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == rows - 12
    assert not findings


ASK = """
import sys
from robustness.command_line import run
config = sys.argv[1]
for verb in (["show"], ["show", "--person", "3"], ["verify"], ["export"]):
    print(run("ledger", *verb, "-c", config)[0])
"""


def test_a_ledger_on_a_read_only_volume_answers(home):
    with opened(home) as ledger:
        release(ledger, table(20))
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a read-only volume")
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    asked = [sys.executable, "-c", ASK, str(home / "shop.toml")]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(home), *asked],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split() == ["0"] * 4, done.stderr


def test_a_ledger_that_does_not_verify_gives_no_answer(home):
    with opened(home) as ledger:
        release(ledger, table(20))
    path = next(iter((home / "ledger" / "runs").iterdir()))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    status, _, words = run("ledger", "show", "-c", home / "shop.toml", "--person", "3")
    assert (status, f"{path.name} was changed" in words) == (5, True)
