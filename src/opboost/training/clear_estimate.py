"""An estimate of the score in the clear: for rows whose private values are known without noise.

No party has such rows, so the score is estimated from noisy held-out rows.  For each of them the
denoiser draws clean rows x from P(x | noisy row), without the label.  F(x) cannot be compared with
the held-out label: given the noisy row, a drawn row is independent of it, so the comparison would
measure noise.  Instead, a link combines the model F with G, the model of the label party's own
columns, whose values are known:

    P(label = c | x)  ~  exp(a_c + b log F_c(x) + d log G_c(own)),      0 <= b <= MAX_SLOPE.

The link is fitted to held-out labels by maximum likelihood through the noise: the chance of a row's
label is the mean of the link over its drawn clean rows.  The drawn rows with labels from the link
have the joint distribution of clean rows and labels, and F is scored on them.  If F learned nothing
from the private columns, b is 0, and F gets no credit for them.

For numbers, E[label | noisy row] = a + b E[F(x) | noisy row] + d G is linear, and is fitted to
held-out rows by least squares; b and d give the covariance of F and the label in the clear.

The noise leaves b uncertain.  The standard error of the estimate is half the distance between the
scores at b one error lower and one error higher.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Task

MAX_SLOPE = 1.5
"""The largest slope b: noise leaves slopes uncertain, and a larger one would be overconfident."""

MIN_CHANCE = 1e-6
"""Smaller probabilities are raised to this."""


@dataclass(frozen=True, slots=True)
class ClearEstimate:
    """An estimated score, and its standard error due to the uncertain slope."""

    value: float
    error: float


def clear_estimate(
    task: Task, guesses: FloatArray, own: FloatArray | None, y: np.ndarray[Any, Any]
) -> ClearEstimate:
    """Estimate the metric of a task for clean rows.

    Args:
        task: The kind of label.
        guesses: The model's predictions for clean rows drawn without the label: ``[row, draw,
            class]``, or ``[row, draw]`` for numbers.
        own: What own columns predict for these rows by themselves; None if there are none.
        y: The held-out labels of the rows.
    """
    if task == "regression":
        return _r2(guesses, own, y)
    logs = [np.log(np.maximum(guesses, MIN_CHANCE))]
    if own is not None:
        logs.append(np.log(np.maximum(own, MIN_CHANCE))[:, None, :])
    link, error = _fitted_link(logs, y.astype(np.int64))
    chosen = guesses.argmax(axis=2)[..., None]
    ranked = _Ranking.of(guesses[..., 1].ravel()) if task == "binary" else None

    def score(slope: float) -> float:
        chance = _linked(logs, np.array([np.clip(slope, 0.0, MAX_SLOPE), *link[1:]]))
        if ranked is not None:
            return ranked.auc(chance[..., 1].ravel())
        return float(np.take_along_axis(chance, chosen, axis=2).mean())

    low, high = score(link[0] - error), score(link[0] + error)
    return ClearEstimate(score(link[0]), abs(high - low) / 2)


def _linked(logs: list[FloatArray], link: FloatArray) -> FloatArray:
    """Return each class's chance under a link: a slope per model, then an intercept per class."""
    score = np.concatenate([[0.0], link[len(logs) :]])
    for slope, part in zip(link, logs, strict=False):
        score = score + slope * part
    score = np.exp(score - score.max(axis=2, keepdims=True))
    return np.asarray(score / score.sum(axis=2, keepdims=True))


def _fitted_link(logs: list[FloatArray], y: np.ndarray[Any, Any]) -> tuple[FloatArray, float]:
    """Return the link under which held-out labels are likeliest, and its first slope's error.

    The likelihood of the labels is conditional on the noisy rows; its curvature gives the error.
    """
    rows, _, classes = logs[0].shape
    truth = np.eye(classes)[y][:, None, :]

    def loss(link: FloatArray) -> tuple[float, FloatArray]:
        chance = _linked(logs, link)
        of_truth = np.take_along_axis(chance, y[:, None, None], axis=2)[..., 0]
        share = of_truth / of_truth.sum(axis=1, keepdims=True)
        gap = share[..., None] * (truth - chance)
        gradient = [float((gap * part).sum()) for part in logs]
        gradient += gap.sum(axis=(0, 1))[1:].tolist()
        return float(-np.log(of_truth.mean(axis=1)).mean()), -np.array(gradient) / rows

    slopes = [(0.0, MAX_SLOPE), (-MAX_SLOPE, MAX_SLOPE)][: len(logs)]
    bounds = slopes + [(-10.0, 10.0)] * (classes - 1)
    start = np.array([1.0] + [0.0] * (len(bounds) - 1))
    from scipy.optimize import minimize

    found: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    steps = np.eye(len(found)) * 1e-4
    curvature = np.array([(loss(found + h)[1] - loss(found - h)[1]) / 2e-4 for h in steps])
    variance = np.linalg.pinv(curvature)[0, 0] / rows
    return found, float(np.sqrt(variance)) if variance > 0 else MAX_SLOPE


@dataclass(frozen=True, slots=True, eq=False)
class _Ranking:
    """Rows by decreasing score, sorted once; ``last`` holds the last row of each distinct score."""

    order: IntArray
    last: IntArray

    @classmethod
    def of(cls, score: FloatArray) -> _Ranking:
        order = np.argsort(-score, kind="stable")
        return cls(order, np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1))

    def auc(self, chance: FloatArray) -> float:
        """Return the AUC if each row is positive with its chance, and negative otherwise."""
        positive = chance[self.order]
        up = np.append(0.0, positive.cumsum()[self.last])
        right = np.append(0.0, (1 - positive).cumsum()[self.last])
        return float(np.trapezoid(up, right) / (up[-1] * right[-1]))


def _r2(guesses: FloatArray, own: FloatArray | None, y: np.ndarray[Any, Any]) -> ClearEstimate:
    mean, wanted = guesses.mean(axis=1), y - y.mean()
    known = [mean] if own is None else [mean, own]
    centred = np.column_stack([part - part.mean() for part in known])
    slopes = np.linalg.lstsq(centred, wanted, rcond=None)[0]
    left = wanted - centred @ slopes
    scatter = np.linalg.pinv(centred.T @ centred)[0, 0]
    error = float(np.sqrt(scatter * (left**2).mean()))
    spread, total = float(guesses.var()), max(float(wanted.var()), 1e-12)
    bias = float(y.mean() - guesses.mean())

    def score(first: float) -> float:
        slope = float(np.clip(first, 0.0, MAX_SLOPE))
        common = slope * spread
        if own is not None:
            apart = wanted - slope * centred[:, 0]
            second = float(centred[:, 1] @ apart) / max(float(centred[:, 1] @ centred[:, 1]), 1e-12)
            common += second * float((centred[:, 1] * centred[:, 0]).mean())
        return 1 - (total - 2 * common + spread + bias**2) / total

    low, high = score(slopes[0] - error), score(slopes[0] + error)
    return ClearEstimate(score(slopes[0]), abs(high - low) / 2)
