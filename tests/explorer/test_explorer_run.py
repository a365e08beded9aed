"""The run page of a real job, while it runs and when it is done."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, datetime

import pytest

from opboost.boosting.training_curve import Curve
from opboost.demo.local_federation import LABEL_PARTY
from opboost.explorer import pages
from opboost.explorer.job_view import RunView, eta
from opboost.explorer.remaining_budget import LedgerView
from opboost.explorer.server import Site
from robustness.party_processes import NAMES, ROWS, federation, joined, serving, wait_for
from tests.support.pages import CUT_OFF, browsing, in_first_screen, live, page_of, photographed


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Run a job of two parties, and look at its page before the second one joins."""
    made = federation(tmp_path_factory.mktemp("run"), align="given")
    view = RunView(made.folder / LABEL_PARTY / "state", LedgerView(made.config("shop")))
    with serving(made) as (bank, address):
        shop = threading.Thread(target=joined, args=(made, address), kwargs={"parties": ["shop"]})
        shop.start()
        wait_for(lambda: list(view.folder.glob("*/parties/shop/sent")))
        early = view.look()
        joined(made, address, parties=["telco"])
        shop.join(timeout=120)
        bank.communicate(timeout=120)
    return made, view, early


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


def test_a_job_under_way_says_who_is_missing(job):
    _, _, early = job
    assert early.phase == "waiting for releases"
    assert not early.over
    assert early.rows == ROWS
    shop, telco = early.parties
    assert (shop.phase, shop.columns, shop.columns_due) == ("released", 2, 2)
    assert (telco.phase, telco.columns) == ("expected", 0)
    assert shop.bytes > 0
    assert early.share == 0.5
    assert early.curve is None
    assert early.total is None
    assert early.meaning.startswith("One person's record: not every feature party has stated")


def test_a_finished_job_shows_its_curve_its_questions_and_the_ledger(job):
    made, view, _ = job
    run = view.look()
    assert (run.phase, run.over, run.share) == ("done", True, 1.0)
    assert run.curve.rounds[-1] == 10
    assert run.total == run.manifest["total"] == sum(party.total for party in run.parties)
    assert run.meaning == f"One person's record: at most {run.total:.4g}. The job is done."
    assert run.curve.loss[-1] < run.curve.loss[0]
    assert [r for r, _ in run.curve.held_out] == list(run.curve.rounds)
    assert run.curve.held_out[-1][1] < run.curve.held_out[0][1]
    assert run.manifest["score"]["names"] == ["shop", "telco"]
    assert run.manifest["score_line"].startswith("AUC on ")
    for party, names in zip(run.parties, (NAMES[3:5], NAMES[5:7]), strict=True):
        assert {q.column for q in party.questions} <= set(names)
        assert all(q.cuts > 0 and q.answered for q in party.questions)
    assert any(party.questions for party in run.parties)
    assert run.entries[0]["job"] == run.job
    assert {"release"} <= {e["what"] for e in run.entries}
    words = pages.run_page(run)
    assert run.manifest["score_line"] in words
    for text in (
        run.job,
        "held-out rows",
        "Training curve",
        "Split query and answer",
        "Ledger entries",
        "telco",
    ):
        assert text in words
    assert made.folder.name not in words  # no path on this machine


def test_a_job_is_only_read(job):
    made, view, _ = job
    state = made.folder / LABEL_PARTY / "state"
    before = {p: p.stat().st_mtime_ns for p in state.rglob("*")}
    pages.run_page(view.look())
    assert {p: p.stat().st_mtime_ns for p in state.rglob("*")} == before


def test_an_answer_that_is_due_is_reported(job, tmp_path):
    _, view, _ = job
    copy = tmp_path / "job"
    shutil.copytree(view.job(), copy)
    (copy / "manifest.json").unlink()
    (copy / "parties" / "telco" / "answer").unlink()
    run = RunView.of(copy).look()
    assert (run.phase, run.share) == ("waiting for split values", 0.5)
    assert [{q.answered for q in p.questions} for p in run.parties] == [{True}, {False}]
    assert "not yet" in pages.run_part(run)


def test_a_damaged_curve_or_journal_takes_nothing_else_away(job, tmp_path):
    _, view, _ = job
    copy = tmp_path / "job"
    shutil.copytree(view.job(), copy)
    next(copy.glob("trained-*/curve.json")).write_text('{"measure": 1}')
    (copy / "label.jsonl").write_bytes(b'{"at": 5}\n[]\n\xff{"at": "x", "event": "serv')
    run = RunView.of(copy).look()
    assert run.curve is None
    assert run.events == ()
    assert run.phase == "done"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_a_finished_job_at_any_width(job, browser, width):
    _, view, _ = job
    scheme = "light" if width > 400 else "dark"
    with (
        live(Site(run=view)) as address,
        page_of(browser, address, width=width, scheme=scheme) as page,
    ):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert in_first_screen(page, "#summary strong")
        assert in_first_screen(page, "#person-total")
        assert page.evaluate(CUT_OFF) == []
        assert page.locator("#curve svg.chart").is_visible()
        assert page.locator("#questions tbody tr").count() >= 1
        if width == 1280:
            photographed(page, "run")
        page.get_by_role("link", name="Record total").click()
        assert page.get_by_role("heading", name="Start with one number").is_visible()


def test_a_page_follows_a_job_to_its_end(job, browser, tmp_path):
    _, view, _ = job
    copy = tmp_path / "job"
    shutil.copytree(view.job(), copy)
    (copy / "manifest.json").rename(tmp_path / "manifest.json")
    with live(Site(run=RunView.of(copy))) as address, page_of(browser, address) as page:
        phase = page.locator("#summary")
        assert "Waiting for the values at the model's split points." in phase.text_content()
        page.locator("#curve summary").click()
        (tmp_path / "manifest.json").rename(copy / "manifest.json")
        page.wait_for_function(
            "() => document.getElementById('summary').textContent.endsWith('The job is done.')"
        )
        assert page.locator("#run dd").nth(1).text_content() == "done"
        assert page.locator("#summary strong").text_content().startswith("One person's record: at")
        assert page.locator("#curve details").get_attribute("open") is not None  # stays open


def test_time_left_is_not_shown_before_it_is_known():
    began = [{"at": "2026-01-01T00:00:00+00:00", "event": "phase", "phase": "aligning"}]
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert eta(began, "aligning", 0.5, now) == 60
    for events, phase, share in (
        ([], "aligning", 0.5),
        (began, "training", 0.5),
        (began, "aligning", 0.0),
        (began, "aligning", 1.0),
        ([{**began[0], "at": "soon"}], "aligning", 0.5),
    ):
        assert eta(events, phase, share, now) is None


def test_a_curve_is_kept_as_it_was(tmp_path):
    kept = Curve("log loss", (1, 5), (0.5, 0.25))
    kept.save(tmp_path / "curve.json")
    assert Curve.load(tmp_path / "curve.json") == kept
    assert json.loads((tmp_path / "curve.json").read_text())["rounds"] == [1, 5]
