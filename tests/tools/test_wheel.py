"""The wheels: the same bytes wherever they are built, one package each, and what they install."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from opboost import __version__

ROOT = Path(__file__).parents[2]
MAKE = ["make", "--old-file", f"{sys.prefix}/.ready", f"VENV={sys.prefix}", "wheel"]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="a build needs a commit, and this is not a git repository"
)


def build(folder: Path, umask: int, **environment: str) -> Path:
    """Clone and build the last commit, without changing pytest's own umask."""
    subprocess.run(["git", "clone", "-q", ROOT, folder], umask=umask, check=True)
    (folder / "src/opboost/stray.py").write_text("secret = 'not committed'\n")
    made = subprocess.run(
        MAKE,
        cwd=folder,
        umask=umask,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the last commit in two places with different settings; return both folders."""
    place = tmp_path_factory.mktemp("wheel")
    one = build(place / "opboost", 0o022, TZ="UTC", LC_ALL="C")
    time.sleep(2.1)  # zip counts in steps of two seconds
    (place / "deeper").mkdir()
    environment = {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"}
    return one, build(place / "deeper" / "copy of opboost", 0o077, **environment)


def test_two_builds_of_a_commit_are_the_same_bytes(built):
    names = [sorted(path.name for path in folder.glob("opboost*")) for folder in built]
    assert names[0] == names[1]
    kinds = [re.sub(r"-.*(?=\.(whl|gz)$)", "", name) for name in names[0]]
    assert kinds == ["opboost.whl", "opboost.gz", "opboost_lab.whl", "opboost_lab.gz"]
    for name in names[0]:
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in built]
        assert digests[0] == digests[1], name
        assert f"{digests[0]}  {name}\n" in (built[0] / "SHA256SUMS").read_text()


def test_the_product_is_its_package_alone(built):
    wheel = next(built[0].glob("opboost-*.whl"))
    package = check_wheel(wheel, "src/opboost", b"opboost = opboost.cli:main")
    assert "opboost/py.typed" in package
    experiments = re.compile(r"reproduc|bench|experiment|opboost_lab|claims|conversions", re.I)
    assert [name for name in package if experiments.search(name)] == []
    check_sdist(
        next(built[0].glob("opboost-*.tar.gz")), "src/opboost", {"CHANGELOG.md", "SECURITY.md"}
    )


def test_the_laboratory_is_its_package_alone(built):
    wheel = next(built[0].glob("opboost_lab-*.whl"))
    check_wheel(wheel, "lab/src/opboost_lab", b"bench = opboost_lab.cli.bench_verb:bench")
    check_sdist(next(built[0].glob("opboost_lab-*.tar.gz")), "lab/src/opboost_lab", set())


def test_the_laboratory_goes_with_the_product_of_its_version():
    product, lab = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        for folder in (".", "lab")
    )
    assert lab["version"] == product["version"] == __version__
    assert f"opboost[all]=={__version__}" in lab["dependencies"]


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Install the product with its boosters in a new environment; return its command."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True, timeout=120)
    pip = [place / "venv/bin/pip", "--disable-pip-version-check"]
    probe = [*pip, "download", "--no-deps", "--retries", "0", "--timeout", "20"]
    asked = [*probe, "--dest", place, "packaging"]
    if subprocess.run(asked, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("the package index cannot be reached, and an installation needs it")
    wheel = next(built[0].glob("opboost-*.whl"))
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", "--only-binary=:all:", f"{wheel}[boost]"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place / "venv/bin/opboost"


def started(command, *words, cwd):
    """Run the installed command, without the modules of this copy of the project."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [command, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=300,
        check=False,
    )


def test_the_installed_product_has_no_laboratory_no_server_and_no_plots(installed):
    (packages,) = installed.parents[1].glob("lib/python*/site-packages")
    there = {path.name for path in packages.iterdir()}
    absent = {"opboost_lab", "matplotlib", "jinja2", "markupsafe", "starlette", "uvicorn", "dask"}
    assert not absent & there
    assert {"opboost", "xgboost", "lightgbm"} <= there


def test_the_demo_runs_where_the_product_is_installed(installed, tmp_path):
    done = started(installed, "demo", "--data", "breast-cancer", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["auc"]["federated"] > 0.8
    made = sorted(path.name for path in (tmp_path / "demo-out").iterdir())
    assert made == ["accuracy.svg", "report.html"]


@pytest.mark.parametrize(
    ("words", "install"),
    [
        (["bench", "all"], "pip install opboost-lab"),
        (["reproduce", "all", "--quick"], "pip install opboost-lab"),
        (["data", "list"], "pip install opboost-lab"),
        (["explore", "--no-open"], "pip install 'opboost[explore]'"),
    ],
)
def test_what_is_not_installed_says_how_to_install_it(installed, tmp_path, words, install):
    done = started(installed, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert install in said


def git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def committed(folder: str) -> set[str]:
    return set(git("ls-tree", "-r", "--name-only", "HEAD", folder).splitlines())


def check_wheel(path: Path, folder: str, entry: bytes) -> set[str]:
    """Check that a wheel is the committed package and its licence; return the package's files."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = next(name for name in names if name.endswith(".dist-info/METADATA")).split("/")[0]
        assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert entry in wheel.read(f"{info}/entry_points.txt")
        made = time.gmtime(int(git("log", "-1", "--format=%ct")) // 2 * 2)
        assert {entry.date_time for entry in wheel.infolist()} == {tuple(made)[:6]}
        assert {entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()} == {0o644}
    package = {name for name in names if not name.startswith(info)}
    above = folder.rpartition("/")[0]
    assert package == {name.removeprefix(f"{above}/") for name in committed(folder)}
    assert {name.removeprefix(f"{info}/") for name in names - package} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    return package


def check_sdist(path: Path, folder: str, more: set[str]) -> None:
    """Check that an sdist names no builder and holds the package with its build files."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
    assert {one.mode for one in members if one.isfile()} == {0o644}
    inside = {one.name.split("/", 1)[1] for one in members}
    extra = {"LICENSE", "README.md", "PKG-INFO", "pyproject.toml"} | more
    package = {name.removeprefix("lab/") for name in committed(folder)}
    assert inside - {".gitignore"} == package | extra
