"""Who may read the ledger's files, and what happens if the ledger or its witness is missing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ConfigError, PrivacyError
from opboost.ledger import chain_witness
from opboost.ledger.verify_ledger import verify
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import federation, joined, serving
from tests.support.ledger import opened, release, table
from tests.support.parties import tree

CONFIG = """\
[align]
id = "id"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [0, 100]
"""


def modes(folder):
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in [folder, *folder.rglob("*")]
    }


RELEASED = """
    import os, sys
    os.umask(int(sys.argv[2]))
    from pathlib import Path
    from tests.support.ledger import opened, release, table
    from tests.ledger.test_ledger_modes import modes
    home = Path(sys.argv[1])
    with opened(home) as ledger:
        release(ledger, table(50))
        release(ledger, table(60), job="2")
        print({"ledger": modes(home / "ledger"), "keys": modes(home / "keys")})
"""


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_closed_to_others_whatever_the_umask(tmp_path, umask):
    """Check while the ledger is open, so that SQLite's journal is included."""
    code = [sys.executable, "-c", textwrap.dedent(RELEASED), tmp_path, str(umask)]
    said = subprocess.run(code, capture_output=True, text=True, check=False, timeout=120)
    assert said.returncode == 0, said.stderr
    found = eval(said.stdout)
    ledger = {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "length", "lock"}
    assert {"runs", "runs/000001", "runs/000003"} | ledger <= set(found["ledger"])
    assert {"ledger.key", "ledger.key.witness"} < set(found["keys"])
    folders = {".", "runs"}
    for name, mode in [*found["ledger"].items(), *found["keys"].items()]:
        assert mode == (0o700 if name in folders else 0o600), name


