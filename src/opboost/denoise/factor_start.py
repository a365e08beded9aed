"""Start latent classes along the directions in which columns vary together.

A row that sends few columns says little.  But all rows that send two given columns show how these
two vary together within a label group.  The correlations of all pairs, shrunk by their errors, give
a few common factors.  Each class starts as a point on these factors, and EM continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, FloatArray
from opboost.denoise.encoded_rows import EncodedRows, Index, Table
from opboost.denoise.label_groups import Groups

MAX_FACTORS = 5
MAX_EXPLAINED = 0.9
"""The largest share of a column's variance that factors may explain."""

MIN_EXPLAINED = 1e-4
"""Classes do not differ in a column if factors explain less than this share of its variance."""

MAX_SHIFT = 2.0
"""The most standard deviations by which a class's mean differs from its group's."""

MIN_PAIR_ROWS = 3
"""A pair of columns counts only if at least this many rows sent both."""

COMMUNALITY_STEPS = 8


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScores:
    """A score for each state and each output of a column.

    Given a state, the mean score of its outputs is the score of the state.

    ``told`` marks the outputs that carry information: none if the column has no order.
    """

    states: FloatArray
    outputs: FloatArray
    told: BoolArray

    @classmethod
    def of(cls, index: Index, j: int, pmf: FloatArray) -> ColumnScores:
        """Derive the scores from the noise matrix; they have variance one under the pmf."""
        states = len(pmf)
        matrix = index.matrix[index.places[j] : index.places[j + 1]].reshape(states, -1)
        outputs = matrix.shape[1]
        told = np.ones(outputs, dtype=np.bool_)
        in_order = states if index.exact[j] else int(index.lines[j, 0, 0])
        if index.unsent[j] >= 0 or states > in_order:
            told[-1] = False  # not sent, or missing
        place = np.arange(states, dtype=np.float64)
        weight = np.where(place < in_order, pmf, 0.0).astype(np.float64)
        weight /= max(float(weight.sum()), 1e-12)
        mean = float(weight @ place)
        score = np.where(place < in_order, place - mean, 0.0)
        score /= np.sqrt(max(float(weight @ score**2), 1e-12))
        seen = matrix[:, told].astype(np.float64)
        seen /= np.maximum(seen.sum(axis=1, keepdims=True), 1e-12)
        number = np.arange(outputs, dtype=np.float64)[told]
        middle = float(weight @ (seen @ number))
        slope = float(weight @ (score * (seen @ number - middle)))
        found = np.zeros(outputs)
        is_pair = index.lines[j, 1, 0] > 0
        if in_order < 2 or is_pair or abs(slope) < 1e-6:
            return cls(score, found, np.zeros(outputs, dtype=np.bool_))
        found[told] = (number - middle) / slope
        return cls(score, found, told)


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """``loadings[g, j, f]`` of standardised columns on factors, and variances ``spread[g, j]``."""

    scores: tuple[ColumnScores, ...]
    loadings: FloatArray
    spread: FloatArray
    is_shared: bool

    @classmethod
    def of(cls, pmfs: Table, index: Index, rows: EncodedRows, groups: Groups) -> Factors | None:
        """Return the factors of rows whose groups have these pmfs; None if no pair is informative.

        Ordered groups share their factors, so that a class means the same in neighbouring groups.
        """
        size = np.maximum(rows.sizes, 1)
        whole = size @ pmfs / size.sum()
        columns = range(len(index.offsets))
        scores = tuple(
            ColumnScores.of(index, j, whole[index.starts[j] : index.starts[j + 1]]) for j in columns
        )
        if sum(bool(s.told.any()) for s in scores) < 2:
            return None
        spread = _spread(pmfs, index, scores)
        value, error = _correlations(index, rows, scores, spread)
        pooled, pooled_error = _pooled(value, error)
        signal = _signal(pooled, pooled_error)
        shared = pooled * _kept(signal, pooled_error)
        if groups.ordered:
            if signal <= 0:
                return None
            loadings = np.repeat(_loadings(shared)[None], len(pmfs), axis=0)
            return cls(scores, loadings, spread, True)
        own = value - pooled
        own_signal = _signal(own, error)
        if signal <= 0 and own_signal <= 0:
            return None
        best = shared + own * _kept(own_signal, error)
        return cls(scores, np.stack([_loadings(r) for r in best]), spread, False)

    def write_classes(self, pmfs: Table, index: Index, P: Table, rng: np.random.Generator) -> None:
        """Write ``P[g, x, c]`` of the columns that have scores: each class is a point on factors.

        A class's pmf is the group's, weighted by a normal curve around the class's mean.  So all
        classes together have about the group's pmf again.
        """
        classes, width = P.shape[2], self.loadings.shape[2]
        drawn = [_points(classes, width, rng) for _ in range(1 if self.is_shared else len(pmfs))]
        points = np.broadcast_to(np.stack(drawn), (len(pmfs), *drawn[0].shape))
        load = self.loadings[:, :, : points.shape[2]]
        explained = (load**2).sum(axis=2)
        shifts = np.clip(points @ load.transpose(0, 2, 1), -MAX_SHIFT, MAX_SHIFT)
        for j, score in enumerate(self.scores):
            own = np.flatnonzero(explained[:, j] >= MIN_EXPLAINED)
            if not len(own) or not score.told.any():
                continue
            column = slice(index.starts[j], index.starts[j + 1])
            pmf = pmfs[own, column].astype(np.float64)
            part = explained[own, j, None]
            place = (score.states - pmf @ score.states[:, None]) / np.sqrt(
                self.spread[own, j, None]
            )
            gap = place[:, :, None] - (shifts[own, :, j] / part)[:, None, :]
            curve = -(part / (2 * (1 - part)))[:, :, None] * gap**2
            made = pmf[:, :, None] * np.exp(
                np.maximum(curve - curve.max(axis=1, keepdims=True), -30)
            )
            made /= np.maximum(made.sum(axis=1, keepdims=True), 1e-30)
            P[own, column] = 0.95 * made + 0.05 * pmf[:, :, None]


