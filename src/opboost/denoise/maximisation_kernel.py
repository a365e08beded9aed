"""Compiled maximisation step for latent classes seen through noise, on counts of outputs.

The tables are those of :mod:`opboost.denoise.mixture_kernel`, which counts the outputs.
Functions that other functions here call are inlined, and divisions do not check for zero, for the
reasons given there.
"""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

_TINY = np.float32(1e-30)
_FAR = np.float32(1e-5)  # smaller weights of rows of other groups are ignored
_EVEN = np.float32(1 + 1e-5)  # chances with a smaller ratio differ only by rounding
_LEAST = np.float32(1e-4)  # least share of an output's constant, so that no class is ruled out


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def spread(lo, hi, near, models, counts, out):  # type: ignore[no-untyped-def]
    """For groups lo..hi, sum all groups' counts, weighted by kernel ``near[k]`` of model k."""
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


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def maximise(  # type: ignore[no-untyped-def]
    lo,
    hi,
    left,
    right,
    width,
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
    """Fit the pmfs ``P[group, state, class]`` of columns with a noise matrix to counts of outputs.

    Each of ``inner`` steps multiplies P by ``u * sqrt(u)``, where u is EM's factor: over-relaxed
    EM, which needs about half as many steps for the same fit.  ``kappa`` rows of ``parent`` are
    added.  Columns marked ``exact`` carry no noise, so their counts are their pmf.

    The classes of all groups are lanes of one axis, ``g * classes + c``, because all are treated
    alike.  ``width`` lanes are copied at a time, and this call works on blocks lo..hi of them, in
    columns left..right.  The result does not depend on which call works on a block or a column.
    """
    classes = P.shape[2]
    is_smooth = False
    for c in range(classes):
        is_smooth = is_smooth or smooth[c] > 0
    size, whole = np.zeros(width, np.float32), np.zeros(width, np.float32)
    share = np.zeros(width, np.float32)
    for j in range(left, right):
        first, K, at = starts[j], starts[j + 1] - starts[j], offsets[j]
        L = (places[j + 1] - places[j]) // K
        floor, rise, band = _banded(matrix[places[j] : places[j + 1]].reshape(K, L))
        n, q = np.zeros((L, width), np.float32), np.zeros((L, width), np.float32)
        pmf, u = np.zeros((K, width), np.float32), np.zeros((K, width), np.float32)
        law, inverse = np.zeros((K, width), np.float32), np.zeros((K, width), np.float32)
        for block in range(lo, hi):
            begin = block * width
            count = min(width, P.shape[0] * classes - begin)
            _copied(counts, begin, count, at, n)
            _copied(P, begin, count, first, pmf)
            for k in range(count):
                g = (begin + k) // classes
                share[k] = smooth[begin + k - g * classes]
                for x in range(K):
                    law[x, k] = parent[g, first + x]
            for x in range(K):
                for k in range(width):
                    inverse[x, k] = np.float32(1.0) / (law[x, k] + _TINY)
            for _ in range(min(inner, 1) if exact[j] else inner):
                for k in range(width):
                    size[k] = np.float32(0.0)
                for y in range(L):
                    for k in range(width):
                        size[k] += n[y, k]
                if exact[j]:
                    for x in range(K):
                        for k in range(width):
                            u[x, k] = n[x, k]
                else:
                    _outputs(pmf, rise, floor, band, q, whole)
                    for k in range(width):
                        whole[k] = np.float32(0.0)
                    for y in range(L):
                        for k in range(width):
                            q[y, k] = n[y, k] / (q[y, k] + _TINY)
                            whole[k] += floor[y] * q[y, k]
                    for x in range(K):
                        for k in range(width):
                            u[x, k] = whole[k]
                        for y in range(band[x, 0], band[x, 1]):
                            m = rise[x, y]
                            for k in range(width):
                                u[x, k] += m * q[y, k]
                        for k in range(width):
                            factor = u[x, k] / (size[k] + _TINY)
                            u[x, k] = pmf[x, k] * factor * np.sqrt(factor)
                _shrunk(u, size, law, kappa, pmf, whole)
                for way in range(2 if is_smooth else 0):
                    if lines[j, way, 0] > 1:
                        _smoothed(pmf, law, inverse, lines[j, way], share, u, whole)
            _outputs(pmf, rise, floor, band, q, whole)
            for y in range(L):
                for k in range(width):
                    q[y, k] = max(q[y, k] / constant[at + y], _LEAST)
            _written(pmf, begin, count, first, P)
            _written(q, begin, count, at, Q)


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _copied(table, begin, count, first, out):  # type: ignore[no-untyped-def]
    """Copy ``count`` lanes of ``table[group, line, class]`` to ``out``, from line ``first`` on."""
    classes = table.shape[2]
    k = 0
    while k < count:
        g, c = (begin + k) // classes, (begin + k) % classes
        run = min(classes - c, count - k)
        for t in range(out.shape[0]):
            for r in range(run):
                out[t, k + r] = table[g, first + t, c + r]
        k += run


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _written(lanes, begin, count, first, table):  # type: ignore[no-untyped-def]
    """Copy ``count`` lanes back into the table, from line ``first`` on."""
    classes = table.shape[2]
    k = 0
    while k < count:
        g, c = (begin + k) // classes, (begin + k) % classes
        run = min(classes - c, count - k)
        for t in range(lanes.shape[0]):
            for r in range(run):
                table[g, first + t, c + r] = lanes[t, k + r]
        k += run


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _banded(M):  # type: ignore[no-untyped-def]
    """Return each output's least chance, the entries' excess over it, and the bands of excess.

    In the noise matrix of a window mechanism, most entries have no excess, so sums need only run
    over the band.
    """
    floor = np.empty(M.shape[1], np.float32)
    rise = np.empty(M.shape, np.float32)
    band = np.zeros((M.shape[0], 2), np.int64)
    for y in range(M.shape[1]):
        floor[y] = M[0, y]
        for x in range(1, M.shape[0]):
            floor[y] = min(floor[y], M[x, y])
    for x in range(M.shape[0]):
        for y in range(M.shape[1]):
            rise[x, y] = M[x, y] - floor[y]
            if M[x, y] > floor[y] * _EVEN:
                if band[x, 1] == 0:
                    band[x, 0] = y
                band[x, 1] = y + 1
    return floor, rise, band


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _outputs(pmf, rise, floor, band, q, whole):  # type: ignore[no-untyped-def]
    """Write the chances of outputs to ``q``."""
    lanes = pmf.shape[1]
    for k in range(lanes):
        whole[k] = np.float32(0.0)
    for x in range(pmf.shape[0]):
        for k in range(lanes):
            whole[k] += pmf[x, k]
    for y in range(q.shape[0]):
        for k in range(lanes):
            q[y, k] = floor[y] * whole[k]
    for x in range(pmf.shape[0]):
        for y in range(band[x, 0], band[x, 1]):
            m = rise[x, y]
            for k in range(lanes):
                q[y, k] += m * pmf[x, k]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _shrunk(u, size, law, kappa, pmf, whole):  # type: ignore[no-untyped-def]
    """Write the pmf of ``size`` rows distributed as ``u`` and ``kappa`` rows of the parent."""
    lanes = u.shape[1]
    for k in range(lanes):
        whole[k] = _TINY
    for x in range(u.shape[0]):
        for k in range(lanes):
            whole[k] += u[x, k]
    for k in range(lanes):
        whole[k] = size[k] / whole[k]
        size[k] = np.float32(1.0) / (size[k] + kappa + _TINY)
    for x in range(u.shape[0]):
        for k in range(lanes):
            pmf[x, k] = (u[x, k] * whole[k] + kappa * law[x, k]) * size[k] + _TINY


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _smoothed(pmf, law, inverse, line, share, u, whole):  # type: ignore[no-untyped-def]
    """Pull each cell's ratio (to the parent's cell) towards the ratios of its neighbours on a line.

    Where the noise matrix tells neighbours apart, the next step pulls the ratio back.  Where it
    does not, the pmf keeps the parent's shape from one cell to the next.

    ``line`` holds how many cells a line has, how far apart they are, how many lines there are, and
    how far apart the lines are.
    """
    lanes = pmf.shape[1]
    for number in range(line[2]):
        start = number * line[3]
        for place in range(line[0]):
            x = start + place * line[1]
            a = start + max(place - 1, 0) * line[1]
            b = start + min(place + 1, line[0] - 1) * line[1]
            for k in range(lanes):
                mean = pmf[a, k] * inverse[a, k] + pmf[b, k] * inverse[b, k]
                mean *= np.float32(0.5) * (law[x, k] + _TINY)
                u[place, k] = pmf[x, k] + share[k] * (mean - pmf[x, k])
        for place in range(line[0]):
            x = start + place * line[1]
            for k in range(lanes):
                pmf[x, k] = u[place, k]
    for k in range(lanes):
        whole[k] = np.float32(0.0)
    for x in range(pmf.shape[0]):
        for k in range(lanes):
            whole[k] += pmf[x, k]
    for k in range(lanes):
        whole[k] = np.float32(1.0) / whole[k]
    for x in range(pmf.shape[0]):
        for k in range(lanes):
            pmf[x, k] *= whole[k]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def maximise_bits(lo, hi, counts, bases, starts, odds, P, Q, parent, kappa, fit):  # type: ignore[no-untyped-def]
    """Fit the pmfs of unary bits of groups lo..hi; ``odds[b]`` holds the factors of an unset and a
    set bit.
    """
    classes = P.shape[2]
    for g in range(lo, hi):
        for b in range(bases.shape[0]):
            first, K, base = starts[b], starts[b + 1] - starts[b], bases[b]
            unset, rise = odds[b, 0], odds[b, 1] - odds[b, 0]
            pmf = P[g, first : first + K]
            u, law = np.empty((K, classes), np.float32), np.empty((K, classes), np.float32)
            size = np.zeros(classes, np.float32)
            whole = np.empty(classes, np.float32)
            for a in range(K if fit else 0):
                for c in range(classes):
                    law[a, c] = parent[g, first + a]
                    seen = unset * counts[g, base, c] + rise * counts[g, base + 1 + a, c]
                    u[a, c] = pmf[a, c] * max(seen, np.float32(0.0))
                    size[c] += u[a, c]
            if fit:
                _shrunk(u, size, law, kappa, pmf, whole)
            for c in range(classes):
                Q[g, base, c] = unset
            for a in range(K):
                for c in range(classes):
                    Q[g, base + 1 + a, c] = rise * pmf[a, c]
