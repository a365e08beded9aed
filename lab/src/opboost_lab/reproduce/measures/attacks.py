"""What an attacker reads out of a released column who knows how such values are distributed.

All attacks see the released numbers and an auxiliary pmf; rows are guessed one by one, and a guess
counts when it lies within ``k`` of the truth.  The ideas are those of the papers named, the code is
ours:

* ``gaps``: a value lies between the ends as its cipher does; the distances that Boldyreva et al.
  show no order-preserving cipher to hide (EUROCRYPT 2009: "big jump"; CRYPTO 2011);
* ``sorting``: quantiles of the release are quantiles of the values (Naveed, Kamara and Wright,
  CCS 2015: sorting and cumulative attacks);
* ``frequency``: one value a symbol, by the assignment that brings frequencies and cumulated
  frequencies nearest (the same);
* ``multinomial``: the rising assignment under which the counts are likeliest (Bindschaedler et
  al., PVLDB 2018: multinomial attack; Grubbs et al., S&P 2017: matchings that do not cross);
* ``posterior``: Bayes' rule with the public channel, which only noise has.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from opboost._typing import FloatArray, IntArray


def pmf(cells: IntArray, size: int) -> FloatArray:
    """The share of each cell 0..size−1."""
    return np.bincount(cells, minlength=size) / len(cells)


def allowing(prior: FloatArray) -> FloatArray:
    """The same, where a value never seen has half the chance of the rarest: it is not impossible.

    >>> allowing(np.array([0.5, 0.0, 0.5])).tolist()
    [0.4, 0.2, 0.4]
    """
    likely = np.maximum(prior, prior[prior > 0].min() / 2)
    return np.asarray(likely / likely.sum())


def recovered(guess: IntArray, truth: IntArray, k: int) -> float:
    """The share of rows guessed within ``k``."""
    return float(np.mean(np.abs(guess - truth) <= k))


def prior_guess(prior: FloatArray, k: int) -> int:
    """The one guess that is right most often for someone who sees no release."""
    return int(np.argmax(_window(prior[None, :], k)[0]))


def gaps(released: IntArray, prior: FloatArray) -> IntArray:
    """Each value as far between the grid's ends as its number is between the extreme ones.

    >>> gaps(np.array([1000, 1500, 2000]), np.full(11, 1 / 11)).tolist()
    [0, 5, 10]
    """
    low, high = int(released.min()), int(released.max())
    share = (released - low) / max(high - low, 1)
    return np.rint(share * (len(prior) - 1)).astype(np.int64)


def sorting(released: IntArray, prior: FloatArray) -> IntArray:
    """The auxiliary quantile at the middle of each symbol's share of the rows."""
    symbols, counts = _symbols(released)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    place = np.searchsorted(np.cumsum(prior) - 1e-12, middle).clip(0, len(prior) - 1)
    return np.asarray(place[symbols])


