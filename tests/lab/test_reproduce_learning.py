"""The learning artefacts: the order of methods, own tables, and complete lists of tasks."""

from __future__ import annotations

import csv
import hashlib
import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from opboost_lab.reproduce import artefact
from opboost_lab.reproduce.artefacts.learning_figures import (
    CLAMP,
    EXACT,
    GLOBAL,
    LOCALS,
    PIECEWISE,
    TOTAL,
)
from opboost_lab.reproduce.artefacts.regularisation import Pair, surely
from opboost_lab.reproduce.artefacts.tab_opxgboost import kept, line_of, printed
from opboost_lab.reproduce.measures.federated import federated
from opboost_lab.reproduce.measures.missing_zero import zeros_missing
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.printed import OPXGBOOST
from opboost_lab.reproduce.report import title
from opboost_lab.reproduce.source import QUICK_ROWS, Source, sources
from opboost_lab.reproduce.study import BEST, ON_GRID, Line, Study
from opboost_lab.reproduce.task import OwnTable, Scope
from robustness.command_line import run

LABELS = (
    "fig:adult_class", "fig:pendigits_class", "fig:plant_regress", "fig:casp_regress",
    "tab:opxgboost", "tab:umeng_opxgboost", "even or sampled", "regularisation", "split requests",
)  # fmt: skip
BUNDLED = Scope(quick=True, bundled=True, seeds=2)


def scored(study, line, epsilon, split=None):
    tasks = [study.task(line, epsilon, s, split) for s in study.seeds]
    with_results = replace(study, results={t: t.run() for t in tasks})
    return with_results.values(line, epsilon, split=split)


def mean(study, line, epsilon):
    return statistics.fmean(scored(study, line, epsilon))


def test_order_of_methods_with_margins():
    digits = Study(Source.of("Pen-digits", BUNDLED), BUNDLED)
    assert digits.source.stand_in == "digits"
    local, clamp, exact, globe, piecewise = (
        mean(digits, line, 0.64) for line in (LOCALS[2], CLAMP, EXACT[0], GLOBAL, PIECEWISE)
    )
    assert local > clamp + 0.02 > globe + 0.07
    assert clamp > exact + 0.02 > globe + 0.03
    assert globe > piecewise + 0.2
    plain = digits.task(ON_GRID, 0.0, 0).run()["scores"]["accuracy"]
    assert plain > clamp


def test_less_noise_at_a_higher_level_and_denoising_at_a_low_one():
    digits = Study(Source.of("Pen-digits", BUNDLED), replace(BUNDLED, seeds=1))
    noisy = Line(Method("Clamp-map"), "cells")
    low, high = (mean(digits, noisy, e) for e in (0.08, 2.56))
    assert high > low + 0.4
    task = digits.task(BEST, 0.08, 0)
    result = task.run()
    assert result["denoised"]
    assert result["scores"]["accuracy"] > low + 0.1


def test_an_even_split_of_the_sum_is_the_level_of_each_column():
    digits = Study(Source.of("Pen-digits", BUNDLED), replace(BUNDLED, seeds=1))
    assert scored(digits, CLAMP, 16 * 0.64, "even") == scored(digits, CLAMP, 0.64)
    assert scored(digits, CLAMP, 16 * 0.64, 1) != scored(digits, CLAMP, 0.64)


def test_a_larger_record_total_learns_more_and_a_plan_beats_an_even_split():
    digits = Study(Source.of("Pen-digits", BUNDLED), BUNDLED)

    def accuracy(way, total):
        return digits.record_task(way, total, 5).run()["scores"]["accuracy"]

    low, high = accuracy("record", 1.0), accuracy("record", 8.0)
    assert high > low + 0.1
    assert high > accuracy("Global-map", 8.0) + 0.1


def test_seeds_part_the_rows_alike_for_all_lines_and_differ_from_each_other():
    source = Source.of("CASP", BUNDLED)
    first, again, other = (source.data(seed) for seed in (0, 0, 1))
    assert first.train.equals(again.train)
    assert not first.train.equals(other.train)
    few = replace(source, rows=100).data(0)
    assert (few.train.num_rows, few.test.num_rows) == (100, len(first.test))
    assert first.train.num_rows <= QUICK_ROWS


