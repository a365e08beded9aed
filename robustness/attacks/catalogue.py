"""Run every attack of the catalogue, and count how many were survived.

There are attacks on a label party (``gate``), by a label party on an honest feature party
(``join``), and by a carrier of bundles (``bundles``).
"""

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from robustness.attacks.attack_harness import Attack, AttackHarness, Outcome
from robustness.attacks.bad_streams import STREAMS
from robustness.attacks.bundle_forgeries import FORGERIES, Carrier
from robustness.attacks.by_feature_party import MEMBERS
from robustness.attacks.by_label_party import LIES, HonestParties
from robustness.attacks.by_outsiders import STRANGERS

CATALOGUE: tuple[Attack, ...] = (*STRANGERS, *MEMBERS, *STREAMS)
CROWD = 1000
"""The number of connections that an attack by a crowd opens."""


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a run, and whether the honest parties finished their job afterwards."""

    seed: int
    outcomes: tuple[Outcome, ...]
    finished: bool

    def __str__(self) -> str:
        end = "finished" if self.finished else "did NOT finish"
        survived = sum(o.survived for o in self.outcomes)
        counts = f"{survived} of {len(self.outcomes)} survived"
        return f"seed {self.seed}: {counts}, and the honest job {end}"


def tried(
    kinds: Sequence[Any],
    victim: Callable[[Path], AbstractContextManager[Any]],
    count: int,
    seed: int,
    *,
    only: str = "",
    told: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Try attacks in a random order, each once before any is repeated.

    Each round has a new victim, which finishes its honest job after the attacks.  Attacks on points
    come before those on a release.
    """
    rng, known = random.Random(seed), [kind for kind in kinds if re.search(only, kind.name)]
    places = {"points": (0.0, 0.5), "release": (0.5, 1.0), "any": (0.0, 1.0)}
    outcomes: list[Outcome] = []
    finished = True
    while len(outcomes) < count:
        some = rng.sample(known, min(len(known), count - len(outcomes)))
        with tempfile.TemporaryDirectory() as folder, victim(Path(folder)) as suffering:
            for attack in sorted(some, key=lambda a: rng.uniform(*places[a.when])):
                outcomes.append(suffering.suffered(attack))
                told(outcomes[-1])
            finished &= suffering.finish()
    return Report(seed, tuple(outcomes), finished)


def on_the_label_server(count: int, seed: int, *, crowd: int = CROWD, **how: Any) -> Report:
    """Try attacks on a label party."""
    return tried(CATALOGUE, lambda f: AttackHarness(f, crowd).running(), count, seed, **how)


on_a_join = partial(tried, LIES, lambda folder: nullcontext(HonestParties(folder)))
"""Try lies of a label party on an honest feature party."""

by_bundles = partial(tried, FORGERIES, lambda folder: nullcontext(Carrier(folder)))
"""Try bundles that were altered, repeated, misaddressed or forged."""

KINDS: dict[str, tuple[Callable[..., Report], int]] = {
    "gate": (on_the_label_server, len(CATALOGUE)),
    "join": (on_a_join, len(LIES)),
    "bundles": (by_bundles, len(FORGERIES)),
}
