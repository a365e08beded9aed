"""The label party notices that it cannot train before any party connects."""

from __future__ import annotations

import json
import os
import socket
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY
from opboost.transport.label.label_checks import check_folder
from robustness.command_line import run
from robustness.party_processes import DATA, NAMES, ROWS, columns, federation

WITHOUT_XGBOOST = """\
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "xgboost":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())
"""


def never_began(made):
    return not list((made.folder / LABEL_PARTY).glob("state/*/job.json"))


def test_without_its_booster_nobody_serves_and_nobody_is_let_in(tmp_path):
    made = federation(tmp_path, ("shop",))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITHOUT_XGBOOST)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    serve = made.command(LABEL_PARTY)
    start, config = serve[: serve.index("serve")], str(made.config(LABEL_PARTY))
    for verb in (
        serve[serve.index("serve") :],
        ["doctor", "-c", config, "--format", "json"],
        ["bundle", "align", "-c", config, "--to", str(tmp_path / "out")],
    ):
        ended = subprocess.run(
            [*start, *verb],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            timeout=120,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 2, said
        assert "needs the package xgboost, which is not installed" in said
        assert "opboost[boost]" in said
        assert ": serving " not in said
        assert never_began(made)


def with_label(made, values):
    table = columns(NAMES[:2]).append_column("ill", pa.array(values))
    pa.parquet.write_table(table, made.folder / LABEL_PARTY / "table.parquet")


def changed(made, old, new):
    file = made.config(LABEL_PARTY)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


HARMS = {
    "no such objective": (
        lambda made: changed(made, "params = {", 'params = { objective = "no-such", '),
        2, "The booster refused"),
    "a depth that is no number": (
        lambda made: changed(made, "max_depth = 3",
                             'max_depth = "deep"'),
        2, "The booster refused"),
    "external memory": (
        lambda made: changed(made, "params = {", 'memory = "external"\nparams = { booster = "x", '),
        2, "The booster refused"),
    "a label that is NaN": (
        lambda made: with_label(made, np.where(np.arange(ROWS) == 3, np.nan, DATA.target)),
        5, "'ill' is the label and holds NaN"),
    "a label with gaps": (
        lambda made: with_label(made, [None, *DATA.target[1:].tolist()]),
        5, "'ill' is the label and has missing values"),
    "no label column": (
        lambda made: changed(made, 'column = "ill"', 'column = "well"'), 5, "'well'"),
    "a model inside a file": (
        lambda made: changed(made, '[label]', '[label]\nmodel = "table.parquet/model.opboost"'),
        2, "the folder of the model"),
    "a model that is a folder": (
        lambda made: changed(made, '[label]', '[label]\nmodel = "../certs"'), 2, "is a folder"),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_what_cannot_be_trained_is_refused_before_a_job_begins(tmp_path, harm):
    made = federation(tmp_path, ("shop",))
    do, status, words = HARMS[harm]
    config = made.config(LABEL_PARTY)
    assert run("doctor", "-c", config)[0] == 0
    do(made)
    for verb in (["serve", "-c", config], ["bundle", "align", "-c", config, "--to", tmp_path]):
        ended, _, said = run(*verb)
        assert (ended, words in said) == (status, True), said
        assert never_began(made)
    ended, out, _ = run("doctor", "-c", config, "--format", "json")
    assert ended == status
    assert any(words in f["next_step"] for f in json.loads(out)["findings"])


@pytest.mark.parametrize("kind", ["lightgbm", "gbdt", "hist-gbdt"])
def test_every_booster_trains_one_tree_of_many_classes(tmp_path, kind):
    made = federation(tmp_path, ("shop",), booster={})
    changed(made, 'kind = "xgboost"', f'kind = "{kind}"')
    with_label(made, [f"class {i % 5}" for i in range(ROWS)])
    assert run("doctor", "-c", made.config(LABEL_PARTY))[0] == 0


def test_numbers_are_rehearsed_with_labels_that_an_objective_takes(tmp_path):
    made = federation(tmp_path, ("shop",))
    with_label(made, 1.0 + np.arange(ROWS))
    changed(made, "params = {", 'params = { objective = "reg:gamma", ')
    assert run("doctor", "-c", made.config(LABEL_PARTY))[0] == 0
    with_label(made, -1.0 - np.arange(ROWS))
    assert run("doctor", "-c", made.config(LABEL_PARTY))[0] == 2


def test_the_wrong_verb_is_answered_with_the_right_one(tmp_path):
    made = federation(tmp_path, ("shop",))
    status, _, words = run("serve", "-c", made.config("shop"))
    assert status == 2
    assert "shop.toml is the file of 'shop', a feature party" in words
    assert "Run: opboost join -c shop.toml" in words
    assert "Leave it out" not in words
    status, _, words = run("join", "-c", made.config(LABEL_PARTY))
    assert status == 2
    assert "Run: opboost serve -c bank.toml" in words


def test_a_port_in_use_is_named_with_what_to_do(tmp_path):
    made = federation(tmp_path, ("shop",))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        changed(made, "127.0.0.1:0", f"127.0.0.1:{port}")
        ended = subprocess.run(
            made.command(LABEL_PARTY), capture_output=True, text=True, timeout=120
        )
    assert ended.returncode == 4
    assert f"Port {port} of 127.0.0.1 is in use" in ended.stderr
    assert "listen under [party]" in ended.stderr


def test_a_disk_without_room_for_the_table_is_refused(tmp_path):
    check_folder(tmp_path / "state", "the state folder", 1)
    with pytest.raises(
        op.OpBoostError, match=r"the state folder has .* MB free.*Free some space there"
    ):
        check_folder(tmp_path / "state", "the state folder", 10**18)
    assert not list(tmp_path.iterdir())