def test_cuts_and_shares_are_those_of_private_columns():
    cancer = Study(Source.of("Adult", BUNDLED), BUNDLED)
    noisy, clear = (cancer.task(GLOBAL, e, 0).run() for e in (0.01, 5.12))
    assert 0 < noisy["cuts"] <= 5 * 9
    assert 0 < clear["cuts"] <= 5 * 9
    assert noisy["share"] < clear["share"] < 1  # ten columns are the label party's own
    digits = Study(Source.of("Pen-digits", BUNDLED), BUNDLED, "hist-gbdt")
    assert digits.task(CLAMP, 5.12, 0).run()["share"] == pytest.approx(1)


class TestPrintedTable:
    def test_cells_stand_where_the_paper_has_them(self):
        assert printed("Global-map", 0, "Adult") == 0.5935
        assert printed("Local-map", 2, "Adult") == 1.0003
        assert printed("Adj-map α=10", 1, "Pen-digits") == 0.5815
        assert printed("Piecewise", 3, "CASP") == 0.7014

    def test_rows_name_methods(self):
        found = {row: line_of(row, 4).method for row in OPXGBOOST}
        assert found["Adj-map α=0.4"] == Method("Adj-map", theta=4, alpha=0.4)
        assert found["Local-map"] == Method("Local-map", theta=4)
        assert found["Global-map"] == Method("Global-map")
        assert len(set(found.values())) == len(OPXGBOOST)

    def test_higher_is_better_for_errors_too(self):
        error = Study(Source.of("CASP", BUNDLED), BUNDLED)
        right = Study(Source.of("Adult", BUNDLED), BUNDLED)
        assert kept(error, [2.0, 2.0], [4.0, 2.0]) == 0.75
        assert kept(right, [0.8, 0.8], [0.4, 0.8]) == 0.75


def pair(*gains):
    study = Study(Source("CASP"), Scope())
    return Pair(study, GLOBAL, 1.0, "raw", gains)


class TestBeyondDoubt:
    def test_one_sided_paired_test(self):
        # t = 2 / (1/sqrt(3)·...) by hand: mean 2, sd 1, n 3 -> t = 3.4641, df 2 -> p = .03709
        assert pair(1.0, 2.0, 3.0).p == pytest.approx(0.03709, abs=1e-5)
        assert pair(-1.0, -2.0, -3.0).p == pytest.approx(1 - 0.03709, abs=1e-5)

    def test_gains_alike_say_no_more_than_their_sign(self):
        assert pair(0.5, 0.5).p == 0.25
        assert pair(0.0, 0.0).p == 1.0
        assert pair(1.0).p == 0.5

    def test_holm_stops_at_the_first_that_is_in_doubt(self):
        clear = pair(*np.linspace(1.0, 1.01, 10))
        vague, bad = pair(1.0, 2.0, 3.0), pair(-1.0, 0.5, -0.2)
        assert surely([vague, bad, clear]) == [clear]
        assert surely([vague]) == [vague]  # alone it needs no correction
        assert surely([bad, vague]) == []


def fake(task):
    """Return a result for any task: scores depend on settings, and those of plain are best."""
    spread = int(hashlib.sha256(task.settings.encode()).hexdigest()[:6], 16) / 16**6
    settings = json.loads(task.settings)
    worth = 0.9 if "unprotected" in task.function else 0.5 + 0.2 * spread
    scores = {"AUC": worth, "accuracy": worth - 0.05, "MSE": 2 - worth, "R²": worth}
    return {
        "scores": scores,
        "denoised": True,
        "cuts": 10 + settings.get("epsilon", 0),
        "share": worth,
        "seconds": 1.0,
        "label party": 100,
        "feature party": 1000,
        "values": 2000,
    }


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("scope", [Scope(), Scope(quick=True), BUNDLED], ids=["full", "q", "b"])
def test_what_is_shown_was_asked_for(label, scope):
    found = artefact(label)
    tasks = found.tasks(scope)
    assert found.learning
    assert all(t.cost > 0 for t in tasks)
    finding = found.show(scope, {t: fake(t) for t in tasks})
    assert finding.summary.endswith(".")
    assert finding.panels or finding.grids
    for panel in finding.panels:
        assert len({c.label for c in panel.curves}) == len(panel.curves)
    for grid in finding.grids:
        assert {len(row) for row in grid.rows} == {len(grid.header)}
    marked = finding.summary + " ".join(n.text for n in finding.notes)
    assert ("standing in for" in marked) == scope.bundled


