"""Start a party again while its first process is still running.

One feature party starts late, so that the others are still running.
"""

import random

from robustness.faults.faults_harness import ALL, PARTIES, staged
from robustness.tally import Tally, counted


def run(count: int, seed: int) -> Tally:
    """Start each party in turn a second time, at a random moment after its start."""
    rng = random.Random(seed)
    cases = {}
    for number in range(count):
        party = ALL[number % len(ALL)]
        late = rng.choice([p for p in PARTIES if p != party])
        cases[f"{number}: {party}, {late} is late"] = _trial(party, late, rng.uniform(0, 1))
    return counted("second start", cases)


def _trial(party: str, late: str, pause: float) -> list[str]:
    with staged() as harness:
        for name in ALL:
            if name != late:
                harness.start(name)
        harness.wait(lambda: (harness.home(party) / "state" / "lock").exists())
        harness.wait(lambda: False, pause)
        first, said = harness.processes[party], harness.folder / "second"
        status, words, complaints = harness.forked(party, said).wait(60), said.read_text(), []
        refused = "Another process is already working in" in words
        clear = refused and str(harness.home(party)) in words
        if status != 2 or not clear:
            complaints.append(f"the second ended with {status}: {words}")
        if first.poll() is not None:
            complaints.append("the first is gone")
        harness.start(late)
        return complaints + (harness.finished() or harness.complaints())
