"""Whether to denoise at all, decided on noisy rows whose labels no model has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray

MIN_ROWS = 300
"""With fewer rows the held-out ones tell nothing, and rows stay as they are."""

SLOPES = tuple(0.1 * k for k in range(16))

MIN_INFORMATION_NATS = 0.5
"""At least this part of predictions' spread is taken for what they tell, however few the guesses:
what is left of noise by noise may be anything, and would be scaled up to a loss below zero."""


FEW_ROWS = 2_000
"""With fewer rows than this, held-out ones flatter draws, and what came counts for more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Mean held-out losses of training on rows as they came and on draws, and the paired error.

    ``slack`` is how many errors draws may be worse by.  At high noise all losses lie within the
    error, and there draws are what helps: it is 1.  Where rows as they came tell most of the label
    there is little to win, and draws must be better: it falls to −1, further with few rows.
    """

    naive: float
    denoised: float
    error: float
    slack: float = 1.0

    @classmethod
    def of(cls, naive: FloatArray, denoised: FloatArray, null: FloatArray, rows: int) -> Verdict:
        """From the losses of the same held-out rows; ``null`` are those of knowing no column.

        >>> Verdict.of(np.array([1.0, 2.0, 1.5]), np.array([1.1, 2.1, 1.7]), np.full(3, 2), 9_000)
        Verdict(naive=1.5, denoised=1.63..., error=0.03..., slack=1.0)
        """
        gap = denoised - naive
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
        skill = 1 - float(naive.mean()) / max(float(null.mean()), 1e-12)
        slack = 1 - 4 * max(0.0, skill * max(1.0, FEW_ROWS / rows) - 0.5)
        return cls(float(naive.mean()), float(denoised.mean()), error, slack)

    @property
    def denoise(self) -> bool:
        """The rule."""
        return self.denoised - self.naive <= self.slack * self.error


def null_losses(y: FloatArray, task: str, classes: int) -> FloatArray:
    """What it costs to predict the mean, or the classes' shares, for every row."""
    if task == "regression":
        return losses(np.full(len(y), y.mean()), y, task)
    share = np.bincount(y.astype(np.int64), minlength=classes) + 0.5
    return losses(np.tile(share / share.sum(), (len(y), 1)), y, task)


def losses(
    prediction: FloatArray, y: FloatArray, task: str, variance: FloatArray | float = 0.0
) -> FloatArray:
    """Row by row: squared errors, or minus the logarithm of the true class's probability.

    Predictions are drawn towards the mean as far as suits these rows best, so that what counts is
    how well they tell rows apart, not how sure they are of it: a model of noisy rows is timid, and
    that would be held for a virtue.  ``variance`` is what predictions have of their own, as means
    of few guesses.
    """
    if task == "regression":
        centred, wanted = prediction - prediction.mean(), y - y.mean()
        spread = float((centred**2).mean())
        power = max(spread - float(np.mean(variance)), MIN_INFORMATION_NATS * spread, 1e-12)
        slope = max(float((centred * wanted).mean()) / power, 0.0)
        return np.asarray((wanted - slope * centred) ** 2 - slope**2 * variance)
    true = y.astype(np.int64)
    prior = np.bincount(true, minlength=prediction.shape[1]) + 0.5
    prior = prior / prior.sum()
    odds = np.log(np.maximum(prediction, 1e-12)) - np.log(prior)
    found = []
    for slope in SLOPES:
        score = np.log(prior) + slope * odds
        score -= score.max(axis=1, keepdims=True)
        found.append(np.log(np.exp(score).sum(axis=1)) - score[np.arange(len(true)), true])
    return np.asarray(min(found, key=np.mean))


def mean_loss(prediction: FloatArray, y: FloatArray, task: str) -> float:
    """The loss of predictions as they are, not drawn towards anything.

    >>> mean_loss(np.array([1.0, 3.0]), np.array([1.0, 1.0]), "regression")
    2.0
    """
    if task == "regression":
        return float(((prediction - y) ** 2).mean())
    of_truth = prediction[np.arange(len(y)), y.astype(np.int64)]
    return float(-np.log(np.maximum(of_truth, 1e-12)).mean())
