"""Estimate a column's distribution from its noisy values: a deconvolved histogram with errors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opboost._typing import ArrayLike, FloatArray, IntArray
from opboost.denoise.noise_matrix import NoiseMatrix, noise_matrix_of
from opboost.errors import DataError, ParameterError
from opboost.grid import Domain
from opboost.mechanisms import Mechanism

LOOKS = (0, 4, 8, 16, 32, 64, 128, 256, 512)
"""The numbers of EM steps after which a fit is evaluated on held-out values."""

SMOOTHINGS = (0.0, 0.01, 0.03, 0.1, 0.3)
"""Candidate smoothings: the share of a cell's mass that each step moves to its neighbours."""

MAX_RECONSTRUCTED_CELLS = 2048
"""The most cells of a grid; a model of many columns allows fewer, because each needs a table."""

FOLDS = 5
REPEATS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """The distribution of the clean column that best explains the noisy one.

    ``pmf[k]`` is the share of cell ``domain.L + k``.  ``error[k]`` is its standard error, from
    histograms that are simulated from the fitted distribution.  Post-processing: it costs no
    privacy.
    """

    domain: Domain
    pmf: FloatArray
    error: FloatArray
    steps: int
    smoothing: float

    @property
    def cells(self) -> FloatArray:
        """The grid values."""
        return np.arange(self.domain.L, self.domain.R + 1, dtype=np.float64)

    @property
    def mean(self) -> float:
        """The mean of the clean column, in grid values."""
        return float(self.pmf @ self.cells)

    def quantile(self, share: ArrayLike) -> FloatArray:
        """Return, per share, the smallest cell such that this share of rows lies at or below it."""
        wanted = np.asarray(share, dtype=np.float64)
        if ((wanted < 0) | (wanted > 1) | np.isnan(wanted)).any():
            raise ParameterError(f"A share must lie between 0 and 1; got {share!r}.")
        place = np.searchsorted(self.pmf.cumsum(), wanted - 1e-12)
        return np.asarray(self.cells[np.minimum(place, len(self.pmf) - 1)])

    def range(self, queries: ArrayLike) -> FloatArray:
        """Return the share of rows in each range (a row of ``queries``), both ends included."""
        ranges = np.asarray(queries)
        if ranges.ndim != 2 or ranges.shape[1] != 2:
            raise DataError(f"queries must have shape (n, 2); got {ranges.shape}")
        if (ranges[:, 0] > ranges[:, 1]).any():
            raise DataError("A query must not end before it begins")
        rise = np.concatenate([[0.0], self.pmf.cumsum()])
        begin = np.searchsorted(self.cells, ranges[:, 0], side="left")
        end = np.searchsorted(self.cells, ranges[:, 1], side="right")
        return np.asarray(rise[end] - rise[begin])


def reconstruct(values: ArrayLike, m: Mechanism, *, seed: int = 0) -> Reconstruction:
    """Estimate the column that ``m`` released: pmf, error, mean, quantiles, range queries.

    This runs EM through the transition matrix.  Held-out values choose how many steps it takes, and
    how smooth the result is along the grid.  Cost: O(n) once, then O(cells²) per step.

    >>> import numpy as np, opboost as op
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> clean = np.repeat([2, 3, 9], [6000, 3000, 1000])
    >>> found = op.reconstruct(m.sample(clean, rng=op.SeededRng(7)), m)
    >>> bool(abs(found.mean - clean.mean()) < 0.1), bool(abs(found.range([[1, 3]])[0] - 0.9) < 0.05)
    (True, True)
    """
    column = np.asarray(values)
    if column.dtype.kind not in "iu" or not column.size:
        raise DataError(f"reconstruct takes released integers; got {column.dtype}, {column.size}")
    channel = noise_matrix_of(m, largest=MAX_RECONSTRUCTED_CELLS)
    if channel is None:
        raise ParameterError(
            f"A grid of {m.domain.size} cells is too large to be deconvolved; use a coarser one."
        )
    codes = column.reshape(-1).astype(np.int64) - m.outputs.L
    if codes.min() < 0 or codes.max() >= channel.outputs:
        raise DataError(f"Released values must lie in {m.outputs.L}..{m.outputs.R}")
    rng = np.random.default_rng(seed)
    counts = np.bincount(codes, minlength=channel.outputs)
    smoothing, steps = _chosen(counts, channel, rng)
    pmf = deconvolve(counts, channel, steps, smoothing)
    draws = rng.multinomial(len(codes), pmf @ channel.matrix, size=REPEATS)
    again = _stepped(_even(channel, REPEATS), draws, channel, smoothing, steps)
    return Reconstruction(m.domain, pmf, np.std(again, axis=0), steps, smoothing)


