"""The columns that are attacked, what is released of them, and how much is read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_breast_cancer

from opboost._typing import FloatArray, IntArray
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
    "F1": ("CASP", "F1", 50),
    "F2": ("CASP", "F2", 50),
}
"""Set, column, cells: ages and hours have a cell a unit."""
BUNDLED: dict[str, tuple[str, int]] = {
    "age": ("mean texture", 74),
    "hours-per-week": ("mean smoothness", 99),
    "capital-gain": ("area error", 100),
    "age, ten cells": ("mean texture", 10),
    "F1": ("mean radius", 50),
    "F2": ("mean perimeter", 50),
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
    prior = attacks.pmf(c.known, c.size)
    found = []
    for seed in range(seeds):
        shown = release(target, c.target, c.domain, seed)
        exact = attacks.sorting(shown, attacks.pmf(c.target, c.size))
        found.append(
            _shares({a: attack(shown, prior) for a, attack in attacks.ORDER.items()}, c)
            | _shares({"best possible": exact}, c)
            | {"prior alone": _prior(c)}
        )
    return _by_attack(found)


def on_method(name: str, method: Json, epsilon: float, bundled: bool, seeds: int) -> Json:
    """A mechanism attacked; the best possible is exact, all else a release by seed."""
    c = column(name, bundled)
    mechanism = Method(**method).mechanism(c.domain, epsilon)
    channel = mechanism.transition_matrix()
    prior = attacks.pmf(c.known, c.size)
    truth = attacks.pmf(c.target, c.size)
    best = [attacks.best_possible(truth, channel, k) for k in WITHIN]
    found = []
    for seed in range(seeds):
        shown = mechanism.sample(c.target, rng=SeededRng(seed)).astype(np.int64)
        share = _shares({a: attack(shown, prior) for a, attack in attacks.ORDER.items()}, c)
        share["posterior"] = [
            attacks.recovered(attacks.posterior(shown, prior, channel, k), c.target, k)
            for k in WITHIN
        ]
        found.append(share | {"prior alone": _prior(c), "best possible": best})
    return _by_attack(found) | {"total": mechanism.guarantee().total}


def on_two(name: str, other: str, target: Json, epsilon: float, bundled: bool, seeds: int) -> Json:
    """One column read from its own release, and from that of a correlated one beside it."""
    a, b = column(name, bundled), column(other, bundled)
    joint = _joint(a, b)
    found = []
    for seed in range(seeds):
        one, two = (
            _order_channel(target, c, 2 * seed + i)
            if isinstance(target, str)
            else _noise_channel(Method(**target), epsilon, c, 2 * seed + i)
            for i, c in enumerate((a, b))
        )
        guesses = [
            (
                attacks.posterior(one[0], joint.sum(axis=1), one[1], k),
                attacks.posterior_of_two(one[0], two[0], joint, one[1], two[1], k),
            )
            for k in WITHIN
        ]
        found.append(
            {
                way: [
                    attacks.recovered(g[i], a.target, k)
                    for g, k in zip(guesses, WITHIN, strict=True)
                ]
                for i, way in enumerate(("alone", "both"))
            }
        )
    correlation = float(np.corrcoef(a.target, b.target)[0, 1])
    return _by_attack(found) | {"correlation": correlation}


def big_jump(name: str, target: Json, epsilon: float, bundled: bool, games: int, seed: int) -> Json:
    """How often the distance of three released numbers tells which three values they are.

    Either the lowest value, m and m+1 were released, or m, m+1 and the highest; the attacker says
    the second if the upper distance is the larger (Boldyreva et al., EUROCRYPT 2009).
    """
    c, rng = column(name, bundled), np.random.default_rng(seed)
    m = rng.integers(1, c.size - 2, games)
    side = rng.integers(0, 2, games)
    low = np.stack([np.zeros_like(m), m, m + 1])
    high = np.stack([m, m + 1, np.full_like(m, c.size - 1)])
    asked = np.where(side, high, low)
    if isinstance(target, str):
        shown = release(target, np.concatenate([c.target, asked.reshape(-1)]), c.domain, seed)
        seen = shown[len(c.target) :].reshape(asked.shape)
    else:
        mechanism = Method(**target).mechanism(c.domain, epsilon)
        seen = mechanism.sample(asked, rng=SeededRng(seed)).astype(np.int64)
    wider = (seen[2] - seen[1]).astype(float) - (seen[1] - seen[0])
    said = np.where(wider == 0, rng.integers(0, 2, games), wider > 0)
    return {"won": float(np.mean(said == side))}


def _shares(guesses: dict[str, IntArray], c: Column) -> dict[str, list[float]]:
    return {a: [attacks.recovered(g, c.target, k) for k in WITHIN] for a, g in guesses.items()}


def _prior(c: Column) -> list[float]:
    prior = attacks.pmf(c.known, c.size)
    return [
        attacks.recovered(np.full_like(c.target, attacks.prior_guess(prior, k)), c.target, k)
        for k in WITHIN
    ]


def _by_attack(found: list[dict[str, list[float]]]) -> dict[str, Json]:
    """By attack: for each k the shares of all seeds."""
    return {a: [[f[a][i] for f in found] for i in range(len(WITHIN))] for a in found[0]}


def _joint(a: Column, b: Column) -> FloatArray:
    """The joint pmf of the known rows, a twentieth of it as if the columns were independent."""
    counts = np.zeros((a.size, b.size))
    np.add.at(counts, (a.known, b.known), 1.0)
    apart = np.outer(*(attacks.allowing(attacks.pmf(c.known, c.size)) for c in (a, b)))
    return np.asarray(0.95 * counts / counts.sum() + 0.05 * apart)


def _noise_channel(
    method: Method, epsilon: float, c: Column, seed: int
) -> tuple[IntArray, FloatArray]:
    mechanism = method.mechanism(c.domain, epsilon)
    shown = mechanism.sample(c.target, rng=SeededRng(seed)).astype(np.int64)
    return shown, mechanism.transition_matrix()


def _order_channel(target: str, c: Column, seed: int) -> tuple[IntArray, FloatArray]:
    """The sorting attack as a channel: how it errs is learnt on two halves of what is known."""
    half = len(c.known) // 2
    mine, rest = c.known[:half], c.known[half:]
    trial = attacks.sorting(release(target, mine, c.domain, seed + 1), attacks.pmf(rest, c.size))
    channel = attacks.confusion(trial, mine, c.size)
    shown = release(target, c.target, c.domain, seed)
    return attacks.sorting(shown, attacks.pmf(c.known, c.size)), channel
