"""Kill work at each step that changes a file, and then run it again.

A step is a call with which Python syncs, moves or removes a file, or the point before or after a
commit of SQLite.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

CALLS = ("fsync", "replace", "rename", "link", "unlink", "rmdir", "chmod")


def killed_at_every_step(work, home, places):
    """Return copies of ``home`` in each of which ``work`` was killed at one step and run again.

    ``work`` is a function of a test module that takes the copy's path.  It runs in separate
    processes, which are really killed.
    """
    command = [
        sys.executable,
        "-m",
        "tests.support.kills",
        work.__module__,
        work.__name__,
        home,
        places,
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr
    return sorted(Path(places).iterdir())


def main(module, name, home, places):
    work = getattr(importlib.import_module(module), name)
    with tempfile.TemporaryDirectory() as scratch:  # load once, for all children
        work(Path(shutil.copytree(home, Path(scratch) / "home")))
    step, killed = 0, True
    while killed:
        step += 1
        place = Path(places) / f"{step:04d}"
        shutil.copytree(home, place)
        ended = in_child(work, place, step)
        killed = ended == -signal.SIGKILL
        assert killed or ended == 0, f"step {step} ended with {ended}"
        if killed:
            assert in_child(work, place) == 0, f"not finished after a kill at step {step}"
    assert step > 3, "nothing was killed"


def in_child(work, place, step=0):
    """Run in a child process, killed at the given step, if any; return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if step:
            kill_at(step)
        work(place)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def kill_at(step):
    left = step

    def count():
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(call):
        def wrapped(*arguments, **more):
            count()
            return call(*arguments, **more)

        return wrapped

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))

    class Connection(sqlite3.Connection):
        def execute(self, statement, *more):
            commit = statement == "COMMIT"
            if commit:
                count()
            done = super().execute(statement, *more)
            if commit:
                count()
            return done

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **more: connect(*a, factory=Connection, **more)


if __name__ == "__main__":
    main(*sys.argv[1:])