def test_full_settings_are_the_papers():
    tasks = artefact("fig:casp_regress").tasks(Scope())
    settings = [json.loads(t.settings) for t in tasks]
    adj = [s for s in settings if s.get("method", {}).get("family") == "Adj-map"]
    nominal = [s for s in adj if s["method"]["at"] == "nominal"]
    assert len(nominal) == 2 * 3 * 10 * 10  # θ, α, ε, seeds
    assert {s["mapping"] for s in nominal} == {"paper"}
    assert {s["seed"] for s in settings if s.get("method", {}).get("denoise")} == set(range(10))
    records = {(s["way"], s["total"], s["seed"]) for s in settings if "total" in s}
    assert len(records) == 2 * 4 * 10  # plans, totals, seeds
    assert {seed for _, _, seed in records} == set(range(5, 15))
    assert len(artefact("tab:opxgboost").show(Scope(), _all("tab:opxgboost")).grids) == 8


def _all(label):
    return {t: fake(t) for t in artefact(label).tasks(Scope())}


def test_summaries_follow_the_numbers():
    said = artefact("split requests").show(Scope(), _all("split requests")).summary
    assert "in 8 of 8 cases" in said
    assert "rises by more than that in 0" in said
    said = artefact("regularisation").show(Scope(), _all("regularisation")).summary
    assert "better than plain, in 0 of them significantly" in said


@pytest.mark.parametrize("label", LABELS[:4])
@pytest.mark.parametrize("scope", [Scope(), Scope(quick=True), BUNDLED], ids=["full", "q", "b"])
def test_a_sentence_states_the_scores_of_its_table(label, scope):
    found = artefact(label)
    finding = found.show(scope, {t: fake(t) for t in found.tasks(scope)})
    table = dict(finding.grids[0].rows)
    local = [line.label for line in TOTAL]
    for line in ("plain, raw", GLOBAL.label, EXACT[0].label, CLAMP.label, BEST.label, *local):
        assert f"{table[line]:.4g}" in finding.summary, line
    for line in ("plain, raw", GLOBAL.label, BEST.label):
        assert f"{table[line]:.3g}" in finding.short, line
    (head,) = finding.headlines
    assert (head.ours, head.best) == (table[GLOBAL.label], table[BEST.label])
    assert (head.plain, head.on_grid) == (table["plain, raw"], table["plain, on the grid"])


