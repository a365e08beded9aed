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


def test_the_demo_prints_a_table_and_draws_a_picture(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("Clamp-map", "Global-map", "Adj-map", "Local-map", "Piecewise", "exact"):
        assert word in done.stdout
    picture = tmp_path / "demo-out" / "mechanisms.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in picture.parent.iterdir()) == ["mechanisms.png", "models.png"]
    assert "Pictures:" in done.stderr
    assert "diabetes" in done.stdout


def test_the_demo_speaks_json_and_says_when_it_is_seeded(tmp_path):
    done = run("demo", "--format", "json", "--seed", "7", cwd=tmp_path)
    report = json.loads(done.stdout)
    lines = report["mechanisms"]
    scores = {(s["data"], s["way"]): s["value"] for s in report["models"]}
    assert scores["breast cancer", "plain"] > scores["breast cancer", "without them"]
    assert scores["diabetes", "Clamp-map"] > scores["diabetes", "without them"] + 0.05
    assert len(lines) == 6
    assert {line["promise"] for line in lines} == {"none: seeded"}
    by_name = {line["mechanism"].split("(")[0]: line for line in lines}
    assert by_name["ClampMap"]["mean_error"] < 0.8 * by_name["GlobalMap"]["mean_error"]
    assert by_name["ClampMap"]["kendall"] > by_name["GlobalMap"]["kendall"] + 0.1
    again = run("demo", "--format", "json", "--seed", "7", cwd=tmp_path)
    assert json.loads(again.stdout)["mechanisms"] == lines


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
