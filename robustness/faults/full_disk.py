"""Fill the disk at every block: a party's home is on a small file system.

In the first job the party has no free space, in the next one block of 4 kB, and so on, until a job
has enough.  So each block that a job needs is missing once.  The party fails because the disk is
full, gets plenty of space, and is restarted with the same command.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robustness.faults.faults_harness import ALL, FaultsHarness, staged
from robustness.tally import Tally, counted

BLOCK = 4096
MOST = 4000
"""More blocks than any job needs."""


def may_mount() -> bool:
    """Return whether this process may mount file systems."""
    with tempfile.TemporaryDirectory() as place:
        if _mounted(Path(place), BLOCK):
            return False
        _run("umount", place)
        return True


def run(victim: str, *, step: int = 1) -> Tally:
    """Run a job for each ``step``-th block that the victim needs, and fill the disk there."""
    cases: dict[str, list[str]] = {}
    for room in range(0, MOST, step):
        found = _trial(victim, room)
        if found is None:
            break
        cases[f"room for {room} blocks"] = found
    return counted(f"full disk of {victim}", cases)


def _trial(victim: str, room: int) -> list[str] | None:
    """Return what is wrong with a job whose disk was full once; None if it had enough space."""
    with staged() as harness, _small(harness, victim, room) as disk:
        harness.be_patient()
        harness.start_all()
        process = harness.processes[victim]
        harness.wait(lambda: any(harness.over(party) for party in ALL), 120)
        harness.wait(lambda: process.poll() is not None, 30)
        if process.poll() == 0:
            return None
        if process.poll() is None:
            return [f"{victim} did not end: {'; '.join(harness.finished(1))}"]
        words = harness.words(victim)[-1]
        clear = str(harness.home(victim)) in words and "Free some space" in words
        if process.returncode != 1 or not clear:
            return [f"status {process.returncode}, {words}"]
        _run("mount", "-o", f"remount,size={MOST * BLOCK}", str(disk))
        harness.start(victim)
        return harness.finished() or harness.complaints()


@contextmanager
def _small(harness: FaultsHarness, victim: str, room: int) -> Iterator[Path]:
    """Yield the party's home on a file system with this many free blocks."""
    home = harness.home(victim)
    aside = harness.folder / f"{victim}-before"
    home.rename(aside)
    home.mkdir()
    # The file with the party's messages belongs to the harness, so it must not fill the disk.
    (harness.folder / f"{victim}-said").touch()
    files = sum(-(-f.stat().st_size // BLOCK) for f in aside.rglob("*") if f.is_file())
    problem = _mounted(home, (files + 1 + room) * BLOCK)
    if problem:
        raise RuntimeError(f"No file system can be mounted here: {problem}")
    try:
        shutil.copytree(aside, home, dirs_exist_ok=True)
        os.symlink(harness.folder / f"{victim}-said", home / "said")
        yield home
    finally:
        harness.stop()
        _run("umount", "--lazy", str(home))


def _mounted(place: Path, size: int) -> str:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stderr.strip() if found.returncode else ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