def test_folders_and_files_that_were_open_to_others_are_closed(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, table(50))
    for path in [tmp_path / "ledger", *(tmp_path / "ledger").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    with opened(tmp_path) as ledger:
        release(ledger, table(60), job="2")
        found = modes(tmp_path / "ledger")
    assert {found.pop("."), found.pop("runs")} == {0o700}
    assert set(found.values()) == {0o600}


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text("id,age\n" + "".join(f"p{n},{n}\n" for n in range(50)))
    (tmp_path / "b.toml").write_text(CONFIG)
    return tmp_path


def desensitized(home, name, *more):
    command = ["desensitize", home / "people.csv", "-c", home / "b.toml", "-o", home / name]
    return run(*command, *more)


def gone(home):
    """The ledger's folder is missing."""
    shutil.rmtree(home / "ledger")


def unmounted(home):
    """The folder exists but is empty, like a mount point without its volume."""
    gone(home)
    (home / "ledger").mkdir(mode=0o755)


@pytest.mark.parametrize("lost", [gone, unmounted])
@pytest.mark.parametrize("witnessed", [True, False])
def test_a_ledger_that_is_gone_is_not_begun_anew(people, lost, witnessed):
    assert desensitized(people, "1.csv")[0] == 0
    lost(people)
    if not witnessed:
        chain_witness.beside(people / "keys/ledger.key").unlink()
    before = tree(people)
    status, _, words = desensitized(people, "2.csv")
    assert status == 3
    assert "a ledger was kept here" in words
    assert "--new-ledger" in words
    assert tree(people) == before
    for verb in ("show", "verify", "export"):
        status, _, words = run("ledger", verb, "-c", people / "b.toml")
        assert status == 3
        assert "is its volume mounted?" in words
    assert tree(people) == before
    assert desensitized(people, "2.csv", "--new-ledger")[0] == 0
    shown = json.loads(run("ledger", "show", "-c", people / "b.toml", "--format", "json")[1])
    assert [line["new_cells"] for line in shown["releases"]] == [50]
    status, _, words = desensitized(people, "3.csv", "--new-ledger")
    assert status == 2
    assert "There is a ledger" in words
    assert not (people / "3.csv").exists()


def test_a_mount_point_is_left_as_it_is(people):
    assert desensitized(people, "1.csv")[0] == 0
    unmounted(people)
    assert desensitized(people, "2.csv")[0] == 3
    assert modes(people / "ledger") == {".": 0o755}


def test_where_neither_ledger_nor_key_are_there_is_no_ledger_yet(people):
    status, _, words = run("ledger", "show", "-c", people / "b.toml")
    assert status == 2
    assert "There is no ledger" in words
    assert not (people / "ledger").exists()


def test_the_doctor_warns_of_a_key_without_its_ledger(people):
    assert desensitized(people, "1.csv")[0] == 0
    assert _ledgers_key(people)["state"] == "ok"
    gone(people)
    found = _ledgers_key(people)
    assert found["state"] == "warning"
    assert "is its volume mounted?" in found["next_step"]
    assert not (people / "ledger").exists()


def _ledgers_key(home):
    said = json.loads(run("doctor", "-c", home / "b.toml", "--format", "json")[1])
    return next(f for f in said["findings"] if f["what"] == "ledger's key")


def test_a_party_that_joins_is_refused_until_it_begins_a_new_ledger(tmp_path):
    made = federation(tmp_path, ("shop",))
    home, config = tmp_path / "shop", made.config("shop")
    with opened_by(config):
        pass
    shutil.rmtree(home / "ledger")
    refused = run("join", "-c", config, "--connect", "127.0.0.1:9")
    assert refused[0] == 3
    assert "--new-ledger" in refused[2]
    assert not (home / "ledger").exists()
    with serving(made) as (process, address):
        (manifest,) = joined(made, address, "--new-ledger")
        process.communicate(timeout=60)
    assert manifest["phase"] == "done"
    with opened_by(config) as ledger:
        assert not verify(ledger)


def opened_by(config):
    from opboost.ledger.open_ledger import declared_section, open_ledger

    return open_ledger(declared_section(config))


@pytest.mark.parametrize("align", ["psi", "given"])
def test_a_party_of_bundles_is_refused_until_it_begins_a_new_ledger(tmp_path, align):
    office = Office(federation(tmp_path, ("shop",), align=align))
    config = office.made.config("shop")
    with opened_by(config):
        pass
    shutil.rmtree(tmp_path / "shop" / "ledger")
    sent = office.begun()["shop"]
    verb = "align" if align == "psi" else "export"
    command = ["bundle", verb, "-c", config, sent, "--to", office.out("shop")]
    before = tree(tmp_path)
    status, _, words = run(*command)
    assert status == 3
    assert "--new-ledger" in words
    assert set(tree(tmp_path)) - set(before) <= {"shop/state", "shop/state/lock"}
    assert run(*command, "--new-ledger")[0] == 0
    assert (tmp_path / "shop" / "ledger").is_dir()
    status, _, words = run(
        "bundle", "align", "-c", office.made.config(LABEL_PARTY), "--to", tmp_path, "--new-ledger"
    )
    assert status == 2
    assert "the label party has no ledger" in words


@contextlib.contextmanager
def as_somebody():
    """Run the block as another user than root, who may write anywhere."""
    if os.getuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only():
    """Yield a home whose key is in a folder that its user may not write to."""
    home = Path(tempfile.mkdtemp())
    with opened(home) as ledger:
        release(ledger, table(50))
    chain_witness.beside(home / "keys/ledger.key").unlink()
    (home / "keys").chmod(0o555)
    if not os.getuid():
        for path in [home, *home.rglob("*")]:
            if path.name != "keys":
                os.chown(path, 65534, -1)
    yield home
    (home / "keys").chmod(0o755)
    shutil.rmtree(home)


def test_a_key_on_a_read_only_volume_has_no_witness_and_releases_go_on(read_only):
    with as_somebody():
        with pytest.raises(PermissionError):
            (read_only / "keys/note").touch()
        with opened(read_only) as ledger:
            _, made = release(ledger, table(60), job="2")
            assert (made.new_cells, made.old_cells) == (10, 50)
            assert not verify(ledger)
        assert not chain_witness.beside(read_only / "keys/ledger.key").exists()
        shutil.rmtree(read_only / "ledger")
        with pytest.raises(PrivacyError, match="a ledger was kept here"):
            opened(read_only)


def test_a_ledger_of_another_user_that_others_read_is_refused_in_words(read_only):
    (read_only / "ledger").chmod(0o755)
    if not os.getuid():
        os.chown(read_only / "ledger", 0, -1)
    else:
        pytest.skip("needs a second user")
    with (
        as_somebody(),
        pytest.raises(ConfigError, match=r"Run the command as its owner, or: chmod 700"),
    ):
        opened(read_only)
