"""The ledger's report: its content, and how it looks in a browser and in print."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from opboost import __version__
from opboost.errors import DataError
from opboost.ledger.ledger_report import Report
from opboost.ledger.renewal import renew
from opboost.pages.printed_page import factor
from robustness.command_line import run
from tests.explorer.test_explorer_page import LOW_CONTRAST
from tests.support.browser import opened as loaded
from tests.support.ledger import AGE, CITY, LEVEL, opened, release, table
from tests.support.pages import browsing

LONG = "a_recipient_whose_name_is_longer_than_a_line_of_a_telephone_is_wide"
CONFIG = """
[columns.age]
bounds = [0, 100]
[ledger]
folder = "ledger"
key = "keys/ledger.key"
cap_attribute = 8.0
cap_person = 10.5
"""


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Make several releases, an alignment, an answer, a renewal and an open reservation."""
    home = tmp_path_factory.mktemp("report")
    (home / "shop.toml").write_text(CONFIG)
    people = table(40, city=list("abcdefghij") * 4)
    with opened(home) as ledger:
        release(ledger, people, (AGE, CITY), job="file first.csv")
        release(ledger, people[:25], (AGE,), to=LONG, job=f"file {LONG}.csv")
        with pytest.raises(DataError):
            release(ledger, people.assign(id=0), to="auditor", job="bad")
        renew(ledger, "age")
        release(ledger, people[:30], (AGE,), to="<script>alert(1)</script>", job="<b>&amp;")
        with ledger.writing():
            body = {"job": "20261116", "recipient": "bank"}
            ledger.append("align", {**body, "rows": 40, "theirs": 90, "points": "", "tag": ""})
            ledger.append("aligned", {**body, "common": 12, "bitmap": ""})
            columns = [{"attribute": "city"}]
            ledger.append("reserve", {**body, "job": "later", "people": "", "columns": columns})
    return home


@pytest.fixture(scope="module")
def page(home):
    status, _, words = run("ledger", "report", "-c", home / "shop.toml", "-o", home / "ledger.html")
    assert (status, f"-> {home / 'ledger.html'}" in words.replace("\n", "")) == (0, True), words
    return home / "ledger.html"


class Words(HTMLParser):
    """Collects the words of a page in order, and everything that it would load or run."""

    def __init__(self, text):
        super().__init__()
        self.words, self.loads, self.skipped = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.skipped = tag == "style"
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "data")]
        self.loads += [tag] if tag in ("script", "link", "iframe", "object", "img") else []

    def handle_endtag(self, tag):
        self.skipped = False

    def handle_data(self, data):
        if not self.skipped:
            self.words += data.split()


def words(text):
    return " ".join(Words(text).words)


def test_the_first_figure_is_the_most_revealed_about_one_person(page):
    said = words(page.read_text())
    first = re.search(r"\d+(\.\d+)?", said.split("Highest total for any one person", 1)[1]).group()
    assert first == f"{2 * LEVEL + 1:g}"
    assert "Cap 10.5; 0.5 left. 40 people" in said
    assert "at most e 10 ≈ 22,000" in said


def test_it_tells_who_received_what_and_when(page, home):
    text = page.read_text()
    said = words(text)
    with opened(home) as ledger:
        for entry in ledger.entries("commit"):
            assert entry.at in said
        head = ledger.head()
        begun, renewed = ledger.entries("open", "renew")
    assert f"bank release job file first.csv age, city 40 80 0 {'':s}".strip() in said
    assert f"{LONG} release job file {LONG}.csv age 25 0 25" in said
    assert "bank alignment of 40 rows with 90: 12 in common job 20261116 – – – –" in said
    assert "1 release was aborted before anything was sent" in said
    assert "job later, for bank (city): reserved, not finished: nothing was sent." in said
    assert f"{begun.at} : the ledger was created" in said
    assert f"{renewed.at} : a new period of age" in said
    assert f"Last entry: number {head.number} of {head.at} , hash {head.hash.hex()}" in said
    assert "Every entry verifies, and every file that the ledger names" in said
    assert f"by OpBoost {__version__}" in said
    assert "Place, date Name, function Signature" in said


def test_what_is_left_and_what_is_exceeded_stands_beside_the_caps(page):
    said = words(page.read_text())
    assert "age 40 9 8 exceeded city 40 1 8 7 all together 40 10 10.5 0.5" in said
    assert "The cap per attribute is exceeded for age." in said


