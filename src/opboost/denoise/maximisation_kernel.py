"""Latent classes seen through a channel: maximisation, on each group's counts of outputs.

The tables are those of :mod:`opboost.denoise.mixture_kernel`, which counts the outputs.
Functions that other functions here call are inlined, for the reason that is given there.
"""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

_TINY = np.float32(1e-30)
_FAR = np.float32(1e-5)  # a row that counts less for another group does not count
_EVEN = np.float32(1 + 1e-5)  # chances this near to each other differ by rounding alone
_LEAST = np.float32(1e-4)  # of an output's constant: a factor never rules a class out


@njit(cache=True, nogil=True, fastmath=True)
def spread(lo, hi, near, models, counts, out):  # type: ignore[no-untyped-def]
    """What the rows of all groups count for groups lo..hi, by the kernel ``near[k]`` of model k."""
    classes = counts.shape[2]
    weight = np.empty(classes, np.float32)
    for g in range(lo, hi):
        out[g] = np.float32(0.0)
        for h in range(counts.shape[0]):
            largest = np.float32(0.0)
            for k in range(models.shape[0] - 1):
                largest = max(largest, near[k, g, h])
                for c in range(models[k], models[k + 1]):
                    weight[c] = near[k, g, h] if near[k, g, h] > _FAR else np.float32(0.0)
            if largest > _FAR:
                for t in range(counts.shape[1]):
                    for c in range(classes):
                        out[g, t, c] += weight[c] * counts[h, t, c]


