"""A full disk at every write: a party's home on a small file system that grows by one block.

The party fails for want of room, is given one block more than before, and is started again with
the same command, until its job is done; so every write of the job fails once.  Mounting needs the
right to do so; where it is lacking, :func:`may_mount` says it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hardening.stage import ALL, Stage, staged
from hardening.tally import Tally, by_hand
from opboost.experiments.scene import LABEL_PARTY

BLOCK = 4096
MOST = 400
"""Blocks after which a party that still fails is given up."""


def may_mount() -> bool:
    """Whether small file systems can be mounted here."""
    with tempfile.TemporaryDirectory() as place:
        if _mounted(Path(place), BLOCK):
            return False
        _run("umount", place)
        return True


def run(victim: str, *, step: int = 1) -> Tally:
    """One job during which the victim's disk is full at every ``step``-th block that it needs."""
    kind = f"full disk of {victim}"
    with staged() as stage, _small(stage, victim) as disk:
        _patient(stage)
        for party in ALL:
            stage.start(party)
        failed = 0
        while failed < MOST // step:
            process = stage.processes[victim]
            stage.wait(lambda: any(stage.over(party) for party in ALL), 120)
            stage.wait(lambda process=process: process.poll() is not None, 30)
            if process.poll() is None:
                why = "; ".join(stage.finished(1))
                return Tally(kind, failed + 1, failed, (f"{victim} did not end: {why}",))
            if process.returncode == 0:
                break
            failed += 1
            words = stage.said(victim).strip().splitlines()[-1]
            if process.returncode != 1 or not _is_clear(words, stage.home(victim)):
                why = f"with {disk.room} blocks: status {process.returncode}, {words}"
                return Tally(kind, failed, failed - 1, (why,))
            disk.grow(step)
            stage.start(victim)
        complaints = stage.finished() or stage.complaints()
        if not failed:
            complaints.append("the disk was never full")
        if complaints:
            return Tally(kind, max(failed, 1), 0, tuple(complaints))
        return Tally(kind, failed, failed)


def _is_clear(words: str, home: Path) -> bool:
    """Whether a message names the folder and the next step."""
    return str(home) in words and "Make room" in words


def _patient(stage: Stage) -> None:
    """Let feature parties wait as long as it takes."""
    for party in stage.scene.parties:
        config = stage.scene.config(party)
        text = config.read_text()
        config.write_text(re.sub(r"connect_seconds = .*", "connect_seconds = 600", text))


class _Disk:
    """A file system with room for so many blocks when a party is started.

    What a failed attempt has written stays, so each is given more room than the one before had:
    it comes further, to a write that was not reached yet.
    """

    def __init__(self, place: Path) -> None:
        self._place, self.room = place, 0

    def grow(self, blocks: int) -> None:
        self.room += blocks
        now = os.statvfs(self._place)
        used = now.f_blocks - now.f_bfree
        _run("mount", "-o", f"remount,size={(used + self.room) * BLOCK}", str(self._place))


@contextmanager
def _small(stage: Stage, victim: str) -> Iterator[_Disk]:
    """The party's home on a file system that has room for its own tables and no more."""
    home = stage.home(victim)
    aside = stage.folder / f"{victim}-before"
    home.rename(aside)
    home.mkdir()
    # What the party says is kept elsewhere: it is the harness's file, not the party's.
    (stage.folder / f"{victim}-said").touch()
    files = sum(-(-f.stat().st_size // BLOCK) for f in aside.rglob("*") if f.is_file())
    problem = _mounted(home, (files + 1) * BLOCK)
    if problem:
        raise RuntimeError(f"No file system can be mounted here: {problem}")
    try:
        shutil.copytree(aside, home, dirs_exist_ok=True)
        os.symlink(stage.folder / f"{victim}-said", home / "said")
        yield _Disk(home)
    finally:
        stage.stop()
        _run("umount", "--lazy", str(home))


def _mounted(place: Path, size: int) -> str:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stderr.strip() if found.returncode else ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main(count: int, seed: int) -> list[Tally]:
    """Every party, at every ``count``-th block; there is nothing random in it."""
    return [run(victim, step=count) for victim in (LABEL_PARTY, *ALL[1:])]


if __name__ == "__main__":
    by_hand(main, 1)
