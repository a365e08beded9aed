"""A clock that is set back between a kill and the restart.

Only one party's processes see the changed clock, through libfaketime, which the system's package or
the Python package of that name provides.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from robustness.faults.faults_harness import RESUMED, staged
from robustness.faults.kills import begun_and_killed
from robustness.tally import Tally, counted

PLACES = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)
WITHIN, BEFORE = "-12h", "-3d"
"""Offsets to a time at which the certificates are valid, and to one at which they are not yet."""


def library() -> Path | None:
    """Return the path of libfaketime; None if it is missing, or stops programs from sleeping."""
    found = importlib.util.find_spec("libfaketime")
    own = [Path(p) for p in found.submodule_search_locations or ()] if found else []
    files = [f for place in own for f in place.rglob("libfaketime.so.1")]
    files += [f for place in PLACES for f in Path("/").glob(place[1:])]
    return next((f for f in files if _lets_sleep(f)), None)


def _lets_sleep(preload: Path) -> bool:
    """Return whether programs can sleep; 0.9.10 prevents it if the monotonic clock stays true."""
    command = [sys.executable, "-c", "import time; time.sleep(0.001)"]
    return not subprocess.run(command, env=_faked(preload, WITHIN), capture_output=True).returncode


def _faked(preload: Path, how: str) -> dict[str, str]:
    return {"LD_PRELOAD": str(preload), "FAKETIME": how, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def set_back(victim: str) -> Tally:
    """Kill a party during a job; restart it before, and within, its certificate's validity."""
    cases = {f"{victim} {how}": _trial(victim, how) for how in (BEFORE, WITHIN)}
    return counted("clock set back", cases)


def _trial(victim: str, how: str) -> list[str]:
    preload = library()
    if preload is None:
        return ["no libfaketime that lets programs sleep is installed (PyPI: libfaketime)"]
    with staged() as harness:
        begun_and_killed(harness, victim)
        harness.environment = _faked(preload, how)
        process = harness.start(victim)
        if how == BEFORE:
            if process.wait(60) != 4 or "is not valid before" not in harness.said(victim):
                return [f"status {process.returncode}: {harness.said(victim)}"]
            harness.environment = {}
            harness.start(victim)
        complaints = harness.finished() or harness.complaints()
        if RESUMED not in harness.said(victim):
            complaints.append("the operator was not told")
        return complaints