@njit(cache=True, nogil=True, fastmath=True)
def maximise(  # type: ignore[no-untyped-def]
    lo,
    hi,
    counts,
    offsets,
    starts,
    matrix,
    places,
    constant,
    exact,
    lines,
    smooth,
    P,
    Q,
    parent,
    kappa,
    inner,
):
    """Fit the pmfs ``P[group, state, class]`` of channel columns to counts of outputs.

    Each of ``inner`` steps multiplies P by ``u * sqrt(u)``, u being EM's factor: EM over-relaxed,
    about half as many steps for the same fit.  ``kappa`` rows of ``parent`` are added.  Columns
    marked ``exact`` are seen as they are, so that their counts are their pmf.
    """
    classes = P.shape[2]
    for g in range(lo, hi):
        for j in range(offsets.shape[0]):
            first, K = starts[j], starts[j + 1] - starts[j]
            at = offsets[j]
            L = (places[j + 1] - places[j]) // K
            M = matrix[places[j] : places[j + 1]].reshape(K, L)
            n = counts[g, at : at + L]
            pmf = P[g, first : first + K]
            floor, band = _banded(M)
            q = np.empty((L, classes), np.float32)
            u = np.empty((K, classes), np.float32)
            size = np.empty(classes, np.float32)
            whole = np.empty(classes, np.float32)
            for _ in range(min(inner, 1) if exact[j] else inner):
                for c in range(classes):
                    size[c] = np.float32(0.0)
                for y in range(L):
                    for c in range(classes):
                        size[c] += n[y, c]
                if exact[j]:
                    for x in range(K):
                        for c in range(classes):
                            u[x, c] = n[x, c]
                else:
                    _outputs(pmf, M, floor, band, q, whole)
                    for c in range(classes):
                        whole[c] = np.float32(0.0)
                    for y in range(L):
                        for c in range(classes):
                            q[y, c] = n[y, c] / (q[y, c] + _TINY)
                            whole[c] += floor[y] * q[y, c]
                    for x in range(K):
                        for c in range(classes):
                            u[x, c] = whole[c]
                        for y in range(band[x, 0], band[x, 1]):
                            m = M[x, y] - floor[y]
                            for c in range(classes):
                                u[x, c] += m * q[y, c]
                        for c in range(classes):
                            factor = u[x, c] / (size[c] + _TINY)
                            u[x, c] = pmf[x, c] * factor * np.sqrt(factor)
                _shrunk(u, size, parent[g, first : first + K], kappa, pmf, whole)
                for way in range(2):
                    if lines[j, way, 0] > 1:
                        _smoothed(pmf, parent[g, first : first + K], lines[j, way], smooth, u)
            _outputs(pmf, M, floor, band, q, whole)
            for y in range(L):
                for c in range(classes):
                    Q[g, at + y, c] = max(q[y, c] / constant[at + y], _LEAST)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _banded(M):  # type: ignore[no-untyped-def]
    """Each output's least chance from any state, and where each state's chances exceed these.

    Of a window most outputs have their least chance, so that sums run over the band alone.
    """
    floor = np.empty(M.shape[1], np.float32)
    for y in range(M.shape[1]):
        floor[y] = M[0, y]
        for x in range(1, M.shape[0]):
            floor[y] = min(floor[y], M[x, y])
    band = np.zeros((M.shape[0], 2), np.int64)
    for x in range(M.shape[0]):
        for y in range(M.shape[1]):
            if M[x, y] > floor[y] * _EVEN:
                if band[x, 1] == 0:
                    band[x, 0] = y
                band[x, 1] = y + 1
    return floor, band


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _outputs(pmf, M, floor, band, q, whole):  # type: ignore[no-untyped-def]
    for c in range(pmf.shape[1]):
        whole[c] = np.float32(0.0)
    for x in range(M.shape[0]):
        for c in range(pmf.shape[1]):
            whole[c] += pmf[x, c]
    for y in range(M.shape[1]):
        for c in range(pmf.shape[1]):
            q[y, c] = floor[y] * whole[c]
    for x in range(M.shape[0]):
        for y in range(band[x, 0], band[x, 1]):
            m = M[x, y] - floor[y]
            for c in range(pmf.shape[1]):
                q[y, c] += m * pmf[x, c]


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _shrunk(u, size, parent, kappa, pmf, whole):  # type: ignore[no-untyped-def]
    """The pmf of ``size`` rows spread as ``u`` and ``kappa`` rows of the parent."""
    classes = u.shape[1]
    for c in range(classes):
        whole[c] = _TINY
    for x in range(u.shape[0]):
        for c in range(classes):
            whole[c] += u[x, c]
    for c in range(classes):
        whole[c] = size[c] / whole[c]
        size[c] = np.float32(1.0) / (size[c] + kappa + _TINY)
    for x in range(u.shape[0]):
        for c in range(classes):
            pmf[x, c] = (u[x, c] * whole[c] + kappa * parent[x]) * size[c] + _TINY


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _smoothed(pmf, parent, line, smooth, u):  # type: ignore[no-untyped-def]
    """Draw each cell's ratio to the parent towards those of its neighbours along a line.

    Where the channel tells neighbours apart the next step draws it back; where it does not, the
    pmf keeps the parent's shape from one cell to the next.  ``line`` holds how many cells stand in
    it, how far apart they are, how many lines there are, and how far apart these are.
    """
    classes = pmf.shape[1]
    for number in range(line[2]):
        start = number * line[3]
        for k in range(line[0]):
            x = start + k * line[1]
            below = start + max(k - 1, 0) * line[1]
            above = start + min(k + 1, line[0] - 1) * line[1]
            here = parent[x] + _TINY
            to_below, to_above = here / (parent[below] + _TINY), here / (parent[above] + _TINY)
            for c in range(classes):
                mean = np.float32(0.5) * (pmf[below, c] * to_below + pmf[above, c] * to_above)
                u[k, c] = pmf[x, c] + smooth[c] * (mean - pmf[x, c])
        for k in range(line[0]):
            x = start + k * line[1]
            for c in range(classes):
                pmf[x, c] = u[k, c]
    whole = np.zeros(classes, np.float32)
    for x in range(pmf.shape[0]):
        for c in range(classes):
            whole[c] += pmf[x, c]
    for x in range(pmf.shape[0]):
        for c in range(classes):
            pmf[x, c] /= whole[c]


@njit(cache=True, nogil=True, fastmath=True)
def maximise_bits(lo, hi, counts, bases, starts, odds, P, Q, parent, kappa, fit):  # type: ignore[no-untyped-def]
    """The same for unary bits; ``odds[b]`` holds the factors of an unset and a set bit."""
    classes = P.shape[2]
    for g in range(lo, hi):
        for b in range(bases.shape[0]):
            first, K, base = starts[b], starts[b + 1] - starts[b], bases[b]
            unset, rise = odds[b, 0], odds[b, 1] - odds[b, 0]
            pmf = P[g, first : first + K]
            u = np.empty((K, classes), np.float32)
            size = np.zeros(classes, np.float32)
            whole = np.empty(classes, np.float32)
            for a in range(K if fit else 0):
                for c in range(classes):
                    seen = unset * counts[g, base, c] + rise * counts[g, base + 1 + a, c]
                    u[a, c] = pmf[a, c] * max(seen, np.float32(0.0))
                    size[c] += u[a, c]
            if fit:
                _shrunk(u, size, parent[g, first : first + K], kappa, pmf, whole)
            for c in range(classes):
                Q[g, base, c] = unset
            for a in range(K):
                for c in range(classes):
                    Q[g, base + 1 + a, c] = rise * pmf[a, c]
