"""What an attacker reads out of a released column who knows how such values are distributed.

Attacks see the released numbers and an auxiliary pmf; rows are guessed one by one, and a guess
counts when it lies within ``k`` of the truth.  ``sorting`` takes quantiles of the release for
quantiles of the values (after Naveed, Kamara and Wright, CCS 2015; own code); ``posterior`` is
Bayes' rule with the public channel, which only noise has.
"""

from __future__ import annotations

import numpy as np

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


def sorting(released: IntArray, prior: FloatArray) -> IntArray:
    """The auxiliary quantile at the middle of each symbol's share of the rows."""
    _, symbols, counts = np.unique(released, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    place = np.searchsorted(np.cumsum(prior) - 1e-12, middle).clip(0, len(prior) - 1)
    return np.asarray(place[symbols.reshape(-1)])


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


def _window(chances: FloatArray, k: int) -> FloatArray:
    """The mass within ``k`` of each place, along the last axis."""
    size = chances.shape[-1]
    whole = np.concatenate([np.zeros((*chances.shape[:-1], 1)), np.cumsum(chances, axis=-1)], -1)
    place = np.arange(size)
    upper, lower = np.minimum(place + k + 1, size), np.maximum(place - k, 0)
    return np.asarray(whole[..., upper] - whole[..., lower])
