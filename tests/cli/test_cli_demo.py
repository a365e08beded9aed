from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from opboost.demo.demo_report import write_report
from opboost.demo.three_parties import Alignment, Demo, Sent
from tests.explorer.test_explorer_page import LOW_CONTRAST
from tests.support.pages import browsing


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "opboost", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=240,
        check=False,
    )


def test_the_demo_is_three_processes_and_one_model(tmp_path):
    done = run("demo", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["aligned"]["people"] == {"clinic": 408, "lab-north": 408, "lab-south": 408}
    assert 372 <= found["rows"] == found["aligned"]["common"] < 408
    assert [s["party"] for s in found["sent"]] == ["lab-north", "lab-south"]
    for sent in found["sent"]:
        assert 0 < sent["bytes"] < 20_000 + 2 * 33 * 408
        assert sent["per_person"] == pytest.approx(9 * 0.64 * sent["columns"])
    assert found["per_person"] == pytest.approx(5 * 9 * 0.64)
    assert found["auc"]["federated"] > found["auc"]["own columns alone"] + 0.1
    assert sorted(p.name for p in (tmp_path / "demo-out").iterdir()) == [
        "accuracy.svg",
        "report.html",
    ]
    page = (tmp_path / "demo-out" / "report.html").read_text()
    assert "lab-north" in page
    assert f"trained on the {found['rows']} people that all know" in " ".join(page.split())
    assert '<svg viewBox="0 0 480' in page
    assert "http" not in page


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
        (["demo", "--epsilon", "-1"], 2, "epsilon must lie between"),
        (["demo", "--cells", "1"], 2, "L < R"),
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
    """A report of made-up figures."""
    aligned = Alignment({"clinic": 408, "lab-<north>": 1_408}, 374, 1.6)
    sent = (Sent("lab-<north>", 3, 374, 43_686, 0.64, 17.28),)
    auc = {"joined in the clear": 0.9977, "federated": 0.956, "own columns alone": 0.7257}
    found = Demo(374, aligned, sent, 17.28, 9.3, auc)
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
        chart = seen.locator("svg.chart").bounding_box()
        assert chart["x"] + chart["width"] <= width
        assert "lab-<north>" in seen.locator("main").inner_text()
        assert asked == [report.as_uri()]
