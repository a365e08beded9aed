"""A requested exit is never lost, even where Python drops exceptions."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOST = """
import os, signal, sys, time, weakref
from opboost.cli.signals import exit_on_signals

exit_on_signals()

def asked(*_):
    os.kill(os.getpid(), signal.{which})
    time.sleep({held})
    return 0

class Thing:
    def __del__(self):
        {finaliser}

thing = Thing()
watched = weakref.ref(thing, {callback})
try:
    del thing
    time.sleep(20)
finally:
    print("cleaned up", flush=True)
"""


@pytest.mark.parametrize("held", ["0", "0.2"])
@pytest.mark.parametrize("place", ["weak reference", "finaliser"])
@pytest.mark.parametrize(("which", "status"), [("SIGTERM", 143), ("SIGINT", -2)])
def test_an_end_that_a_callback_swallows_comes_again(which, status, place, held):
    code = LOST.format(
        which=which,
        held=held,
        callback="asked" if place == "weak reference" else "None",
        finaliser="asked()" if place == "finaliser" else "pass",
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stdout) == (status, "cleaned up\n"), done.stderr
    assert "ignored" not in done.stderr


def test_other_exceptions_in_a_finaliser_are_reported_as_ever():
    code = (
        "from opboost.cli.signals import exit_on_signals\nexit_on_signals()\n"
        "class Thing:\n    def __del__(self):\n        raise SystemExit(9)\n"
        "thing = Thing()\ndel thing\nprint('goes on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert "SystemExit: 9" in done.stderr
