"""The explorer's first page in a real browser: one number, the plan, and the lines to copy."""

from __future__ import annotations

import json
import statistics
import tomllib

import pytest

from opboost.explorer.server import Site
from robustness.command_line import run
from tests.explorer.test_explorer_page import LOW_CONTRAST, WITHOUT_NAME, choose, fill, redrawn
from tests.support.pages import browsing, in_first_screen, live, page_of, photographed


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def address():
    with live(Site()) as found:
        yield found


def toml(page):
    return tomllib.loads(page.locator("#toml").text_content())


def plan(page):
    """Return the text of the plan's table, line by line."""
    return [
        [cell.text_content().strip() for cell in line.locator("th, td").all()]
        for line in page.locator("#plan tbody tr").all()
    ]


def test_the_record_total_is_the_first_control_and_its_meaning_stands_above_all(browser, address):
    with page_of(browser, address) as page:
        first = page.locator("input, select, button").first
        assert first.get_attribute("id") == "record"
        assert first.input_value() == "4"
        assert page.get_by_label("Record total (smaller is more private)").is_visible()
        said = page.locator("#summary")
        assert "at most e^4 ≈ 55." in said.text_content()
        assert said.bounding_box()["y"] < page.locator("#plan").bounding_box()["y"]
        assert said.bounding_box()["y"] < 500  # without scrolling
        titles = page.locator("#plan thead th").all_text_contents()
        assert titles == [
            "column",
            "mechanism",
            "cells",
            "radius, raw units",
            "level if sent",
            "sent for, share of people",
        ]
        assert plan(page)[0] == ["number_1", "Window-map", "32", "none", "2", "25 %"]
        assert plan(page)[-1] == ["category_2", "Randomised response", "5", "none", "2", "25 %"]
        assert page.locator("#person-total").text_content() == "4"


def test_every_control_changes_the_plan(browser, address):
    with page_of(browser, address) as page:
        redrawn(page, lambda: page.locator("#record-slider").fill("8"))
        assert page.locator("#record").input_value() == "8"
        assert toml(page)["budget"] == {"record": 8.0}
        assert "e^8 ≈ 2,981" in page.locator("#summary").text_content()
        fill(page, "record", "1.25")
        assert float(page.locator("#record-slider").input_value()) in (1.0, 1.5)
        assert toml(page)["budget"] == {"record": 1.25}
        assert plan(page)[0][-2:] == ["1.25", "12.5 %"]
        fill(page, "radius", "0.25")
        assert toml(page)["budget"] == {"record": 1.25, "radius": 0.25}
        assert plan(page)[0][3] == "25"
        fill(page, "columns", "3")
        assert len(plan(page)) == 3
        fill(page, "nominal", "1")
        assert [line[0] for line in plan(page)] == ["number_1", "number_2", "category_1"]
        fill(page, "categories", "40")
        assert plan(page)[2][1:3] == ["Subset selection", "40"]
        fill(page, "record", "8")
        choose(page, "task", "regress")
        assert toml(page)["budget"]["task"] == "regress"
        assert "2 of 3 columns" in page.locator("#plan-choice").text_content()
        assert "task=regress" in page.url  # reloading or sharing the page shows the same
        before = plan(page)
        page.reload()
        assert plan(page) == before


def test_a_wrong_total_is_reported_beside_the_control_and_to_a_screen_reader(browser, address):
    with page_of(browser, address) as page:
        fill(page, "record", "lots")
        said, control = page.locator("#problem-record"), page.locator("#record")
        assert said.text_content() == "The record total must be a number; got 'lots'. Write 4."
        assert control.get_attribute("aria-invalid") == "true"
        assert control.get_attribute("aria-describedby") == "problem-record"
        status = page.get_by_role("status").first
        assert status.text_content().startswith("Not planned: The record total must be a number")
        assert "stale" in page.locator("#results").get_attribute("class")
        fill(page, "radius", "10")
        assert "at most 1; got 10" in page.locator("#problem-radius").text_content()
        photographed(page, "explorer-wrong-input", "#choice")
        fill(page, "radius", "")
        fill(page, "record", "2")
        assert said.is_hidden()
        assert control.get_attribute("aria-invalid") is None
        assert "at most 2" in status.text_content()
        assert "stale" not in (page.locator("#results").get_attribute("class") or "")


