"""The wheel: the same bytes wherever and whenever it is built, and nothing but the package."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = ["make", "--old-file", f"{sys.prefix}/.ready", f"VENV={sys.prefix}", "wheel"]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="a build is of a commit, and this is no git repository"
)


def build(folder: Path, umask: int, **environment: str) -> Path:
    """The last commit, cloned and built; pytest's own umask stays as it is."""
    subprocess.run(["git", "clone", "-q", ROOT, folder], umask=umask, check=True)
    (folder / "src/opboost/stray.py").write_text("secret = 'not committed'\n")
    made = subprocess.run(
        MAKE,
        cwd=folder,
        umask=umask,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "dist"


def test_two_builds_of_a_commit_are_the_same_bytes_and_hold_the_package_alone(tmp_path):
    one = build(tmp_path / "opboost", 0o022, TZ="UTC", LC_ALL="C")
    time.sleep(2.1)  # zip counts in steps of two seconds
    (tmp_path / "deeper").mkdir()
    environment = {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"}
    builds = one, build(tmp_path / "deeper" / "copy of opboost", 0o077, **environment)
    names = [sorted(path.name for path in folder.glob("opboost-*")) for folder in builds]
    assert names[0] == names[1]
    assert [name.rpartition(".")[2] for name in names[0]] == ["whl", "gz"]
    for name in names[0]:
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in builds]
        assert digests[0] == digests[1], name
        assert f"{digests[0]}  {name}\n" in (one / "SHA256SUMS").read_text()
    check_wheel(next(one.glob("*.whl")))
    check_sdist(next(one.glob("*.tar.gz")))


def git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def committed(folder: str) -> set[str]:
    return set(git("ls-tree", "-r", "--name-only", "HEAD", folder).splitlines())


def check_wheel(path: Path) -> None:
    """It is the committed package, its licence and nothing else."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = next(name for name in names if name.endswith(".dist-info/METADATA")).split("/")[0]
        assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"opboost = opboost.cli:main" in wheel.read(f"{info}/entry_points.txt")
        made = time.gmtime(int(git("log", "-1", "--format=%ct")) // 2 * 2)
        assert {entry.date_time for entry in wheel.infolist()} == {tuple(made)[:6]}
        assert {entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()} == {0o644}
    package = {name for name in names if not name.startswith(info)}
    assert package == {name.removeprefix("src/") for name in committed("src/opboost")}
    assert "opboost/py.typed" in package
    assert {name.removeprefix(f"{info}/") for name in names - package} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
    }


def check_sdist(path: Path) -> None:
    """It tells neither who built it nor where, and builds the wheel."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
    assert {one.mode for one in members if one.isfile()} == {0o644}
    inside = {one.name.split("/", 1)[1] for one in members}
    extra = {".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"}
    assert inside == committed("src/opboost") | extra | {"PKG-INFO", "pyproject.toml"}
