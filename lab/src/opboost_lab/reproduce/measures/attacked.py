"""The columns that are attacked, what is released of them, and how much is read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_breast_cancer

from opboost._typing import IntArray
from opboost.grid import Domain, NumericMapping
from opboost.mechanisms.ope import OrderPreservingEncryption
from opboost.randomness.streams import SeededRng
from opboost_lab.data import datasets
from opboost_lab.reproduce.measures import attacks
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

WITHIN = (0, 1, 5)
"""A guess is right within so many cells."""
ORDER = "plain order"
OPE = "OPE"
TARGETS = (ORDER, OPE)
"""Releases without a promise; all others are methods."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column on a grid from 0, one half known to the attacker, the other released."""

    known: IntArray
    target: IntArray
    size: int

    @property
    def domain(self) -> Domain:
        """The grid."""
        return Domain(0, self.size - 1)


PAPERS: dict[str, tuple[str, str, int]] = {
    "age": ("Adult", "age", 74),
    "hours-per-week": ("Adult", "hours-per-week", 99),
    "capital-gain": ("Adult", "capital-gain", 100),
    "age, ten cells": ("Adult", "age", 10),
}
"""Set, column, cells: ages and hours have a cell a unit."""
BUNDLED: dict[str, tuple[str, int]] = {
    "age": ("mean texture", 74),
    "hours-per-week": ("mean smoothness", 99),
    "capital-gain": ("area error", 100),
    "age, ten cells": ("mean texture", 10),
}
"""Columns of the breast cancer set that stand in, and their cells."""


@lru_cache(maxsize=16)
def column(name: str, bundled: bool) -> Column:
    """A column in two halves, drawn apart once and for all."""
    if bundled:
        data = load_breast_cancer()
        words, size = BUNDLED[name]
        raw = data.data[:, list(data.feature_names).index(words)]
        bounds = float(raw.min()), float(raw.max())
    else:
        source, words, size = PAPERS[name]
        data = datasets.ALL[source]()
        raw = data.train.column(words).to_numpy().astype(np.float64)
        low, high = data.bounds[words]
        whole = source == "Adult" and size > 10 and high - low < size
        bounds = (low - 0.5, high + 0.5) if whole else (low, high)
    cells = NumericMapping(Domain(0, size - 1), bounds).to_grid(raw).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(cells))
    half = len(cells) // 2
    return Column(cells[order[:half]], cells[order[half:]], size)


def release(target: str, cells: IntArray, domain: Domain, seed: int) -> IntArray:
    """What order or cipher shows of a column."""
    if target == ORDER:
        return np.unique(cells, return_inverse=True)[1].reshape(-1)
    key = np.random.default_rng(seed).bytes(32)
    return OrderPreservingEncryption(domain, key=key).sample(cells)


def on_order(name: str, target: str, bundled: bool, seeds: int) -> Json:
    """Order or cipher attacked: the share recovered within each k, by attack and seed."""
    c = column(name, bundled)
    found = []
    for seed in range(seeds):
        shown = release(target, c.target, c.domain, seed)
        known, exact = (attacks.pmf(half, c.size) for half in (c.known, c.target))
        guesses = {"sorting": known, "best possible": exact}
        shares = {
            a: [attacks.recovered(attacks.sorting(shown, pmf), c.target, k) for k in WITHIN]
            for a, pmf in guesses.items()
        }
        found.append(shares | {"prior alone": _prior(c)})
    return _by_attack(found)


def on_method(name: str, method: Json, epsilon: float, bundled: bool, seeds: int) -> Json:
    """A mechanism attacked; the best possible is exact, all else a release by seed."""
    c = column(name, bundled)
    mechanism = Method(**method).mechanism(c.domain, epsilon)
    channel = mechanism.transition_matrix()
    prior, truth = (attacks.pmf(half, c.size) for half in (c.known, c.target))
    best = [attacks.best_possible(truth, channel, k) for k in WITHIN]
    found = []
    for seed in range(seeds):
        shown = mechanism.sample(c.target, rng=SeededRng(seed)).astype(np.int64)
        sorted_ = attacks.sorting(shown, prior)
        found.append(
            {
                "sorting": [attacks.recovered(sorted_, c.target, k) for k in WITHIN],
                "posterior": [
                    attacks.recovered(attacks.posterior(shown, prior, channel, k), c.target, k)
                    for k in WITHIN
                ],
                "prior alone": _prior(c),
                "best possible": best,
            }
        )
    return _by_attack(found) | {"total": mechanism.guarantee().total}


def _prior(c: Column) -> list[float]:
    prior = attacks.pmf(c.known, c.size)
    return [
        attacks.recovered(np.full_like(c.target, attacks.prior_guess(prior, k)), c.target, k)
        for k in WITHIN
    ]


def _by_attack(found: list[dict[str, list[float]]]) -> dict[str, Json]:
    """By attack: for each k the shares of all seeds."""
    return {a: [[f[a][i] for f in found] for i in range(len(WITHIN))] for a in found[0]}