def test_names_are_escaped_and_nothing_is_loaded(page):
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;b&gt;&amp;amp;" in text
    assert Words(text).loads == []
    assert not re.search(r"https?://|url\(|@import", text)
    assert "Who received what" in loaded(page, "--dump-dom")  # with the network cut off


def test_a_ledger_without_releases_has_a_page(tmp_path):
    with opened(tmp_path) as ledger:
        said = words(Report.of(ledger, "new", __version__).page())
    assert "Highest total for any one person 0 No cap is set for a person. 0 people" in said
    assert "Nothing was sent." in said


def test_what_has_no_bound_is_said_to_have_none(tmp_path):
    with opened(tmp_path, changed="redraw") as ledger:
        release(ledger, table(5))
        said = words(Report.of(ledger, "redrawn", __version__).page())
    assert "No bound over time: this ledger redraws, or has redrawn, changed values." in said
    assert "a noisy value that differs proves that the person's value changed" in said


def test_a_record_that_does_not_verify_is_said_on_the_page_and_by_the_exit_status(tmp_path):
    import sqlite3

    (tmp_path / "shop.toml").write_text(CONFIG)
    with opened(tmp_path) as ledger:
        release(ledger, table(5))
    with sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite") as db:
        db.execute("DROP TRIGGER entries_UPDATE")
        db.execute("UPDATE entries SET body = replace(body, 'bank', 'back') WHERE number = 1")
    db.close()
    out = tmp_path / "ledger.html"
    status, _, said = run("ledger", "report", "-c", tmp_path / "shop.toml", "-o", out)
    assert (status, "does not verify: entry 1 was changed" in said) == (3, True)
    text = words(out.read_text())
    assert "The record does not verify Entry 1 was changed" in text
    assert "verifies." not in text


def test_a_page_that_is_there_is_not_overwritten(page, home):
    status, _, said = run("ledger", "report", "-c", home / "shop.toml", "-o", page)
    assert (status, "exists already" in said) == (2, True)


@pytest.mark.parametrize(
    ("total", "shown"),
    [(0, "1"), (4.5, "90"), (4.7, "110"), (20.7, "977,000,000"), (20.8, "1.08 × 10<sup>9</sup>"),
     (1000, "1.97 × 10<sup>434</sup>"), (23.0258, "1.00 × 10<sup>10</sup>")],
)  # fmt: skip
def test_the_factor_is_shown_in_figures_that_people_read(total, shown):
    assert factor(total) == shown


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (390, "dark")])
def test_every_width_and_scheme_fits_and_is_readable(browser, page, width, scheme):
    size = {"width": width, "height": 844}
    context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=True)
    try:
        seen = context.new_page()
        asked = []
        seen.on("request", lambda request: asked.append(request.url))
        seen.goto(page.as_uri())
        assert seen.evaluate("document.documentElement.scrollWidth") <= width
        box = seen.locator("#total").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= size["height"]  # visible without scrolling
        assert seen.locator("#total").inner_text() == "10"
        assert seen.evaluate(LOW_CONTRAST) == []
        assert seen.evaluate(BEYOND, width) == []
        assert asked == [page.as_uri()]
    finally:
        context.close()


BEYOND = """(width) => [...document.querySelectorAll("main *")]
  .filter((e) => e.getClientRects().length && !e.closest("thead"))
  .filter((e) => e.getBoundingClientRect().right > width + 0.5)
  .map((e) => e.outerHTML.slice(0, 80))"""
"""No part of the page extends beyond its right edge."""


def test_it_prints_in_black_on_white_without_cutting_a_row(browser, page):
    context = browser.new_context(viewport={"width": 690, "height": 980}, color_scheme="dark")
    try:
        seen = context.new_page()
        seen.goto(page.as_uri())
        seen.emulate_media(media="print")
        style = "getComputedStyle(document.body)"
        assert seen.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
        assert seen.evaluate(f"{style}.color") == "rgb(0, 0, 0)"
        row = "getComputedStyle(document.querySelector('#sent tbody tr'))"
        assert seen.evaluate(f"{row}.breakInside") == "avoid"
        assert seen.evaluate("document.documentElement.scrollWidth") <= 690
        assert seen.evaluate(BEYOND, 690) == []
        assert seen.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    finally:
        context.close()
