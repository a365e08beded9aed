"""Without an extra: one sentence with the command that installs it, and exit status 2."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

from opboost.demo.tutorial_files import write_tutorial
from opboost.transport.shared.development_certificates import new_kit
from robustness.prefork_server import PreforkServer

SAVED = Path(__file__).parents[1] / "golden/0.1.0/estimators"
EXTRAS = {
    "boost": ("xgboost", "lightgbm", "skops"),
    "dask": ("dask", "distributed"),
    "explore": ("jinja2", "markupsafe", "starlette", "uvicorn"),
    "onnx": ("onnx",),
    "plots": ("matplotlib",),
    "score": ("starlette", "uvicorn"),
}
CONFIG = """
[columns.age]
bounds = [0, 100]
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[align]
id = "id"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
"""


@lru_cache(maxsize=1)
def libraries():
    """Return a server process that has loaded everything but extras and OpBoost itself."""
    return PreforkServer("tests.support.preloaded_libraries")


def without(extras, *words, cwd):
    """Run the command line in a process that cannot import the packages of these extras."""
    packages = [package for extra in extras for package in EXTRAS[extra]]
    with TemporaryDirectory() as folder:
        out, said = Path(folder) / "out", Path(folder) / "said"
        process = libraries().start([*map(str, words)], said, cwd, out, packages)
        process.wait(240)
        return CompletedProcess(words, process.returncode, out.read_text(), said.read_text())


@pytest.fixture
def home(tmp_path):
    (tmp_path / "b.toml").write_text(CONFIG + '[table]\npublic = ["paid"]\n')
    (tmp_path / "label.toml").write_text(CONFIG)
    (tmp_path / "people.csv").write_text(
        "id,age,paid\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(30))
    )
    return tmp_path


@pytest.mark.parametrize(
    ("extra", "words", "who"),
    [
        ("explore", ["explore", "--no-open"], "`opboost explore`"),
        ("score", ["score", SAVED / "xgboost.opboost"], "`opboost score`"),
        ("plots", ["certify", "-c", "b.toml", "--png", "loss.png"], "A picture"),
        ("boost", ["demo"], "`opboost demo`"),
        ("boost", ["predict", SAVED / "xgboost.opboost", "people.csv"], "This model"),
        ("boost", ["predict", SAVED / "gbdt.opboost", "people.csv"], "This model"),
        (
            "boost",
            ["train", "people.csv", "-c", "label.toml", "--label", "paid", "-o", "m.opboost"],
            "booster='xgboost'",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence_and_a_usage_error(home, extra, words, who):
    done = without([extra], *words, cwd=home)
    assert done.returncode == 2, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"opboost: {who} needs the package ")
    assert said.endswith(f", which is not installed: run pip install 'opboost[{extra}]'.")
    assert sorted(p.name for p in home.iterdir()) == ["b.toml", "label.toml", "people.csv"]


@pytest.mark.parametrize(
    ("kind", "who"),
    [
        ("xgboost", "booster='xgboost' needs the package xgboost"),
        ("lightgbm", "booster='lightgbm' needs the package lightgbm"),
        ("gbdt", "A file of this model needs the package skops"),
    ],
)
@pytest.mark.parametrize("words", [["serve"], ["bundle", "align", "--to", "out"]], ids=" ".join)
def test_a_label_party_learns_before_it_listens_that_a_booster_is_missing(
    tmp_path, words, kind, who
):
    write_tutorial(tmp_path / "credit")
    for name in ("bank", "shop"):
        new_kit(name, tmp_path / "credit/certs")
    bank = tmp_path / "credit/bank"
    text = (bank / "bank.toml").read_text().replace(":8815", ":0")
    start, _ = text.split("[booster]")
    (bank / "bank.toml").write_text(f'{start}[booster]\nkind = "{kind}"\n')
    done = without(EXTRAS, *words, "-c", "bank.toml", cwd=bank)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (said,) = done.stderr.splitlines()
    assert said == f"opboost: {who}, which is not installed: run pip install 'opboost[boost]'."


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["tutorial", "credit"],
        ["demo", "--write-tables", "tables"],
        ["certify", "-c", "b.toml"],
        ["desensitize", "people.csv", "-c", "b.toml", "-o", "out.csv"],
        ["ledger", "report", "-c", "b.toml", "-o", "ledger.html"],
        ["demo", "--mechanisms"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_other_verbs_need_no_extra(home, words):
    if words[:2] == ["ledger", "report"]:
        release = ["desensitize", "people.csv", "-c", "b.toml", "-o", "out.csv"]
        assert without(EXTRAS, *release, cwd=home).returncode == 0
    done = without(EXTRAS, *words, cwd=home)
    assert done.returncode == 0, done.stderr