def _spread(pmfs: Table, index: Index, scores: tuple[ColumnScores, ...]) -> FloatArray:
    """Return ``[g, j]``: the variance of each column's score within each group."""
    found = np.empty((len(pmfs), len(scores)))
    for j, score in enumerate(scores):
        pmf = pmfs[:, index.starts[j] : index.starts[j + 1]].astype(np.float64)
        mean = pmf @ score.states
        found[:, j] = pmf @ score.states**2 - mean**2
    return np.maximum(found, 1e-4)


def _correlations(
    index: Index, rows: EncodedRows, scores: tuple[ColumnScores, ...], spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``[g, i, j]`` correlations of clean columns within groups, and their squared errors.

    The noise of two columns is independent, so products of two scores are unbiased.
    """
    width = len(scores)
    value = np.zeros((rows.groups, width, width))
    error = np.full((rows.groups, width, width), np.inf)
    for g in range(rows.groups):
        own = rows.units[rows.units[:, 0] == g]
        if not len(own):
            continue
        codes = rows.codes[own[0, 1] : own[-1, 2]]
        z = np.column_stack([s.outputs[codes[:, j]] for j, s in enumerate(scores)])
        told = np.column_stack([s.told[codes[:, j]] for j, s in enumerate(scores)]).astype(float)
        alone = np.maximum(told.sum(axis=0), 1)
        z = (z - (z * told).sum(axis=0) / alone) * told
        both = told.T @ told
        noise = (z**2).sum(axis=0) / alone
        scale = np.outer(spread[g], spread[g])
        value[g] = z.T @ z / np.maximum(both, 1) / np.sqrt(scale)
        known = (both >= MIN_PAIR_ROWS) & (np.outer(noise, noise) > 0)
        np.fill_diagonal(known, False)
        error[g] = np.where(known, np.outer(noise, noise) / np.maximum(both, 1) / scale, np.inf)
        value[g][~known] = 0.0
    return value, error


def _pooled(value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over groups, weighted by how precise each group's value is."""
    weight = 1 / np.maximum(error, 1e-9)
    whole = weight.sum(axis=0)
    mean = (weight * value).sum(axis=0) / np.maximum(whole, 1e-12)
    return mean, np.divide(1.0, whole, out=np.full_like(whole, np.inf), where=whole > 0)


def _signal(value: FloatArray, error: FloatArray) -> float:
    """Return the mean square of the values beyond what their errors explain."""
    known = np.isfinite(error)
    if not known.any():
        return 0.0
    return max(float((value[known] ** 2 - error[known]).mean()), 0.0)


def _kept(signal: float, error: FloatArray) -> FloatArray:
    """Return the share of each value that is kept, given its error."""
    if signal <= 0:
        return np.zeros_like(error)
    return np.where(np.isfinite(error), signal / (signal + error), 0.0)


def _loadings(correlation: FloatArray) -> FloatArray:
    """Return ``[j, f]``: a factor analysis of correlations whose diagonal is not known."""
    off = np.clip(correlation, -0.98, 0.98)
    np.fill_diagonal(off, 0.0)
    width = min(MAX_FACTORS, len(off))
    explained = np.abs(off).max(axis=0)
    found = np.zeros((len(off), width))
    for _ in range(COMMUNALITY_STEPS):
        np.fill_diagonal(off, explained)
        value, vector = np.linalg.eigh(off)
        top = np.argsort(-value)[:width]
        found = vector[:, top] * np.sqrt(np.maximum(value[top], 0.0))
        explained = np.clip((found**2).sum(axis=1), 0.0, MAX_EXPLAINED)
    size = (found**2).sum(axis=1, keepdims=True) / MAX_EXPLAINED
    return np.asarray(found / np.sqrt(np.maximum(size, 1.0)))


def _points(classes: int, most: int, rng: np.random.Generator) -> Any:
    """Return ``[c, f]``: points of mean zero and covariance one; few classes use few factors."""
    width = min(most, max(1, classes.bit_length() - 1))
    drawn = rng.normal(size=(classes, width))
    orthogonal, _ = np.linalg.qr(drawn - drawn.mean(axis=0))
    return orthogonal * np.sqrt(classes)