def deconvolve(
    counts: ArrayLike, channel: NoiseMatrix, steps: int, smoothing: float = 0.0
) -> FloatArray:
    """Return the pmf after ``steps`` EM steps from a uniform start.

    Without smoothing, each step makes the counts likelier.
    """
    seen = np.asarray(counts, dtype=np.float64)[None]
    return np.asarray(_stepped(_even(channel, 1), seen, channel, smoothing, steps)[0])


def _even(channel: NoiseMatrix, count: int) -> FloatArray:
    return np.full((count, channel.states), 1 / channel.states)


def _stepped(
    pmfs: FloatArray,
    seen: FloatArray | IntArray,
    channel: NoiseMatrix,
    smoothing: float | FloatArray,
    steps: int,
) -> FloatArray:
    """Run EM steps on several distributions, one per row; a step passes over the matrix once."""
    whole = np.maximum(seen.sum(axis=1, keepdims=True), 1e-300)
    for _ in range(steps):
        chance = pmfs @ channel.matrix
        ratio = np.divide(seen, chance, out=np.zeros_like(chance), where=chance > 0)
        pmfs = pmfs * (ratio @ channel.matrix.T) / whole
        if np.any(smoothing):
            padded = np.pad(pmfs, ((0, 0), (1, 1)), mode="edge")
            pmfs = pmfs + smoothing * ((padded[:, :-2] + padded[:, 2:]) / 2 - pmfs)
        pmfs = pmfs / pmfs.sum(axis=1, keepdims=True)
    return pmfs


def _chosen(counts: IntArray, channel: NoiseMatrix, rng: np.random.Generator) -> tuple[float, int]:
    """Choose the smoothest distribution whose held-out log-likelihood is close to the best.

    Close means within the standard error over five folds.
    """
    folds = np.array(_folds(counts, rng))
    smoothings = SMOOTHINGS if channel.states > 2 else SMOOTHINGS[:1]
    held = np.tile(folds, (len(smoothings), 1))
    seen = counts - held
    share = np.repeat(smoothings, len(folds))[:, None]
    pmfs = _even(channel, len(held))
    looks = []
    for before, steps in pairwise(LOOKS):
        pmfs = _stepped(pmfs, seen, channel, share, steps - before)
        chance = np.maximum(pmfs @ channel.matrix, 1e-300)
        looks.append((held * np.log(chance)).sum(axis=1).reshape(len(smoothings), len(folds)))
    tried = [(s, steps) for s in smoothings for steps in LOOKS[1:]]
    table = np.array([looks[k][i] for i in range(len(smoothings)) for k in range(len(looks))])
    loss = table[table.sum(axis=1).argmax()] - table
    near = loss.mean(axis=1) <= loss.std(axis=1, ddof=1) / np.sqrt(len(folds)) + 1e-9
    fits = [
        (-smoothing, -table[i].sum(), steps)
        for i, (smoothing, steps) in enumerate(tried)
        if near[i]
    ]
    smoothest = min(fits)
    return -smoothest[0], smoothest[2]


def _folds(counts: IntArray, rng: np.random.Generator) -> list[FloatArray]:
    """Split the values into five parts at random."""
    left = counts.astype(np.int64)
    parts = []
    for k in range(FOLDS, 0, -1):
        part = rng.binomial(left, 1 / k)
        parts.append(part.astype(np.float64))
        left = left - part
    return parts
