"""A second start of a party whose first process is still at work."""

from __future__ import annotations

import random
import subprocess

from hardening.stage import ALL, PARTIES, staged
from hardening.tally import Tally, by_hand, counted
from opboost.experiments.scene import LABEL_PARTY

MOMENTS = (
    "bank/state/*/parties/{party}/points",
    "bank/state/*/parties/{party}/aligned",
    "bank/state/*/parties/{party}/sent",
    "bank/state/*/parties/{party}/query",
)


def run(count: int, seed: int) -> Tally:
    """Start a random party again at a random boundary of a job, once a job."""
    rng = random.Random(seed)
    cases = {}
    for number in range(count):
        party = ALL[number % len(ALL)]
        moment = rng.choice(MOMENTS).format(party=rng.choice(PARTIES))
        cases[f"{number}: {party} at {moment}"] = _trial(party, moment)
    return counted("second start", cases)


def _trial(party: str, moment: str) -> list[str]:
    with staged() as stage:
        for name in ALL:
            stage.start(name)
        stage.wait(lambda: next(stage.folder.glob(moment), None) is not None)
        if stage.over(party):
            return [f"{party} was over already"]
        first = stage.processes[party].pid
        command = stage.scene.command(party)
        if party != LABEL_PARTY:
            command += ["--connect", stage.address]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)
        words, complaints = second.stderr.strip(), []
        clear = "Another process already works in" in words and str(stage.home(party)) in words
        # Where the first was done meanwhile, there is no one to be in the way of.
        if not stage.over(party) and (second.returncode != 2 or not clear):
            complaints.append(f"the second ended with {second.returncode}: {words}")
        if stage.processes[party].pid != first:
            complaints.append("the first is gone")
        return complaints + (stage.finished() or stage.complaints())


def main(count: int, seed: int) -> list[Tally]:
    """``count`` second starts, the parties in turn."""
    return [run(count, seed)]


if __name__ == "__main__":
    by_hand(main, 9)
