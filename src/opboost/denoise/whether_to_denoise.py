"""Decide whether to denoise at all, on noisy rows whose labels no model has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray

MIN_ROWS = 300
"""With fewer rows, the held-out ones are too few to decide, and rows are not denoised."""

SLOPES = tuple(0.1 * k for k in range(16))

MIN_VARIANCE_SHARE = 0.5
"""At least this share of the predictions' variance counts as information, however few the guesses.
Otherwise, the difference of two noisy variances could be tiny and make a loss negative."""


FEW_ROWS = 2_000
"""With fewer rows than this, held-out rows favour draws, so draws must win by more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Mean held-out losses after training on noisy rows and on draws, and their paired error.

    ``error`` is the standard error of their difference.  ``slack`` is how many such errors worse
    draws may be.  At high noise, the losses differ by less than the error, and draws usually help:
    slack is 1.  Where noisy rows already predict most of the label, there is little to gain, and
    draws must be better: slack falls to −1, and further if there are few rows.
    """

    naive: float
    denoised: float
    error: float
    slack: float = 1.0

    @classmethod
    def of(cls, naive: FloatArray, denoised: FloatArray, null: FloatArray, rows: int) -> Verdict:
        """Compare losses on the same held-out rows; ``null`` holds those without any column.

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
        """Whether draws are worse than noisy rows by at most ``slack`` standard errors."""
        return self.denoised - self.naive <= self.slack * self.error


def null_losses(y: FloatArray, task: str, classes: int) -> FloatArray:
    """Return the losses of predicting the mean, or the classes' shares, for every row."""
    if task == "regression":
        return losses(np.full(len(y), y.mean()), y, task)
    share = np.bincount(y.astype(np.int64), minlength=classes) + 0.5
    return losses(np.tile(share / share.sum(), (len(y), 1)), y, task)


def losses(
    prediction: FloatArray, y: FloatArray, task: str, variance: FloatArray | float = 0.0
) -> FloatArray:
    """Return each row's squared error, or minus the logarithm of the true class's probability.

    Predictions are first shrunk towards the mean by the amount that suits these rows best.  So the
    loss measures how well they distinguish rows, not how confident they are.  Otherwise a model of
    noisy rows would look good only because its predictions are timid.  ``variance`` is the
    predictions' own variance, since they are means of few guesses.
    """
    if task == "regression":
        centred, wanted = prediction - prediction.mean(), y - y.mean()
        spread = float((centred**2).mean())
        power = max(spread - float(np.mean(variance)), MIN_VARIANCE_SHARE * spread, 1e-12)
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
    """Return the loss of predictions without shrinking them.

    >>> mean_loss(np.array([1.0, 3.0]), np.array([1.0, 1.0]), "regression")
    2.0
    """
    if task == "regression":
        return float(((prediction - y) ** 2).mean())
    of_truth = prediction[np.arange(len(y)), y.astype(np.int64)]
    return float(-np.log(np.maximum(of_truth, 1e-12)).mean())