def test_the_toml_that_is_copied_makes_the_same_plan(browser, address, tmp_path):
    permissions = ["clipboard-read", "clipboard-write"]
    with page_of(browser, f"{address}?record=6&radius=0.1", permissions=permissions) as page:
        page.locator("#copy").click()
        page.wait_for_function("() => document.getElementById('copied').textContent === 'Copied.'")
        text = page.evaluate("navigator.clipboard.readText()")
        shown = plan(page)
    (tmp_path / "b.toml").write_text(text)
    status, out, _ = run("plan", "-c", tmp_path / "b.toml", "--format", "json")
    found = json.loads(out)
    assert (status, found["total"]) == (0, 6.0)
    printed = [
        [
            line["name"],
            line["mechanism"],
            str(line["cells"]),
            "none" if line["radius"] is None else f"{line['radius']:.4g}",
            f"{line['level']:.4g}",
            f"{line['sent_per_thousand'][0] / 10:g} %",
        ]
        for line in found["columns"]
    ]
    assert printed == shown


def test_the_columns_of_a_file_are_planned(browser, tmp_path):
    (tmp_path / "b.toml").write_text(
        "[budget]\nrecord = 2.0\n[columns.age]\nbounds = [18, 90]\nradius = 9\n"
        '[columns.city]\ncategories = ["north", "south", "east"]\n'
    )
    with (
        live(Site.of(None, None, None, tmp_path / "b.toml")) as address,
        page_of(browser, address) as page,
    ):
        assert page.locator("#columns").count() == 0
        assert page.locator("#record").input_value() == "2"
        assert [line[:4] for line in plan(page)] == [
            ["age", "Window-map", "32", "9"],
            ["city", "Randomised response", "3", "none"],
        ]
        fill(page, "record", "4")
        text = (tmp_path / "b.toml").read_text()
        assert page.locator("#toml").text_content() == text.replace("record = 2.0", "record = 4.0")
        page.get_by_role("link", name="ε per cell").click()
        assert page.locator("#column-0").input_value() == "age"
        assert page.locator("#upper-0").input_value() == "90"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_every_width_and_scheme_fits_and_is_readable(browser, address, width, scheme):
    with page_of(browser, address, width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner, outer = page.evaluate(
            "() => { const e = document.getElementById('plan').parentElement;"
            " return [e.scrollWidth, e.clientWidth]; }"
        )
        assert inner <= outer  # the whole table, without scrolling
        assert page.evaluate(LOW_CONTRAST) == []
        assert page.evaluate(WITHOUT_NAME) == []
        if scheme == "light":
            photographed(page, f"explorer-{width}")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_total_comes_first_and_its_control_stays_in_view(browser, address, width):
    with page_of(browser, f"{address}?columns=40", width=width) as page:
        total = page.locator("#summary strong")
        assert total.text_content() == "One person's record: at most 4."
        assert in_first_screen(page, "#summary strong")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        assert not in_first_screen(page, "#summary strong")
        assert in_first_screen(page, "#record")
        facts = page.locator("#radius")
        if width == 390:
            assert not facts.is_visible()
            page.locator(".controls > summary").click()
        assert facts.is_visible()
        fill(page, "record", "2")
        assert total.text_content() == "One person's record: at most 2."


def test_the_other_way_is_a_tab_away(browser, address):
    with page_of(browser, address) as page:
        page.get_by_role("link", name="ε per cell").click()
        page.get_by_role("heading", name="Choose a mechanism by looking").wait_for()
        page.get_by_role("navigation").get_by_role("link", name="Record total").click()
        page.get_by_role("heading", name="Start with one number").wait_for()


def test_the_page_works_without_scripts(browser, address):
    with page_of(browser, address, java_script_enabled=False) as page:
        page.locator("#record").fill("2")
        assert not page.locator("#record-slider").is_visible()
        page.get_by_role("button", name="Show").click()
        assert "record = 2.0" in page.locator("#toml").text_content()


def test_a_change_is_planned_while_one_looks(browser, address, record_property):
    with page_of(browser, f"{address}?columns=40") as page:
        times = []
        for total in ("1", "2", "4", "8", "16"):
            fill(page, "record", total if total != "4" else "4.5")
            times.append(float(page.evaluate("document.documentElement.dataset.redraw")))
        median = statistics.median(times)
        record_property("median_ms", median)
        print(f"plan of 40 columns: median {median:.0f} ms")
        assert median < 1000
