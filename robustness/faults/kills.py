"""``kill -9`` of each party at every phase boundary of a job, and at random moments.

A boundary is a file of the job or an entry of the ledger.  When it appears, the party is killed and
restarted with the same command.
"""

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial

from opboost.demo.local_federation import LABEL_PARTY
from robustness.faults.faults_harness import ALL, PARTIES, RESUMED, FaultsHarness, staged
from robustness.tally import Tally, counted

LABEL_SERVER = "gate"
VICTIMS = (*ALL, LABEL_SERVER)

JOB = "bank/state/*"
AT_LABEL = (
    ("bank", "state/lock .model.opboost.*part model.opboost"),
    (JOB, "job.json label.jsonl common .trained-*.part trained-* trained-*/books.json"),
    (JOB, "manifest.json"),
    (f"{JOB}/align", "shop/secret telco/00000.label shop/00000.doubled"),
    (f"{JOB}/parties/shop", "points expected claim schema 00000.arrow sent query answer farewell"),
    (f"{JOB}/parties/telco", "00000.feature 00000.raised aligned proved receipt 00001.arrow sent"),
    (f"{JOB}/parties/telco", "query answer farewell"),
)
"""The label party's files, by folder."""

AT_FEATURE = (
    ("keys", "{party}.key"),
    ("{party}", "state/lock ledger/ledger.sqlite ledger/runs/000001"),
    ("{party}/state/*", "binding.json secret told common 00000.draws 00000.arrow 00001.values"),
    ("{party}/state/*", "schema answer manifest.json"),
    (f"{JOB}/parties/{{party}}", "points 00000.feature 00000.raised aligned claim proved schema"),
    (f"{JOB}/parties/{{party}}", "receipt 00000.arrow 00001.arrow sent query answer farewell"),
    (JOB, "manifest.json"),
)
ENTRIES = ("open", "align", "aligned", "reserve", "commit", "answer")


def boundaries(victim: str) -> list[str]:
    """Return the names of all boundaries at which a party is killed."""
    folders, entries = (AT_FEATURE, ENTRIES) if victim in PARTIES else (AT_LABEL, ())
    files = [f"{folder}/{name}" for folder, names in folders for name in names.split()]
    return [*(f.format(party=victim) for f in files), *(f"ledger: {kind}" for kind in entries)]


def at_boundaries(victim: str, chosen: Sequence[str] | None = None) -> Tally:
    """Kill a party at each of its boundaries (or the chosen ones), each in a job of its own."""
    cases = {}
    for name in chosen or boundaries(victim):
        for _ in range(3):  # a file that exists only for a moment may be missed
            kills, said = _killed(victim, [partial(_passed, victim, name)])
            if kills or said:
                cases[name] = said
                break
    return counted(f"kill -9 of {victim} at a boundary", cases)


def at_random(victim: str, count: int, seed: int, *, a_job: int = 5) -> Tally:
    """Kill a party ``count`` times at random moments, up to ``a_job`` times in one job.

    Half of the moments are at any time in the life of its process, half after it has begun to work.
    Moments after its end do not count.
    """
    rng = random.Random(f"{victim} {seed}")
    life, working = _spans(victim)
    tally = Tally(f"kill -9 of {victim} at a random moment", 0, 0)
    for _ in range(4 * count):
        if tally.tried >= count:
            break
        numbers = range(min(a_job, count - tally.tried))
        moments = [rng.uniform(working if number % 2 else 0.0, life) for number in numbers]
        name = ", ".join(f"{m:.3f}" for m in moments) + " s"
        kills, said = _killed(victim, [partial(_over, m) for m in moments])
        tally = tally.after(f"after {name}", kills, said)
    return tally


Moment = Callable[[FaultsHarness, float], bool]
"""Whether to kill the victim, by the harness and the time at which the victim was started."""


def _over(seconds: float, harness: FaultsHarness, started: float) -> bool:
    return time.monotonic() >= started + seconds


def _passed(victim: str, boundary: str, harness: FaultsHarness, started: float) -> bool:
    """Return whether a file exists, or an entry of the ledger, without blocking the victim."""
    place, _, kind = boundary.partition(": ")
    if place != "ledger":
        return harness.has(boundary)
    file = harness.home(victim) / "ledger" / "ledger.sqlite"
    with (
        suppress(sqlite3.Error),  # it may not exist yet, or be in use
        closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=0)) as db,
    ):
        return (kind,) in db.execute("SELECT kind FROM entries")
    return False


def _spans(victim: str) -> tuple[float, float]:
    """Return the seconds until a party of an undisturbed job ends, and until it begins to work."""
    party = LABEL_PARTY if victim == LABEL_SERVER else victim
    with staged() as harness:
        began = time.monotonic()
        harness.start_all()
        harness.wait(lambda: (harness.home(party) / "state" / "lock").exists())
        working = time.monotonic() - began
        complaints = harness.finished() or harness.complaints()
        if complaints:
            raise RuntimeError(f"The undisturbed job fails: {complaints}")
        return time.monotonic() - began, working


def _killed(victim: str, moments: Sequence[Moment]) -> tuple[int, list[str]]:
    """Run a job and kill a party at each moment; return the number of kills, and complaints."""
    party = LABEL_PARTY if victim == LABEL_SERVER else victim
    with staged() as harness:
        harness.start_all()
        kills, begun = 0, False
        for moment in moments:
            due = partial(moment, harness, time.monotonic())
            harness.wait(lambda due=due: due() or harness.over(party), 60)
            if harness.over(party):
                break
            begun = _begun(harness, party)
            if victim == LABEL_SERVER:
                kills += harness.kill_label_server()
            elif harness.kill(party):
                kills += 1
                harness.start(party)
        complaints = harness.finished() or harness.complaints()
        if kills and begun and not _told(harness, victim):
            complaints.append(f"the operator of {party} was not told")
        return kills, complaints


def begun_and_killed(harness: FaultsHarness, victim: str) -> None:
    """Start every party, and kill one in the middle of its work."""
    harness.start_all()
    middle = f"{PARTIES[0]}/state/*/schema" if victim == LABEL_PARTY else f"{victim}/state/*/common"
    if not harness.wait(lambda: harness.has(middle)):
        raise RuntimeError(f"The job did not come to {middle}.")
    harness.kill(victim)


def _begun(harness: FaultsHarness, party: str) -> bool:
    """Return whether the party has files of an unfinished job."""
    name = "job.json" if party == LABEL_PARTY else "binding.json"
    state = harness.home(party) / "state"
    over = "ended" if party == LABEL_PARTY else "manifest.json"
    return any(state.glob(f"*/{name}")) and not any(state.glob(f"*/{over}"))


def _told(harness: FaultsHarness, victim: str) -> bool:
    if victim == LABEL_SERVER:
        logs = (harness.home(LABEL_PARTY) / "state").rglob("*.jsonl")
        return any('"event": "gate died"' in log.read_text() for log in logs)
    words = harness.said(victim)
    return RESUMED in words or "is done; " in words