def frequency(released: IntArray, prior: FloatArray) -> IntArray:
    """A value of its own for each symbol, frequencies and cumulated frequencies as near as can be.

    >>> frequency(np.array([7, 7, 7, 9, 30, 30]), np.array([0.5, 0.2, 0.3])).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    symbols, counts = _symbols(released)
    share = counts / counts.sum()
    cost = np.abs(share[:, None] - prior) + np.abs(np.cumsum(share)[:, None] - np.cumsum(prior))
    which = np.zeros(len(counts), dtype=np.int64)
    rows, columns = linear_sum_assignment(cost)
    which[rows] = columns
    return which[symbols]


def multinomial(released: IntArray, prior: FloatArray) -> IntArray:
    """The strictly rising assignment of symbols to values that makes their counts likeliest.

    >>> multinomial(np.array([7, 7, 7, 9, 30, 30]), np.array([0.5, 0.0, 0.2, 0.3])).tolist()
    [0, 0, 0, 2, 3, 3]
    """
    symbols, counts = _symbols(released)
    symbol_count, values = len(counts), len(prior)
    if symbol_count > values:  # noise beyond the grid: nothing to assign strictly
        return sorting(released, prior)
    gain = counts[:, None] * np.log(allowing(prior))
    best = np.full((symbol_count + 1, values + 1), -np.inf)
    best[0] = 0.0
    for s in range(symbol_count):
        taken = best[s, :-1] + gain[s]
        best[s + 1, 1:] = np.maximum.accumulate(taken)
    which = np.empty(symbol_count, dtype=np.int64)
    v = values
    for s in range(symbol_count - 1, -1, -1):
        while v > 1 and best[s + 1, v - 1] == best[s + 1, v]:
            v -= 1
        v -= 1
        which[s] = v
    return which[symbols]


def posterior(released: IntArray, prior: FloatArray, channel: FloatArray, k: int) -> IntArray:
    """The guess of highest posterior chance within ``k``; ``channel[x, y]`` is public."""
    joint = allowing(prior)[:, None] * channel
    return np.asarray(np.argmax(_window(joint.T, k), axis=1)[released])


def best_possible(prior: FloatArray, channel: FloatArray, k: int) -> float:
    """The chance of the best guess of any attacker who knows the true pmf and the channel.

    >>> best_possible(np.array([0.5, 0.25, 0.25]), np.eye(3), 0)
    1.0
    >>> best_possible(np.array([0.5, 0.25, 0.25]), np.full((3, 3), 1 / 3), 0)
    0.5
    """
    joint = prior[:, None] * channel
    return float(_window(joint.T, k).max(axis=1).sum())


def best_of_two(joint: FloatArray, channel: FloatArray, other: FloatArray, k: int) -> float:
    """The same for a value of which a correlated one is released too; ``joint[x1, x2]``."""
    right = 0.0
    behind = joint @ other  # [x1, y2]
    for y in range(channel.shape[1]):
        right += float(_window((channel[:, y][:, None] * behind).T, k).max(axis=1).sum())
    return right


def posterior_of_two(
    released: IntArray,
    other_released: IntArray,
    joint: FloatArray,
    channel: FloatArray,
    other: FloatArray,
    k: int,
) -> IntArray:
    """The guess from both columns (after Durak, DuBuisson and Cash, CCS 2016)."""
    behind = joint @ other
    guess = np.empty((channel.shape[1], other.shape[1]), dtype=np.int64)
    for y in range(channel.shape[1]):
        guess[y] = np.argmax(_window((channel[:, y][:, None] * behind).T, k), axis=1)
    return np.asarray(guess[released, other_released])


def confusion(guess: IntArray, truth: IntArray, size: int) -> FloatArray:
    """An attack's guesses as a channel, learnt where the truth is known; near ones are likelier."""
    place = np.arange(size)
    counts = 0.5 * np.exp(-np.abs(place[:, None] - place).astype(float))
    np.add.at(counts, (truth, guess), 1.0)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


ORDER: dict[str, Callable[[IntArray, FloatArray], IntArray]] = {
    "gaps": gaps,
    "sorting": sorting,
    "frequency": frequency,
    "multinomial": multinomial,
}
"""The attacks that need no channel, by name."""


def _symbols(released: IntArray) -> tuple[IntArray, IntArray]:
    _, symbols, counts = np.unique(released, return_inverse=True, return_counts=True)
    return symbols.reshape(-1), counts


def _window(chances: FloatArray, k: int) -> FloatArray:
    """The mass within ``k`` of each place, along the last axis."""
    size = chances.shape[-1]
    whole = np.concatenate([np.zeros((*chances.shape[:-1], 1)), np.cumsum(chances, axis=-1)], -1)
    place = np.arange(size)
    upper, lower = np.minimum(place + k + 1, size), np.maximum(place - k, 0)
    return np.asarray(whole[..., upper] - whole[..., lower])