def test_a_title_says_that_other_data_stand_in_for_the_papers():
    assert title(Scope(quick=True, bundled=True)) == "the paper, reproduced, on stand-in data"
    for scope in (Scope(), Scope(quick=True)):
        assert title(scope) == "the paper, reproduced"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Return a table whose class depends on two numbers and on a word."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, pay = rng.integers(18, 90, 400), rng.normal(50, 15, 400).round(2)
    town = np.where(rng.random(400) < 0.5, "north", "south")
    good = age / 72 + pay / 60 + (town == "north") + rng.normal(0, 0.2, 400) > 2
    with open("people.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["age", "pay", "town", "name", "good"])
        for i in range(400):
            word = "yes" if good[i] else "no"
            out.writerow([age[i], "" if i == 7 else pay[i], town[i], f"person {i}", word])
    (tmp_path / "bounds.toml").write_text(
        "[mechanism]\nepsilon = 1.0\n[columns.age]\nbounds = [17, 90]\n"
        "[columns.pay]\nbounds = [0, 100]\nmissing = 50\n"
    )
    return tmp_path


OWN = ("--table", "people.csv", "--label", "good", "--quick", "--seeds", 1, "--out", "out")


class TestOwnTable:
    def test_it_takes_the_place_of_the_data_and_is_resumed(self, people):
        status, out, said = run("reproduce", "even or sampled", *OWN, "--format", "json")
        assert status == 0, out + said
        (line,) = json.loads(out)
        assert "people.csv, your table" in line["summary"]
        assert "WARNING" in said
        notes = " ".join(n["text"] for n in line["notes"])
        assert "bounds of age, pay were taken from the table itself" in notes
        assert "binary by its label 'good', 2 numeric columns are private" in notes
        cache = {p: p.stat().st_mtime_ns for p in (people / "out" / "cache").iterdir()}
        assert len(cache) == 2 + 3 * 2  # plain twice, three splits at two levels
        status, again, _ = run("reproduce", "even or sampled", *OWN, "--format", "json")
        assert (status, again) == (0, out)
        assert {p: p.stat().st_mtime_ns for p in (people / "out" / "cache").iterdir()} == cache

    def test_another_content_or_declaration_is_another_result(self, people):
        own = OwnTable(people / "people.csv", "good")
        before = Source.of("Adult", Scope(table=own))
        declared = Source.of("CASP", Scope(table=replace(own, config=people / "bounds.toml")))
        with (people / "people.csv").open("a") as file:
            file.write("30,1.0,north,new,no\n")
        after = Source.of("Adult", Scope(table=own))
        assert len({before.digest, declared.digest, after.digest}) == 3
        line = replace(before, digest="").as_json()
        assert line == replace(after, digest="").as_json()

    def test_declared_bounds_are_used_and_silent(self, people):
        own = OwnTable(people / "people.csv", "good", people / "bounds.toml")
        source = Source.of("Adult", Scope(table=own))
        data = source.data(0)
        assert data.bounds == {"age": (17.0, 90.0), "pay": (0.0, 100.0)}
        assert set(data.train.column_names) == {"age", "pay", "town", "good"}  # no names
        assert not any("taken from the table" in n.text for n in source.notes())
        assert data.train.column("pay").null_count + data.test.column("pay").null_count == 0
        assert len(sources(("Adult", "CASP"), Scope(table=own))) == 1

    def test_the_four_figures_are_one_on_it(self, people, monkeypatch):
        asked = []
        monkeypatch.setattr(
            "opboost_lab.reproduce.reproduction.run_tasks",
            lambda tasks, *_, **__: asked.append(list(tasks)) or pytest.fail("stop"),
        )
        with pytest.raises(pytest.fail.Exception):
            run("reproduce", *LABELS[:4], *OWN)
        one = artefact(LABELS[0]).tasks(Scope(True, 1, OwnTable(people / "people.csv", "good")))
        assert len(asked[0]) == len(one)

    @pytest.mark.parametrize(
        ("label", "words"),
        [
            ("god", "Column 'god' is to be the label but is not in the table. It has age, pay"),
            ("name", "is the label and is text with 400 different values"),
            ("pay", "is the label and has missing values"),
        ],
    )
    def test_labels_that_cannot_be_learned(self, people, label, words):
        status, _, said = run(
            "reproduce", "fig:adult_class", "--table", "people.csv", "--label", label, "--quick"
        )
        assert status == 5
        assert words in said
        assert not (people / "reproduction" / "report.html").exists()

    def test_tables_that_cannot_be_used(self, people):
        (people / "words.csv").write_text("a,b\n" + "x,yes\ny,no\n" * 60)
        call = ("reproduce", "fig:adult_class", "--quick", "--label", "b", "--table")
        status, _, said = run(*call, "words.csv")
        assert (status, "no numeric column" in said) == (5, True)
        (people / "few.csv").write_text("a,b\n1,yes\n2,no\n")
        status, _, said = run(*call, "few.csv")
        assert (status, "2 rows, too few" in said) == (5, True)
        status, _, said = run(*call, "none.csv")
        assert (status, "does not exist" in said) == (5, True)

    def test_options_that_belong_together(self, people):
        status, _, said = run("reproduce", "fig:adult_class", "--table", "people.csv")
        assert (status, "belong together" in said) == (2, True)
        status, _, said = run("reproduce", "fig:adult_class", "-c", "bounds.toml")
        assert (status, "give --table" in said) == (2, True)

    def test_zeros_with_two_meanings_spoil_a_model(self, people):
        own = OwnTable(people / "people.csv", "good", people / "bounds.toml")
        source = Source.of("Adult", Scope(table=own)).as_json()
        right, wrong = (
            zeros_missing(source, None, 0.0, 0, consistent)["scores"]["AUC"]
            for consistent in (True, False)
        )
        assert right > wrong + 0.05

    def test_bytes_of_both_parties_are_counted(self, people):
        own = OwnTable(people / "people.csv", "good", people / "bounds.toml")
        source = Source.of("Industrial", Scope(table=own)).as_json()
        found = federated(source, Method("Clamp-map").as_json(), 0.64, "cells")
        assert found["values"] == 320 * 2
        assert 100 < found["label party"] < 5000
        assert 320 * 2 * 3 / 8 < found["feature party"] < 10_000
        assert found["seconds"] > 0
