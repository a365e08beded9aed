"""The result of one check, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The result of a check."""

    ok = "ok"
    warning = "warning"
    """It works, but slowly, or not for long."""
    wrong = "wrong"
    """Something will fail."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, its state, and what was found; ``next_step`` is empty iff all is well.

    >>> Finding("disk", State.ok, "40.2 GB free in .").well
    True
    """

    what: str
    state: State
    found: str
    next_step: str = ""
    exit_status: int = 1
    """The exit status with which the real command would fail, if something is wrong."""

    def __post_init__(self) -> None:
        if (self.state is State.ok) is bool(self.next_step):
            raise ValueError(f"{self.what}: a finding has a next step iff it is not well.")

    @property
    def well(self) -> bool:
        """Whether there is nothing to do."""
        return self.state is State.ok
