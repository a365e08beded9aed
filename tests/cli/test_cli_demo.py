from __future__ import annotations

import json
import re
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from opboost.budgets.record_plan import PlannedColumn
from opboost.config import load
from opboost.demo.demo_report import write_report
from opboost.demo.three_parties import Alignment, Demo, Sent
from tests.explorer.test_explorer_page import LOW_CONTRAST
from tests.support.pages import browsing, in_first_screen
from tests.support.parties import ended


def run(*arguments, cwd):
    return ended(["opboost", *arguments], cwd, timeout=240)


def test_the_demo_is_three_processes_one_model_and_one_total(tmp_path):
    done = run("demo", "--draws", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-3] == "shop 2, phone 2: levels add up over parties."
    assert re.match(
        r"AUC on 3,\d+ held-out rows: bank alone 0\.\d+ → with shop and phone", lines[-2]
    )
    assert lines[-1] == "One person's record: at most 4."
    for party in ("shop", "phone"):
        assert f"What {party} sends about one person" in done.stdout
    scores = {
        way: float(re.search(rf"{way} +│ +(0\.\d+)", done.stdout).group(1))
        for way in ("federated", "joined in the clear", "own columns alone")
    }
    assert scores["own columns alone"] + 0.15 < scores["federated"]
    assert scores["federated"] < scores["joined in the clear"]
    assert sorted(p.name for p in (tmp_path / "demo-out").iterdir()) == [
        "accuracy.svg",
        "report.html",
    ]
    page = (tmp_path / "demo-out" / "report.html").read_text()
    header, main = page.split("</header>")
    assert "One person&#x27;s record: at most 4. " in header
    assert main.count("25 % of people") == 8
    assert '<svg viewBox="0 0 480' in page
    assert f"{version('opboost')}." in header
    assert re.search(r"As of <time>\d{4}-\d\d-\d\d \d\d:\d\d UTC</time>", header)
    assert "Window-map and Randomised response" in main
    assert re.search(
        r"Over 2 draws of the noise the federated AUC ranges from 0\.8\d+ to 0\.8\d+\.", done.stdout
    )
    assert "Drawing noise once\nmore for the same people" in main
    assert "http" not in page


def test_the_small_real_table_has_a_mechanism_by_cell(tmp_path):
    arguments = (
        "demo",
        "--data",
        "breast-cancer",
        "--cells",
        "8",
        "--draws",
        "3",
        "--format",
        "json",
    )
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["aligned"]["people"] == {"clinic": 408, "lab-north": 408, "lab-south": 408}
    assert 372 <= found["rows"] == found["aligned"]["common"] < 408
    assert [s["party"] for s in found["sent"]] == ["lab-north", "lab-south"]
    for sent in found["sent"]:
        assert 0 < sent["bytes"] < 20_000 + 2 * 33 * 408
        assert sent["per_person"] == pytest.approx(7 * 0.64 * sent["columns"])
        assert {(c["mechanism"], c["cells"], *c["sent_per_thousand"]) for c in sent["plan"]} == {
            ("Clamp-map", 8, 1000, 1000)
        }
    assert found["per_person"] == pytest.approx(5 * 7 * 0.64)
    assert found["auc"]["federated"] > found["auc"]["own columns alone"] + 0.1
    assert len(found["redrawn"]) == 2
    assert len({found["auc"]["federated"], *found["redrawn"]}) == 3  # new noise is drawn
    assert min(found["redrawn"]) > found["auc"]["own columns alone"]
    page = " ".join((tmp_path / "demo-out" / "report.html").read_text().split())
    assert f"trained on the {found['rows']} people whom all know" in page
    assert "For each person, all columns are sent. Their levels add up to the party’s total" in page


