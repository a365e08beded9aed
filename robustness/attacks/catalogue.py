"""Every attack of the catalogue, counted: how many of how many were survived.

Attacks on a label party (``gate``), by a label party on an honest feature party (``join``), and by
whoever carries bundles (``bundles``).
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from robustness.attacks.attack_harness import Attack, AttackHarness, Outcome
from robustness.attacks.bad_streams import STREAMS
from robustness.attacks.bundle_forgeries import FORGERIES, Carrier
from robustness.attacks.by_feature_party import MEMBERS
from robustness.attacks.by_label_party import LIES, HonestParties
from robustness.attacks.by_outsiders import STRANGERS

CATALOGUE: tuple[Attack, ...] = (*STRANGERS, *MEMBERS, *STREAMS)
CROWD = 1000
"""Connections of those attacks that open many."""

T = TypeVar("T")
Told = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a run, and whether the honest parties finished the job after it."""

    seed: int
    outcomes: tuple[Outcome, ...]
    finished: bool

    def __str__(self) -> str:
        end = "finished" if self.finished else "did NOT finish"
        survived = sum(o.survived for o in self.outcomes)
        counts = f"{survived} of {len(self.outcomes)} survived"
        return f"seed {self.seed}: {counts}, and the honest job {end}"


def on_the_label_server(
    count: int, seed: int, *, crowd: int = CROWD, only: str = "", told: Told = lambda outcome: None
) -> Report:
    """Attacks on a label party; those on points come before those on a release."""
    rng, known = random.Random(seed), [a for a in CATALOGUE if re.search(only, a.name)]
    chosen, reports = _each(known, count, rng), []
    for first in range(0, count, len(known)):
        some = chosen[first : first + len(known)]
        reports.append(_under_attack(some, seed, rng, crowd, told))
    outcomes = tuple(o for report in reports for o in report.outcomes)
    return Report(seed, outcomes, all(report.finished for report in reports))


def _under_attack(
    attacks: list[Attack], seed: int, rng: random.Random, crowd: int, told: Told
) -> Report:
    """One label party, which suffers each of these once."""
    places, outcomes = {"points": (0.0, 0.5), "release": (0.5, 1.0), "any": (0.0, 1.0)}, []
    with (
        tempfile.TemporaryDirectory() as folder,
        AttackHarness(Path(folder), crowd).laid() as harness,
    ):
        for attack in sorted(attacks, key=lambda a: rng.uniform(*places[a.harness])):
            if attack.harness == "release":
                assert harness.release
            outcomes.append(harness.suffered(attack.name, attack.run, attack.log))
            told(outcomes[-1])
        return Report(seed, tuple(outcomes), harness.finish())


def _on_one(
    kinds: Sequence[Any],
    besieged: Callable[[Path], Any],
    count: int,
    seed: int,
    *,
    only: str = "",
    told: Told = lambda outcome: None,
) -> Report:
    """Attacks of these kinds on one victim, which finishes its honest job after them."""
    known = [kind for kind in kinds if re.search(only, kind.name)]
    with tempfile.TemporaryDirectory() as folder:
        victim, outcomes = besieged(Path(folder)), []
        for attack in _each(known, count, random.Random(seed)):
            outcomes.append(victim.suffered(attack))
            told(outcomes[-1])
        return Report(seed, tuple(outcomes), victim.finish())


on_a_join = partial(_on_one, LIES, HonestParties)
"""Lies of a label party to a feature party that follows the protocol."""

by_bundles = partial(_on_one, FORGERIES, Carrier)
"""Bundles that were altered, repeated, misaddressed or made up."""


def _each(known: list[T], count: int, rng: random.Random) -> list[T]:
    """A random order, in which all come once before any comes twice."""
    chosen: list[T] = []
    while len(chosen) < count:
        chosen += rng.sample(known, len(known))
    return chosen[:count]


KINDS: dict[str, tuple[Callable[..., Report], int]] = {
    "gate": (on_the_label_server, len(CATALOGUE)),
    "join": (on_a_join, len(LIES)),
    "bundles": (by_bundles, len(FORGERIES)),
}
