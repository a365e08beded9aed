"""Errors of range queries: from noisy values, reconstructed distributions, and AHEAD."""

from __future__ import annotations

import math

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.denoise.reconstruct import reconstruct
from opboost.grid import Domain
from opboost.metrics import random_queries
from opboost.randomness.streams import SeededRng
from opboost_lab.reproduce.columns import column
from opboost_lab.reproduce.measures.ahead import answers, grow, weighed
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

BLOCK = 1000
"""Queries that are computed at a time."""


class _Asked:
    """A column, its ranges, and the true shares."""

    def __init__(self, values: str, grid: list[int], rows: int, queries: int) -> None:
        self.domain = Domain(*grid)
        self.cells = column(values, self.domain.L, self.domain.R, rows)
        self.counts = np.bincount(self.cells - self.domain.L, minlength=self.domain.size)
        self.queries = random_queries(self.domain, queries, SeededRng(0)) - self.domain.L
        self.true = self.shares(self.counts)

    def shares(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return the shares of the ranges in a histogram."""
        rise = np.concatenate([[0], counts.cumsum()]) / counts.sum()
        return np.asarray(rise[self.queries[:, 1] + 1] - rise[self.queries[:, 0]])

    def error(self, shares: FloatArray) -> float:
        return float(np.mean((shares - self.true) ** 2))


def counted(
    method: Json,
    values: str,
    grid: list[int],
    rows: int,
    queries: int,
    epsilon: float,
    seeds: list[int],
) -> Json:
    """Return the error of counts of noisy values by seed, and its expectation."""
    asked = _Asked(values, grid, rows, queries)
    mechanism = Method(**method).mechanism(asked.domain, epsilon)
    found = []
    for seed in seeds:
        noisy = mechanism.sample(asked.cells, rng=SeededRng(seed).child((method, epsilon)))
        histogram = np.bincount(noisy - asked.domain.L, minlength=asked.domain.size)
        found.append(asked.error(asked.shares(histogram)))
    exact = mechanism.exact_epsilon()
    return {
        "mse": found,
        "expected": expected_error(mechanism.transition_matrix(), asked.counts, asked.queries),
        "exact": exact if math.isfinite(exact) else None,
    }


def expected_error(matrix: FloatArray, counts: IntArray, queries: IntArray) -> float:
    """Return the exact expectation of the mean squared error: squared bias and variance, by range.

    The matrix gives the chance that a row of a cell falls into a range, independently of others.
    ``queries`` are positions of cells, ends included.
    """
    rise = np.hstack([np.zeros((len(matrix), 1)), matrix.cumsum(axis=1)])
    held = np.concatenate([[0], counts.cumsum()])
    rows = int(counts.sum())
    total = 0.0
    for block in (queries[k : k + BLOCK] for k in range(0, len(queries), BLOCK)):
        chance = np.clip(rise[:, block[:, 1] + 1] - rise[:, block[:, 0]], 0, 1)
        bias = counts @ chance - (held[block[:, 1] + 1] - held[block[:, 0]])
        total += float((bias**2 + counts @ (chance * (1 - chance))).sum())
    return total / len(queries) / rows**2


def reconstructed(
    method: Json, values: str, grid: list[int], rows: int, queries: int, epsilon: float, seed: int
) -> Json:
    """Return the error of answers from the reconstructed distribution, and how it was chosen."""
    asked = _Asked(values, grid, rows, queries)
    mechanism = Method(**method).mechanism(asked.domain, epsilon)
    noisy = mechanism.sample(asked.cells, rng=SeededRng(seed).child((method, epsilon)))
    distribution = reconstruct(noisy, mechanism, seed=seed)
    mse = asked.error(distribution.range(asked.queries + asked.domain.L))
    return {"mse": mse, "steps": distribution.steps, "smoothing": distribution.smoothing}


def by_ahead(
    values: str, grid: list[int], rows: int, queries: int, epsilon: float, seeds: list[int]
) -> Json:
    """Return AHEAD's errors, as coded and by textbook weights; its ε is for any two values."""
    asked = _Asked(values, grid, rows, queries)
    found: dict[str, list[float]] = {"coded": [], "textbook": []}
    for seed in seeds:
        tree = grow(asked.counts, epsilon, np.random.default_rng([seed, 7]))
        for weights in ("coded", "textbook"):
            top, _ = weighed(tree, weights)
            found[weights].append(asked.error(answers(top, asked.queries)))
    return found
