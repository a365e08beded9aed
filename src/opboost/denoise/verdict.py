"""Whether to denoise at all, decided on noisy rows whose labels no model has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray

LEAST_ROWS = 300
"""With fewer rows the held-out ones tell nothing, and rows stay as they are."""

SLOPES = tuple(0.1 * k for k in range(16))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Mean held-out losses of training on rows as they came and on draws, and the paired error.

    Denoise, unless plain rows are better by more than the paired standard error: at high noise all
    losses lie within it, and there draws are what helps.  With ``sure`` it is the other way round,
    for large tables: their rows as they came have little left to gain, so draws must be better by
    more than the error.
    """

    naive: float
    denoised: float
    error: float
    sure: bool = False

    @classmethod
    def of(cls, naive: FloatArray, denoised: FloatArray, *, sure: bool = False) -> Verdict:
        """From the losses of the same rows.

        >>> Verdict.of(np.array([1.0, 2.0, 1.5]), np.array([1.1, 2.1, 1.7])).denoise
        False
        """
        gap = denoised - naive
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
        return cls(float(naive.mean()), float(denoised.mean()), error, sure)

    @property
    def denoise(self) -> bool:
        """The rule."""
        return self.denoised - self.naive <= (-self.error if self.sure else self.error)


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
        power = float((centred**2 - variance).mean())
        slope = max(float((centred * wanted).mean()) / max(power, 1e-12), 0.0)
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