def test_the_made_up_tables_can_be_written_and_planned(tmp_path):
    done = run("demo", "--write-tables", "made", "--record", "6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = ["bank.csv", "new-people.csv", "phone.csv", "phone.toml", "shop.csv", "shop.toml"]
    assert sorted(p.name for p in (tmp_path / "made").iterdir()) == names
    assert sorted(done.stdout.split()) == [f"made/{name}" for name in names]
    assert load(tmp_path / "made" / "shop.toml").record.total == 3.0
    assert not (tmp_path / "demo-out").exists()


def test_the_tour_prints_every_mechanism_and_draws_a_picture(tmp_path):
    done = run("demo", "--mechanisms", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("Clamp-map", "Global-map", "Adj-map", "Local-map", "Piecewise", "exact"):
        assert word in done.stdout
    picture = tmp_path / "demo-out" / "mechanisms.svg"
    drawn = ElementTree.fromstring(picture.read_text())
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawn.findall("{*}svg")) == 12
    assert [p.name for p in picture.parent.iterdir()] == ["mechanisms.svg"]


def test_the_tour_speaks_json_and_says_when_it_is_seeded(tmp_path):
    arguments = ("demo", "--mechanisms", "--format", "json", "--seed", "7")
    lines = json.loads(run(*arguments, cwd=tmp_path).stdout)
    assert len(lines) == 6
    assert {line["promise"] for line in lines} == {"none: seeded"}
    by_name = {line["mechanism"].split("(")[0]: line for line in lines}
    assert by_name["ClampMap"]["mean_error"] < 0.8 * by_name["GlobalMap"]["mean_error"]
    assert by_name["ClampMap"]["kendall"] > by_name["GlobalMap"]["kendall"] + 0.1
    assert json.loads(run(*arguments, cwd=tmp_path).stdout) == lines


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["demo", "--record", "0"], 2, "A record total must be a positive, finite number"),
        (["demo", "--epsilon", "1"], 2, "--epsilon goes with --data breast-cancer"),
        (["demo", "--mechanisms", "--record", "4"], 2, "--record is for the made-up people"),
        (["demo", "--mechanisms", "--epsilon", "-1"], 2, "epsilon must lie between"),
        (["demo", "--data", "breast-cancer", "--cells", "1"], 2, "L < R"),
        (["demo", "--cells", "many"], 2, "'--cells'"),
        (["dem"], 2, "dem"),
    ],
)
def test_bad_arguments_end_in_a_sentence_and_status_2(arguments, status, words, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "demo-out").exists()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return a report with made-up figures."""
    aligned = Alignment({"clinic": 408, "lab-<north>": 1_408}, 374, 1.6)
    plan = tuple(
        PlannedColumn(name, "Randomised response", 16, None, 1.3333333, (333, 334))
        for name in ("age", "a column with a <long> name", "region")
    )
    sent = (Sent("lab-<north>", 3, 374, 43_686, 4.0, plan),)
    auc = {"joined in the clear": 0.9977, "federated": 0.956, "own columns alone": 0.7257}
    found = Demo(
        "A clinic & a laboratory.",
        374,
        aligned,
        sent,
        4.0,
        9.3,
        auc,
        redrawn=(0.951, 0.962),
        made="now",
        version="1.0",
    )
    return write_report(found, tmp_path_factory.mktemp("demo"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_every_width_and_can_be_read_in_light_and_dark(report, width, scheme):
    with browsing() as browser:
        size = {"width": width, "height": 844}
        seen = browser.new_context(viewport=size, color_scheme=scheme).new_page()
        asked = []
        seen.on("request", lambda request: asked.append(request.url))
        seen.goto(report.as_uri())
        assert seen.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.evaluate(LOW_CONTRAST) == []
        assert in_first_screen(seen, ".record")
        assert in_first_screen(seen, ".facts dd")
        assert seen.locator(".facts dd").first.text_content() == "4"
        chart = seen.locator("svg.chart").bounding_box()
        assert chart["x"] + chart["width"] <= width
        assert "lab-<north>" in seen.locator("main").inner_text()
        varies = " ".join(seen.locator("#varies").inner_text().split())
        assert "gave 0.9510, 0.9620: from 0.951 to 0.962 over 3 draws" in varies
        assert asked == [report.as_uri()]
