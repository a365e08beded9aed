"""The machinery of the reproduction: labels, stored results, files and the report."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from opboost.errors import DataError, ParameterError
from opboost.grid import Domain
from opboost_lab.reproduce import MODULES, STATEMENTS, artefact
from opboost_lab.reproduce.artefacts import tab_op_prob_t
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.printed import OP_PROB_T
from opboost_lab.reproduce.reproduction import reproduce
from opboost_lab.reproduce.running import run_tasks
from opboost_lab.reproduce.task import Scope, Store, Task
from robustness.command_line import run
from tests.support.browser import opened
from tests.support.workers import in_time, kill_a_worker

ARTEFACTS = Path(importlib.import_module("opboost_lab.reproduce.artefacts").__file__).parent


def silent(done, total, what):
    pass


def touched(folder: str, name: str, seconds: float = 0.0):
    """Write a line to a file each time this measurement runs."""
    with open(Path(folder) / "runs", "a") as file:
        file.write(f"{name}\n")
    time.sleep(seconds)
    if name == "bad":
        raise ValueError("it broke")
    return {"name": name}


def runs(folder):
    return (folder / "runs").read_text().split()


def one(folder, label, names, seconds=0.0):
    def tasks(scope):
        return [Task.of(touched, folder=str(folder), name=n, seconds=seconds) for n in names]

    def show(scope, results):
        found = [results[t]["name"] for t in tasks(scope)]
        return Finding(
            "It is <fine>.",
            (Headline("a figure", 2.0, 1.0, 3.0),),
            (Panel("a & b", "x", "y", (Curve("c", (1.0, 2.0), (3.0, 4.0), (0.1, 0.2)),)),),
            (Grid("names", ("name", "length"), tuple((n, len(n)) for n in found)),),
        )

    return Artefact(label, f"Title of {label}", tasks, show)


def test_every_table_and_figure_of_the_paper_has_a_module():
    assert len(MODULES) == 18
    for label in MODULES | STATEMENTS:
        assert artefact(label).label == label
    files = {p.stem for p in ARTEFACTS.glob("*.py")}
    assert {*MODULES.values(), *STATEMENTS.values()} <= files


def test_labels_may_be_typed_as_people_type_them():
    assert artefact("FIG_distribution") is artefact("fig:distribution")
    with pytest.raises(ParameterError, match="There are: tab:dataset"):
        artefact("fig:nothing")


def test_the_papers_table_of_gammas_comes_back_digit_by_digit():
    for method, row in OP_PROB_T.items():
        ours = tab_op_prob_t.gammas(method)["as_printed"]
        assert [f"{v:.4f}" for v in ours] == [f"{v:.4f}" for v in row], method


@pytest.mark.parametrize("method", [Method("Global-map"), Method("Adj-map", theta=4, alpha=2.0)])
@pytest.mark.parametrize("epsilon", [0.08, 1.28])
def test_a_method_at_exact_level_spends_all_of_it_and_no_more(method, epsilon):
    exact = Method(method.family, method.theta, method.alpha, at="exact")
    spent = exact.mechanism(Domain(1, 10), epsilon).exact_epsilon()
    assert epsilon * (1 - 1e-6) <= spent <= epsilon
    assert method.mechanism(Domain(1, 10), epsilon).exact_epsilon() != pytest.approx(epsilon, 1e-3)


def test_a_method_at_the_total_promises_for_any_pair_what_clamp_map_promises_for_the_ends():
    total = Method("Piecewise", at="total").mechanism(Domain(1, 10), 0.5).guarantee().total
    assert total == Method("Clamp-map").mechanism(Domain(1, 10), 0.5).guarantee().total


def test_what_was_measured_is_not_measured_again(tmp_path):
    store = Store(tmp_path / "cache")
    tasks = [Task.of(touched, folder=str(tmp_path), name=n) for n in ("a", "b", "a")]
    first = run_tasks(tasks, store, silent)
    assert sorted(runs(tmp_path)) == ["a", "b"]
    again = run_tasks([*tasks, Task.of(touched, folder=str(tmp_path), name="c")], store, silent)
    assert sorted(runs(tmp_path)) == ["a", "b", "c"]
    assert again.done.items() >= first.done.items()


def test_a_damaged_result_is_measured_again(tmp_path):
    store, task = Store(tmp_path / "cache"), Task.of(touched, folder=str(tmp_path), name="a")
    run_tasks([task], store, silent)
    next((tmp_path / "cache").glob("*.json")).write_text('{"result": 1')
    assert run_tasks([task], store, silent).done[task] == {"name": "a"}
    assert runs(tmp_path) == ["a", "a"]


def test_one_artefact_that_fails_does_not_stop_the_others(tmp_path):
    kinds = [one(tmp_path, "good", ["a"]), one(tmp_path, "poor", ["bad", "b"])]
    found = reproduce(kinds, Scope(), tmp_path / "out", silent)
    assert [s.artefact.label for s in found.failed] == ["poor"]
    assert "it broke" in found.shown[1].problem
    page = found.report.read_text()
    assert "FAILED" in page
    assert "It is &lt;fine&gt;." in page


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_a_worker_that_is_killed_while_others_start_does_not_hold_up_the_end(
    tmp_path, monkeypatch, after
):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    store, killed = Store(tmp_path / "cache"), []
    tasks = [Task.of(touched, folder=str(tmp_path), name=f"n{i}", seconds=0.2) for i in range(6)]
    threading.Thread(target=kill_a_worker, args=(after, killed), daemon=True).start()
    with pytest.raises(OSError, match=r"was killed.*what was measured before is not run again"):
        in_time(lambda: run_tasks(tasks, store, silent))
    assert killed
    kept = sum(store.get(task) is not None for task in tasks)
    before = len(runs(tmp_path)) if (tmp_path / "runs").exists() else 0
    assert set(run_tasks(tasks, store, silent).done) == set(tasks)
    assert len(runs(tmp_path)) - before == len(tasks) - kept


def test_the_page_begins_with_how_many_statements_hold(tmp_path):
    kinds = [one(tmp_path, name, [name]) for name in ("all", "most", "few", "open")]
    said = {"all": Said("x", 9, 10), "most": Said("x", 5, 10), "few": Said("x", 4, 10)}

    def shows(kind):
        def show(scope, results):
            return replace(kind.show(scope, results), said=said.get(kind.label))

        return replace(kind, show=show)

    reproduce([shows(k) for k in kinds], Scope(), tmp_path / "out", silent)
    page = (tmp_path / "out" / "reproduction.md").read_text().splitlines()
    assert page[2].startswith("This page is for researchers")
    assert page[2].endswith("We tested 3 of the paper's statements: 1 hold here in at")
    assert page[3] == "least 90% of the cases tried, 1 in at least half, and 1 in fewer."
    assert page[5].endswith(": `most` (5 of 10).")
    assert page[6].endswith(": `few` (4 of 10).")


def test_a_report_on_what_is_stored_measures_nothing(tmp_path):
    done, missing = one(tmp_path, "done", ["a"]), one(tmp_path, "missing", ["b"])
    reproduce([done], Scope(), tmp_path / "out", silent)
    found = reproduce([done, missing], Scope(), tmp_path / "out", silent, kept=True)
    assert runs(tmp_path) == ["a"]
    assert [s.artefact.label for s in found.failed] == ["missing"]
    assert "**Not measured**: `missing`." in (tmp_path / "out" / "reproduction.md").read_text()


def test_a_file_of_results_serves_another_folder(tmp_path):
    """In the other folder, times are measured again, and so is a task with another key."""
    kind, file = one(tmp_path, "done", ["a", "b"]), tmp_path / "results.xz"
    timed = Task.of(touched, alone=True, folder=str(tmp_path), name="timed")
    both = replace(kind, tasks=lambda scope: [*kind.tasks(scope), timed])
    reproduce([both], Scope(), tmp_path / "here", silent, results=file)
    written = file.read_bytes()
    reproduce([both], Scope(), tmp_path / "there", silent, results=file)
    assert sorted(runs(tmp_path)) == ["a", "b", "timed", "timed"]
    assert file.read_bytes() == written
    other = one(tmp_path, "other", ["c"])
    reproduce([other], Scope(), tmp_path / "third", silent, results=file)
    reproduce([kind, other], Scope(), tmp_path / "fourth", silent, results=file)
    assert sorted(runs(tmp_path)) == ["a", "b", "c", "timed", "timed"]


def test_a_damaged_file_of_results_is_refused_by_name(tmp_path):
    file = tmp_path / "results.xz"
    file.write_bytes(b"no results")
    with pytest.raises(DataError, match=r"results\.xz holds no results of a reproduction"):
        reproduce([one(tmp_path, "a", ["a"])], Scope(), tmp_path / "out", silent, results=file)
    assert not (tmp_path / "runs").exists()


def test_files_hold_every_point_and_cell(tmp_path):
    found = reproduce([one(tmp_path, "fig:one", ["a"])], Scope(), tmp_path / "out", silent)
    folder = tmp_path / "out" / "fig-one"
    assert {p.name for p in folder.iterdir()} == {
        "data.csv", "data.json", "figure.png", "figure.svg",
    }  # fmt: skip
    lines = list(csv.DictReader((folder / "data.csv").read_text().splitlines()))
    assert [line["value"] for line in lines] == ["3.0", "4.0", "1"]
    assert json.loads((folder / "data.json").read_text())["headlines"][0]["best"] == 3.0
    assert found.shown[0].finding.headlines[0].ratio == 0.5


def test_a_killed_run_is_resumed_where_it_stopped(tmp_path):
    """Eight measurements of half a second run on worker processes, which are killed midway."""
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.lab.test_reproduce import one, silent\n"
        "from opboost_lab.reproduce.reproduction import reproduce\n"
        "from opboost_lab.reproduce.task import Scope\n"
        "if __name__ == '__main__':\n"
        "    folder = Path(sys.argv[1])\n"
        "    made = one(folder, 'x', [f'n{i}' for i in range(8)], 0.5)\n"
        "    reproduce([made], Scope(), folder / 'out', silent)\n"
    )
    root = Path(__file__).parents[2]
    script = tmp_path / "program.py"
    script.write_text(program)
    command = [sys.executable, str(script), str(tmp_path)]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    cache = tmp_path / "out" / "cache"
    started = subprocess.Popen(command, env=environment, start_new_session=True)
    end = time.monotonic() + 60
    while len(list(cache.glob("*.json")) if cache.exists() else []) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    kept = len(list(cache.glob("*.json")))
    assert kept < 8
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert len(list(cache.glob("[!.]*.json"))) == 8
    assert len(runs(tmp_path)) <= 8 + 2 * (os.cpu_count() or 1)
    assert len(set(runs(tmp_path))) == 8


def test_a_browser_shows_the_report_without_asking_anybody(tmp_path):
    out = tmp_path / "out"
    status, said, _ = run("reproduce", "fig:distribution", "tab:op-prob-t", "--quick", "--out", out)
    assert status == 0
    assert "80 of 80" in said
    report = out / "report.html"
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", report.read_text())
    page = opened(report, "--dump-dom")
    assert "Where one value goes" in page
    picture = tmp_path / "page.png"
    opened(report, f"--screenshot={picture}", "--window-size=1000,1600")
    assert picture.stat().st_size > 50_000


def test_wrong_arguments_say_what_is_right(tmp_path):
    status, _, said = run("reproduce", "fig:nothing", "--out", tmp_path)
    assert status == 2
    assert "fig:adult_class" in said
    status, _, said = run("reproduce", "tab:op-prob-t", "--table", "x.csv", "--out", tmp_path)
    assert status == 2
    assert "--label" in said
    assert "tab:comp_perform" in run("reproduce", "list")[1].split()
    lines = {
        line["label"]: line for line in json.loads(run("reproduce", "list", "--format", "json")[1])
    }
    assert len(lines) == len(MODULES | STATEMENTS)
    assert lines["fig:adult_class"]["data"] == ["Adult"]
    assert all(line["title"] and line["quick_seconds"] >= 0 for line in lines.values())
