"""Measure how many random words and how much time a draw takes, depending on the value."""

import time
from dataclasses import dataclass, field
from statistics import median

import numpy as np

import opboost as op
from opboost.mechanisms import GapMechanism, NominalMechanism
from opboost.randomness.streams import Bits
from robustness.audits.auditor_trial import SOUND


class CountedSource:
    """The cryptographic stream with counts of its words and further bits."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._source, self._counts = op.SecureRng().open(), counts

    def words(self, draws: int, start: int, stop: int) -> np.ndarray:
        self._counts["words"] += draws * (stop - start)
        return self._source.words(draws, start, stop)

    def further(self, row: int) -> Bits:
        self._counts["further"] += 1
        return self._source.further(row)


@dataclass(frozen=True)
class CountedRng:
    """A generator that opens counted streams, as secure as those that it counts."""

    counts: dict[str, int] = field(default_factory=lambda: {"words": 0, "further": 0})
    secure: bool = True

    def open(self) -> CountedSource:
        return CountedSource(self.counts)


def columns_of(mechanism: object, rows: int) -> dict[str, tuple]:
    """Return arguments of ``sample`` for columns that differ in every way in which data can."""
    rng = np.random.default_rng(0)
    if isinstance(mechanism, NominalMechanism):
        names = mechanism.categories
        mixed = [names[i] for i in rng.integers(0, len(names), rows)]
        return {"first": ([names[0]] * rows,), "last": ([names[-1]] * rows,), "mixed": (mixed,)}
    if isinstance(mechanism, GapMechanism):
        present = columns_of(mechanism.mechanism, rows)
        gone = {"none": np.zeros(rows, bool), "all": np.ones(rows, bool)}
        gone["some"] = rng.random(rows) < 0.3
        return {f"{a}, {b} missing": (*x, g) for a, x in present.items() for b, g in gone.items()}
    grid = mechanism.domain  # type: ignore[attr-defined]
    cells = {"lowest": grid.L, "middle": (grid.L + grid.R) // 2, "highest": grid.R}
    columns = {name: (np.full(rows, x),) for name, x in cells.items()}
    return {**columns, "mixed": (rng.integers(grid.L, grid.R, rows, endpoint=True),)}


def words_taken(mechanism: object, rows: int) -> dict[str, int]:
    """Return how many random words each column takes."""
    taken = {}
    for name, column in columns_of(mechanism, rows).items():
        rng = CountedRng()
        mechanism.sample(*column, rng)  # type: ignore[attr-defined]
        taken[name] = rng.counts["words"]
    return taken


def nanoseconds(mechanism: object, rows: int = 1 << 18, rounds: int = 15) -> dict[str, float]:
    """Return each column's median time per value, measured in turns so that load affects all."""
    columns = columns_of(mechanism, rows)
    spent: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds):
        for name, column in columns.items():
            begun = time.perf_counter()
            mechanism.sample(*column)  # type: ignore[attr-defined]
            spent[name].append(time.perf_counter() - begun)
    return {name: 1e9 * median(times) / rows for name, times in spent.items()}


ALONE = {name: m for name, m in SOUND.items() if not isinstance(m, op.Record)}
TIMED = {name: m for name, m in ALONE.items() if not isinstance(m, NominalMechanism)}
"""The mechanisms that do not spend most of their time looking up categories."""
