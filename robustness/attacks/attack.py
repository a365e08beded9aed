"""What an attack is, and the list that each file of attacks adds to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from robustness.attacks.attack_harness import AttackHarness

Stage = Literal["any", "points", "release"]
"""When it can be tried: at any time, before the rows are aligned, or after that."""

Run = Callable[[AttackHarness], str]


@dataclass(frozen=True, slots=True)
class Attack:
    """A name, when it can be tried, the log's words on it, and what is done.

    ``run`` returns the sentence that the sender got; it raises if the attack was not refused.
    """

    name: str
    harness: Stage
    log: str
    run: Run


class Attacks(list[Attack]):
    """A list that functions are put in by ``@attacks.add(...)``, under their own names."""

    def add(self, log: str, *, harness: Stage = "any") -> Callable[[Run], Run]:
        def added(run: Run) -> Run:
            self.append(Attack(run.__name__.replace("_", " "), harness, log, run))
            return run

        return added
