"""The paper's two samplers, for comparison only: bounded noise by resampling, and by a table.

Resampling draws two-sided geometric noise until the sum is in the range (the paper's bounded
discrete Laplace mechanism); the table is that of the exponential mechanism, searched from its first
cell.  Both have the distribution of our mechanisms (docs/errata.md), which need neither.  They use
floating point and numpy's generator, so they are only for timing and protect nobody.
"""

from dataclasses import dataclass, field

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.errors import ParameterError
from opboost.grid import Partition
from opboost.mechanisms import AdjMap, GlobalMap, LocalMap, Mechanism


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a mechanism: it moves each value from a centre to a place between two ends.

    The lower end determines the upper one.
    """

    centre: IntArray
    lower: IntArray
    upper: IntArray
    rate: float
    """The fall of the log-probability per step: ε/2 for noise of scale 2/ε."""


@dataclass(slots=True)
class Resampling:
    """Draws until the value is in the range; ``draws`` counts all draws."""

    rng: np.random.Generator
    draws: int = field(default=0)

    def place(self, stage: Stage) -> IntArray:
        """Return one place per value."""
        out = np.empty_like(stage.centre)
        left = np.arange(len(stage.centre))
        chance = -np.expm1(-stage.rate)
        while len(left):
            self.draws += len(left)
            noise = self.rng.geometric(chance, len(left)) - self.rng.geometric(chance, len(left))
            drawn = stage.centre[left] + noise
            inside: BoolArray = (drawn >= stage.lower[left]) & (drawn <= stage.upper[left])
            out[left[inside]] = drawn[inside]
            left = left[~inside]
        return out


@dataclass(slots=True)
class ExponentialTable:
    """Looks up a uniform number in the cumulative probabilities of its row, cell by cell."""

    rng: np.random.Generator

    def place(self, stage: Stage) -> IntArray:
        """Return one place per value."""
        first, nearest = int(stage.lower.min()), int(stage.centre.min())
        width = int(stage.lower.max()) - first + 1
        key = (stage.centre - nearest) * width + (stage.lower - first)
        known = np.flatnonzero(np.bincount(key))
        some = np.zeros(int(known[-1]) + 1, dtype=np.int64)
        some[key] = np.arange(len(key))
        rows = some[known]  # one value per row of the table
        which = np.searchsorted(known, key)
        centre, lower, upper = (e[rows][:, None] for e in (stage.centre, stage.lower, stage.upper))
        places = lower + np.arange(int((upper - lower).max()) + 1)
        weights = np.exp(-stage.rate * np.abs(places - centre))
        weights[places > upper] = 0.0
        cumulated = np.cumsum(weights, axis=1)
        cumulated /= cumulated[:, -1:]
        number = self.rng.random(len(key))[:, None]
        steps: IntArray = (number >= cumulated[which]).sum(axis=1)
        return np.asarray(stage.lower + steps)


def sample(mechanism: Mechanism, x: IntArray, sampler: Resampling | ExponentialTable) -> IntArray:
    """Return one output per value, by the paper's steps.

    >>> from opboost.grid import Domain
    >>> m = LocalMap(Domain(1, 10), epsilon=0.5, theta=5)
    >>> y = sample(m, np.array([1, 5, 6, 10] * 50), Resampling(np.random.default_rng(0)))
    >>> [(int(y[i::4].min()), int(y[i::4].max())) for i in range(4)]
    [(1, 5), (1, 5), (6, 10), (6, 10)]
    """
    x = np.asarray(x, dtype=np.int64)
    if isinstance(mechanism, GlobalMap):
        ends = mechanism.domain.L, mechanism.domain.R
        return sampler.place(Stage(x, *_ends(x, *ends), mechanism.epsilon / 2))
    partition, outer, inner = _runs(mechanism)
    run = partition.indices(x)
    if outer is not None:
        run = sampler.place(Stage(run, *_ends(x, 0, partition.count - 1), outer))
    return sampler.place(Stage(x, *partition.ends(run), inner))


def worst_draws(mechanism: Mechanism, x: IntArray) -> float:
    """Return the mean number of draws of resampling where the range is hardest to hit.

    >>> from opboost.grid import Domain
    >>> worst_draws(AdjMap(Domain(1, 10), 2.56, theta=4, alpha=0.4), np.arange(1, 11)) > 1e5
    True
    """
    values = np.unique(np.asarray(x, dtype=np.int64))
    if not isinstance(mechanism, AdjMap):
        return max(expected_draws(mechanism, values[i : i + 1]) for i in range(len(values)))
    partition, inner = mechanism.partition, mechanism.eps_ner / 2
    least = min(
        float(_inside(values, *_ends(values, *partition.run(j)), inner).min())
        for j in range(partition.count)
    )
    return 1 / least


def expected_draws(mechanism: Mechanism, x: IntArray) -> float:
    """Return how many draws resampling takes per value, on average over these values.

    >>> from opboost.grid import Domain
    >>> round(expected_draws(GlobalMap(Domain(1, 10), 0.08), np.arange(1, 11)), 2)
    5.69
    """
    values, counts = np.unique(np.asarray(x, dtype=np.int64), return_counts=True)
    share = counts / counts.sum()
    if isinstance(mechanism, GlobalMap):
        inside = _inside(values, *_ends(values, mechanism.domain.L, mechanism.domain.R),
                         mechanism.epsilon / 2)  # fmt: skip
        return float((share / inside).sum())
    partition, outer, inner = _runs(mechanism)
    runs = np.arange(partition.count)
    here = partition.indices(values)
    chance: FloatArray = (here[:, None] == runs).astype(np.float64)
    draws = np.zeros(len(values))
    if outer is not None:
        chance = np.exp(-outer * np.abs(here[:, None] - runs))
        chance /= chance.sum(axis=1, keepdims=True)
        draws = 1 / _inside(here, *_ends(values, 0, partition.count - 1), outer)
    for j in runs:
        first, last = partition.run(int(j))
        draws = draws + chance[:, j] / _inside(values, *_ends(values, first, last), inner)
    return float((share * draws).sum())


def _inside(centre: IntArray, lower: IntArray, upper: IntArray, rate: float) -> FloatArray:
    """Return the chance that a centre plus noise of this rate is between the two ends."""
    q = np.exp(-rate)

    def below(z: FloatArray) -> FloatArray:  # P[noise <= z]
        left = np.exp(-rate * np.maximum(-z, 0.0)) / (1 + q)
        right = 1 - np.exp(-rate * (np.maximum(z, 0.0) + 1)) / (1 + q)
        return np.asarray(np.where(z >= 0, right, left))

    reach = below((upper - centre).astype(float)) - below((lower - centre - 1).astype(float))
    return np.asarray(reach)


def _ends(x: IntArray, lower: int, upper: int) -> tuple[IntArray, IntArray]:
    return np.full(len(x), lower), np.full(len(x), upper)


def _runs(mechanism: Mechanism) -> tuple[Partition, float | None, float]:
    if isinstance(mechanism, AdjMap):
        return mechanism.partition, mechanism.eps_prt / 2, mechanism.eps_ner / 2
    if isinstance(mechanism, LocalMap):
        return mechanism.partition, None, mechanism.epsilon / 2
    raise ParameterError(f"The paper has no sampler by resampling for {mechanism!r}.")
