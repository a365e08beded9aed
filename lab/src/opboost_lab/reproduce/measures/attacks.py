"""Attacks on a released column by somebody who knows the distribution of such values.

Rows are guessed one by one, and a guess is right if it is within ``k`` cells of the truth.
``sorting`` matches quantiles of the release to quantiles of the values (after Naveed, Kamara and
Wright, CCS 2015; our own code).
"""

from functools import lru_cache

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.grid import Domain, NumericMapping
from opboost.mechanisms.ope import OrderPreservingEncryption
from opboost_lab.data import datasets
from opboost_lab.data.bundled import breast_cancer
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

OPE = "OPE"
CELLS = {"age": 74, "age, ten cells": 10}
"""Ages with one cell per year, and on the grid of the paper's experiments."""
WITHIN = {"age": 1, "age, ten cells": 0}
"""How many cells a guess may be off."""


@lru_cache(maxsize=4)
def halves(name: str, bundled: bool) -> tuple[IntArray, IntArray, int]:
    """Return the known and the attacked half of a column on a grid from 0, and the grid's size."""
    data, size = breast_cancer() if bundled else datasets.adult(), CELLS[name]
    column = "mean texture" if bundled else "age"
    raw = data.train.column(column).to_numpy().astype(np.float64)
    (low, high), edge = data.bounds[column], 0.5 if size > 10 else 0.0
    mapping = NumericMapping(Domain(0, size - 1), (low - edge, high + edge))
    cells = mapping.to_grid(raw).astype(np.int64)
    known, attacked = np.array_split(np.random.default_rng(0).permutation(cells), 2)
    return known, attacked, size


def by_order(name: str, bundled: bool) -> Json:
    """Return the shares recovered from plain order, from a cipher, and by one guess for all."""
    known, target, size = halves(name, bundled)
    cipher = OrderPreservingEncryption(Domain(0, size - 1), key=bytes(32))
    prior, k = pmf(known, size), WITHIN[name]
    guesses: dict[str, IntArray | int] = {
        "plain order": sorting(np.unique(target, return_inverse=True)[1].reshape(-1), prior),
        OPE: sorting(cipher.sample(target), prior),
        "prior alone": prior_guess(prior, k),
    }
    return {way: recovered(guess, target, k) for way, guess in guesses.items()}


def by_noise(name: str, method: Json, epsilon: float, bundled: bool) -> Json:
    """Return the exact share that the best possible attack on a mechanism recovers."""
    _, target, size = halves(name, bundled)
    mechanism = Method(**method).mechanism(Domain(0, size - 1), epsilon)
    return best_possible(pmf(target, size), mechanism.transition_matrix(), WITHIN[name])


def pmf(cells: IntArray, size: int) -> FloatArray:
    """Return the share of each cell 0..size−1."""
    return np.bincount(cells, minlength=size) / len(cells)


def recovered(guess: IntArray | int, truth: IntArray, k: int) -> float:
    """Return the share of rows guessed within ``k``."""
    return float(np.mean(np.abs(guess - truth) <= k))


def prior_guess(prior: FloatArray, k: int) -> int:
    """Return the one guess that is right most often without a release."""
    return int(np.argmax(_window(prior[None, :], k)[0]))


def sorting(released: IntArray, prior: FloatArray) -> IntArray:
    """Return the known quantile at the middle of each symbol's share of the rows."""
    _, symbols, counts = np.unique(released, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    place = np.searchsorted(np.cumsum(prior) - 1e-12, middle).clip(0, len(prior) - 1)
    return np.asarray(place[symbols.reshape(-1)])


def best_possible(prior: FloatArray, channel: FloatArray, k: int) -> float:
    """Return the chance that the best guess is right, given the true pmf and the noise matrix.

    >>> best_possible(np.array([0.5, 0.25, 0.25]), np.eye(3), 0)
    1.0
    >>> best_possible(np.array([0.5, 0.25, 0.25]), np.full((3, 3), 1 / 3), 0)
    0.5
    """
    joint = prior[:, None] * channel
    return float(_window(joint.T, k).max(axis=1).sum())


def _window(chances: FloatArray, k: int) -> FloatArray:
    """Return the mass within ``k`` of each place, along the last axis."""
    size = chances.shape[-1]
    whole = np.concatenate([np.zeros((*chances.shape[:-1], 1)), np.cumsum(chances, axis=-1)], -1)
    place = np.arange(size)
    upper, lower = np.minimum(place + k + 1, size), np.maximum(place - k, 0)
    return np.asarray(whole[..., upper] - whole[..., lower])
