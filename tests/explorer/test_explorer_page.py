"""The explorer in a real browser: every control, by pointer, keyboard and screen reader."""

from __future__ import annotations

import json
import re
import statistics
import tomllib

import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from opboost.explorer.choice import KINDS
from opboost.explorer.server import Site
from robustness.command_line import run
from tests.support.ledger import opened, release, table
from tests.support.pages import (
    CUT_OFF,
    PICTURES,
    browsing,
    in_first_screen,
    live,
    page_of,
    photographed,
)

COLUMNS = {"mean radius": ("5", "30"), "mean texture": ("5", "45")}


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a table of two columns and a label, and a ledger with a release of one attribute."""
    home = tmp_path_factory.mktemp("explorer")
    data = load_breast_cancer(as_frame=True).frame
    frame = data[[*COLUMNS, "target"]].iloc[:150]
    pd.DataFrame(frame).to_csv(home / "cells.csv", index=False)
    with opened(home, person=20.0, attribute=10.0) as ledger:
        release(ledger, table())
    (home / "b.toml").write_text(
        "[columns.age]\nbounds = [0, 100]\n[ledger]\nfolder = 'ledger'\n"
        "key = 'keys/ledger.key'\ncap_person = 20\ncap_attribute = 10\n"
    )
    return Site.of(home / "cells.csv", home / "b.toml", None)


@pytest.fixture(scope="module")
def address():
    with live(Site()) as found:
        yield found


@pytest.fixture(scope="module")
def mechanism(address):
    return f"{address}mechanism"


@pytest.fixture(scope="module")
def of_table(site):
    with live(site) as found:
        yield f"{found}mechanism"


def redrawn(page, change):
    """Perform an action, and wait until the page shows the results of its form."""
    page.evaluate("document.documentElement.dataset.drawn = ''")
    change()
    page.wait_for_function(
        "() => document.documentElement.dataset.drawn === "
        "new URLSearchParams(new FormData(document.getElementById('choice'))).toString()"
    )


def fill(page, name, text):
    redrawn(page, lambda: page.locator(f"#{name}").fill(text))


def choose(page, name, value):
    redrawn(page, lambda: page.locator(f"#{name}").select_option(value))


def toml(page):
    return tomllib.loads(page.locator("#toml").text_content())


def test_every_control_changes_what_is_shown(browser, mechanism):
    with page_of(browser, mechanism) as page:
        before = page.locator("#results").inner_html()

        def changed():
            nonlocal before
            now = page.locator("#results").inner_html()
            assert now != before
            before = now

        fill(page, "cells", "20")
        changed()
        assert toml(page)["grid"] == {"lower": 1, "upper": 20}
        fill(page, "epsilon", "0.32")
        changed()
        assert toml(page)["mechanism"]["epsilon"] == 0.32
        assert not page.locator("#theta").is_visible()
        assert not page.locator("#alpha").is_visible()
        choose(page, "kind", "adj-map")
        changed()
        fill(page, "theta", "5")
        changed()
        fill(page, "alpha", "2")
        changed()
        told = {"kind": "adj-map", "epsilon": 0.32, "theta": 5, "alpha": 2.0}
        assert toml(page)["mechanism"] == told
        choose(page, "match", "whole")
        changed()
        fill(page, "upper-0", "100")
        changed()
        assert toml(page)["columns"]["age"]["bounds"] == [17, 100]
        fill(page, "value", "18")
        changed()
        assert "A person with age 18 lies in cell 1 " in page.locator("#belief").text_content()
        redrawn(page, lambda: page.locator("#epsilon-slider").fill("0"))
        changed()
        assert page.locator("#epsilon").input_value() == "1"
        for kind, name in KINDS.items():
            if kind != "adj-map":
                choose(page, "kind", kind)
                changed()
                assert name in page.locator("tr.chosen").text_content()
        assert f"kind={kind}" in page.url  # reloading or sharing the page shows the same
        page.reload()
        assert page.locator("#results").inner_html().strip() == before.strip()


def test_a_window_map_has_controls_of_its_own(browser, mechanism):
    with page_of(browser, mechanism) as page:
        for name in ("total", "near", "width"):
            assert not page.locator(f"#{name}").is_visible()
        choose(page, "kind", "window-map")
        assert not page.locator("#epsilon").is_visible()
        assert toml(page)["mechanism"] == {"kind": "window-map", "total": 4.0}
        assert page.locator("#person-total").text_content() == "4"
        redrawn(page, lambda: page.locator("#total-slider").fill("0"))
        assert page.locator("#total").input_value() == "1"
        fill(page, "near", "0.25")
        fill(page, "width", "1")
        told = {"kind": "window-map", "total": 1.0, "near": 0.25, "width": 1}
        assert toml(page)["mechanism"] == told
        assert page.locator("#person-total").text_content() == "1"
        fill(page, "near", "")
        page.locator("#near").fill("2")
        page.wait_for_function("() => !document.getElementById('problem-near').hidden")
        assert "must not exceed total" in page.locator("#problem-near").text_content()
        assert page.locator("#near").get_attribute("aria-invalid") == "true"


def test_columns_are_added_looked_at_and_taken_away_by_keyboard(browser, mechanism):
    with page_of(browser, mechanism) as page:
        page.locator("#add-column").focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "column-1"
        page.keyboard.type("income")
        page.keyboard.press("Tab")
        page.keyboard.type("0")
        page.keyboard.press("Tab")
        redrawn(page, lambda: page.keyboard.type("20000"))
        page.wait_for_function(
            "() => document.getElementById('person-total').textContent === '11.52'"
        )
        assert toml(page)["columns"] == {
            "age": {"bounds": [17, 90]},
            "income": {"bounds": [0, 20000]},
        }
        choose(page, "look", "1")
        assert "A person with income 10,000" in page.locator("#belief").text_content()
        assert page.get_by_role("button", name="Remove column income").is_visible()
        redrawn(page, lambda: page.get_by_role("button", name="Remove column age").click())
        assert list(toml(page)["columns"]) == ["income"]
        assert page.evaluate("document.activeElement.id") == "add-column"
        assert page.locator("#column-0").input_value() == "income"


def test_a_wrong_input_is_reported_beside_the_control_and_to_a_screen_reader(browser, mechanism):
    with page_of(browser, mechanism) as page:
        fill(page, "epsilon", "lots")
        said = page.locator("#problem-epsilon")
        assert said.is_visible()
        assert said.text_content() == "epsilon must be a number; got 'lots'. Write 0.64."
        control = page.locator("#epsilon")
        assert control.get_attribute("aria-invalid") == "true"
        assert control.get_attribute("aria-describedby") == "problem-epsilon"
        status = page.get_by_role("status").first
        assert status.text_content().startswith("Not drawn: epsilon must be a number")
        assert "stale" in page.locator("#results").get_attribute("class")
        fill(page, "epsilon", "0.5")
        assert said.is_hidden()
        assert control.get_attribute("aria-invalid") is None
        assert "Clamp-map on 10 cells" in status.text_content()
        assert "stale" not in (page.locator("#results").get_attribute("class") or "")


def test_the_toml_that_is_copied_is_certified(browser, mechanism, tmp_path):
    permissions = ["clipboard-read", "clipboard-write"]
    with page_of(browser, mechanism, permissions=permissions) as page:
        choose(page, "kind", "global-map")
        fill(page, "epsilon", "0.4")
        page.locator("#copy").click()
        page.wait_for_function("() => document.getElementById('copied').textContent === 'Copied.'")
        text = page.evaluate("navigator.clipboard.readText()")
        promised = page.locator("#person-total").text_content()
        exact = page.locator("#people tbody td").nth(1).text_content()
    (tmp_path / "b.toml").write_text(text)
    status, out, _ = run("certify", "-c", tmp_path / "b.toml", "--format", "json")
    found = json.loads(out)
    assert (status, found["covered"]) == (0, True)
    assert f"{found['total']:.4g}" == promised
    assert f"{found['columns'][0]['exact_epsilon']:.4g}" == exact


def test_a_wrong_token_shows_no_page(browser, address):
    wrong = re.sub(r"/[^/]+/$", "/not-the-token/", address)
    page = browser.new_page()
    try:
        assert page.goto(wrong).status == 403
        assert "The token is wrong" in page.content()
        assert page.locator("form").count() == 0
    finally:
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "dark")])
def test_every_width_and_scheme_fits_and_is_readable(browser, mechanism, width, scheme):
    with page_of(browser, mechanism, width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(LOW_CONTRAST) == []
        assert page.evaluate(WITHOUT_NAME) == []
        assert page.evaluate(WITHOUT_WORDS) == []
        if (width, scheme) == (1280, "light"):
            photographed(page, "explorer-mechanism")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_total_comes_first_and_the_controls_stay_in_view(browser, mechanism, width):
    with page_of(browser, mechanism, width=width) as page:
        total = page.locator("#summary strong")
        assert total.text_content() == "One person's record: at most 5.76."
        assert in_first_screen(page, "#summary strong")
        assert page.evaluate(CUT_OFF) == []
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        if width == 390:
            assert not page.locator("#epsilon").is_visible()
            assert in_first_screen(page, ".controls > summary")
            page.locator(".controls > summary").click()
        page.locator("#cells").scroll_into_view_if_needed()
        assert in_first_screen(page, "#cells")
        choose(page, "kind", "local-map")
        assert total.text_content() == "One person's record: nothing is promised."


def test_a_page_whose_server_has_ended_says_so(browser):
    with live(Site()) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}mechanism")
    page.locator("#epsilon").fill("0.1")
    page.wait_for_selector("#results.stale")
    assert "Is opboost explore still running?" in page.locator("#summary").text_content()
    context.close()


def test_the_page_works_without_scripts(browser, mechanism):
    with page_of(browser, mechanism, java_script_enabled=False) as page:
        page.locator("#epsilon").fill("0.1")
        page.get_by_role("button", name="Show").click()
        assert "epsilon = 0.1" in page.locator("#toml").text_content()


@pytest.mark.parametrize(("cells", "most"), [("10", 1000), ("1024", 3000)])
def test_a_change_is_redrawn_while_one_looks(browser, mechanism, cells, most, record_property):
    """The benchmark measures speed on an idle machine; here, it only has to be plausible."""
    with page_of(browser, f"{mechanism}?cells={cells}") as page:
        times = []
        for level in ("0.11", "0.22", "0.33", "0.44", "0.55"):
            fill(page, "epsilon", level)
            times.append(float(page.evaluate("document.documentElement.dataset.redraw")))
        median = statistics.median(times)
        record_property("median_ms", median)
        print(f"redraw of {cells} cells: median {median:.0f} ms")
        assert median < most


def test_a_table_is_tried_out_in_the_background(browser, of_table):
    with page_of(browser, of_table) as page:
        assert "No column has bounds yet" in page.locator("#summary").text_content()
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("#trial-said:visible")
        assert "No column has bounds yet" in page.get_by_role("alert").text_content()
        for i, (name, (lower, upper)) in enumerate(COLUMNS.items()):
            assert page.locator(f"#column-{i}").input_value() == name
            assert page.locator(f"#lower-{i}").input_value() == ""  # never from the data
            page.locator(f"#lower-{i}").fill(lower)
            fill(page, f"upper-{i}", upper)
        assert toml(page)["table"] == {"drop": ["target"]}
        warning = page.locator("#trial .warning").text_content()
        assert "Not covered by the guarantee" in warning
        assert page.locator("#label").input_value() == "target"
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector("#trial[data-state=stopped]")
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("#trial[data-state=running]")
        assert page.locator("#trial-said").is_hidden()
        page.wait_for_selector("#trial-progress")
        fill(page, "epsilon", "0.9")  # the page stays usable meanwhile
        page.wait_for_selector("#accuracy svg", timeout=120_000)
        assert "Without noise, the sample" in page.locator("#accuracy").text_content()
        if PICTURES:
            page.wait_for_selector("#trial[data-state=done]", timeout=300_000)
            photographed(page, "explorer-trial", "#trial")
            return
        page.evaluate("document.getElementById('trial-stop').click()")  # if it is still running
        page.wait_for_selector("#trial[data-state=stopped], #trial[data-state=done]")


def test_what_the_ledger_leaves_is_shown(browser, of_table):
    query = "?column=age&lower=0&upper=100&column=pay&lower=0&upper=9&epsilon=1"
    with page_of(browser, of_table + query) as page:
        lines = [
            [cell.text_content().strip() for cell in line.locator("th, td").all()]
            for line in page.locator("#ledger-left tbody tr").all()
        ]
        assert lines == [
            ["age", "4.5", "9", "10", "refused: over by 3.5"],
            ["pay", "0", "9", "10", "1"],
            ["all together", "4.5", "18", "20", "refused: over by 2.5"],
        ]


LOW_CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.disabled || !e.getClientRects().length || e.closest(".skip")) continue;
    const style = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${e.tagName}.${e.className} ${style.color}`);
  }
  return found;
}"""
"""Lists visible texts with less contrast than WCAG level AA requires."""

WITHOUT_NAME = """() => [...document.querySelectorAll("input, select, button, progress")]
  .filter((e) => !(e.labels && e.labels.length) && !e.getAttribute("aria-label")
    && !e.textContent.trim())
  .map((e) => e.outerHTML)"""
"""Lists controls without a name."""

WITHOUT_WORDS = """() => [...document.querySelectorAll("svg.chart")]
  .filter((e) => !e.querySelector("title").textContent || !e.querySelector("desc").textContent
    || !e.closest("figure").querySelector("figcaption").textContent
    || !e.closest("figure").querySelector("table"))
  .map((e) => e.outerHTML.slice(0, 80))"""
"""Lists charts that lack a name, a sentence or a table."""
