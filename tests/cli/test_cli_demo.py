from __future__ import annotations

import json
import subprocess
import sys

import pytest


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
        "accuracy.png",
        "report.html",
    ]
    page = (tmp_path / "demo-out" / "report.html").read_text()
    assert "lab-north" in page
    assert f"trained on the {found['rows']} people that all know" in " ".join(page.split())
    assert "http" not in page.replace("data:image/png;base64", "")


def test_the_tour_prints_every_mechanism_and_draws_a_picture(tmp_path):
    done = run("demo", "--mechanisms", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("Clamp-map", "Global-map", "Adj-map", "Local-map", "Piecewise", "exact"):
        assert word in done.stdout
    picture = tmp_path / "demo-out" / "mechanisms.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in picture.parent.iterdir()] == ["mechanisms.png"]


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
