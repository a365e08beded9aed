"""Latent classes seen through a channel: expectation, maximisation, likelihood and draws.

A row belongs to a group (its label's) and, unseen, to a class.  Tables have the classes as last
axis, so that the innermost loops run over neighbours in memory:

* ``Q[group, t, class]``: the chance of an output, divided by a constant of that output, so that
  products of many stay near one.  ``t = offsets[j] + code`` for column j.  The code ``unsent[j]``
  says that the row did not send the column: it tells nothing, and is passed over.
* A column of unary bits has a base line and one line for each category: its factor is
  ``Q[base] + sum of Q[base + 1 + a] over set bits a``.  A first bit of 2 says that the row did not
  send the column.

Several models are fitted in one pass, side by side on the axis of classes: ``models`` holds where
each begins.  A pass costs little more for many models than for one.

Rows are sorted by group and cut into units ``(group, begin, end)``; each unit has sums of its own,
so the result does not depend on the number of threads.

Functions that other functions here call are inlined.  numba may otherwise link one copy of them in
the process that compiles and another in a process that reads the cache; under ``fastmath`` the two
round differently, and the first fit on a machine would not be that of all others.
"""

from __future__ import annotations

import numpy as np

from opboost.randomness.splitmix64 import splitmix64_compiled
from opboost.runtime.compiling import njit

UNSENT = 2
"""The first bit of a unary column that a row did not send."""

_TINY = np.float32(1e-30)
_FAR = np.float32(1e-5)  # a row that counts less for another group does not count
_LEAST = np.float32(1e-4)  # of an output's constant: a factor never rules a class out


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _rescaled(p, models, score):  # type: ignore[no-untyped-def]
    """Let each model's shares add up to one; the logarithms of their sums go to ``score``."""
    for k in range(models.shape[0] - 1):
        whole = _TINY
        for c in range(models[k], models[k + 1]):
            whole += p[c]
        score[k] += np.log(whole)
        whole = np.float32(1.0) / whole
        for c in range(models[k], models[k + 1]):
            p[c] *= whole


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _weigh(codes, bits, i, offsets, unsent, bases, firsts, Q, pi, models, p, s, score):  # type: ignore[no-untyped-def]
    """Write the classes' shares of row i to ``p``, the bits' factors to ``s``, and add the
    logarithm of its likelihood under each model to ``score``.
    """
    classes = pi.shape[0]
    for c in range(classes):
        p[c] = pi[c]
    told = 0
    for j in range(codes.shape[1]):
        if np.int64(codes[i, j]) == unsent[j]:
            continue
        t = offsets[j] + np.int64(codes[i, j])
        for c in range(classes):
            p[c] *= Q[t, c]
        told += 1
        if told % 8 == 0:
            _rescaled(p, models, score)
    for b in range(bases.shape[0]):
        if bits[i, firsts[b]] == UNSENT:
            continue
        for c in range(classes):
            s[b, c] = Q[bases[b], c]
        for a in range(firsts[b + 1] - firsts[b]):
            if bits[i, firsts[b] + a]:
                for c in range(classes):
                    s[b, c] += Q[bases[b] + 1 + a, c]
        for c in range(classes):
            p[c] *= s[b, c]
        if b % 8 == 7:
            _rescaled(p, models, score)
    _rescaled(p, models, score)


@njit(cache=True, nogil=True, fastmath=True)
def expect(  # type: ignore[no-untyped-def]
    codes,
    bits,
    weight,
    units,
    lo,
    hi,
    offsets,
    unsent,
    bases,
    firsts,
    Q,
    pi,
    models,
    counts,
    sizes,
    score,
):
    """Add a row's shares to its unit's ``counts`` and ``sizes``, its likelihoods to ``score``.

    A row counts as often as its weight says; without weights, once.
    """
    classes = pi.shape[1]
    p = np.empty(classes, np.float32)
    s = np.empty((bases.shape[0], classes), np.float32)
    alone = np.empty(models.shape[0] - 1)
    for u in range(lo, hi):
        g = units[u, 0]
        table, prior, sums, line = Q[g], pi[g], counts[u], score[u]
        for i in range(units[u, 1], units[u, 2]):
            if weight.shape[0] == 0:
                _weigh(
                    codes, bits, i, offsets, unsent, bases, firsts, table, prior, models, p, s, line
                )
            else:
                alone[:] = 0.0
                _weigh(
                    codes,
                    bits,
                    i,
                    offsets,
                    unsent,
                    bases,
                    firsts,
                    table,
                    prior,
                    models,
                    p,
                    s,
                    alone,
                )
                for c in range(classes):
                    p[c] *= weight[i]
                for k in range(models.shape[0] - 1):
                    line[k] += weight[i] * alone[k]
            for c in range(classes):
                sizes[u, c] += p[c]
            for j in range(codes.shape[1]):
                if np.int64(codes[i, j]) == unsent[j]:
                    continue
                t = offsets[j] + np.int64(codes[i, j])
                for c in range(classes):
                    sums[t, c] += p[c]
            for b in range(bases.shape[0]):
                if bits[i, firsts[b]] == UNSENT:
                    continue
                for c in range(classes):
                    s[b, c] = p[c] / s[b, c]
                    sums[bases[b], c] += s[b, c]
                for a in range(firsts[b + 1] - firsts[b]):
                    if bits[i, firsts[b] + a]:
                        for c in range(classes):
                            sums[bases[b] + 1 + a, c] += s[b, c]


@njit(cache=True, nogil=True, fastmath=True)
def likelihoods(codes, bits, units, lo, hi, offsets, unsent, bases, firsts, Q, pi, models, out):  # type: ignore[no-untyped-def]
    """``out[row, model]``: log-likelihoods, up to a constant that depends on outputs alone."""
    p = np.empty(pi.shape[1], np.float32)
    s = np.empty((bases.shape[0], pi.shape[1]), np.float32)
    for u in range(lo, hi):
        table, prior = Q[units[u, 0]], pi[units[u, 0]]
        for i in range(units[u, 1], units[u, 2]):
            line = out[i]
            _weigh(codes, bits, i, offsets, unsent, bases, firsts, table, prior, models, p, s, line)


@njit(cache=True, nogil=True, fastmath=True)
def spread(lo, hi, near, counts, first, last, out):  # type: ignore[no-untyped-def]
    """What the rows of all groups count for groups lo..hi, classes ``first`` to ``last``."""
    for g in range(lo, hi):
        out[g, :, first:last] = np.float32(0.0)
        for h in range(counts.shape[0]):
            weight = near[g, h]
            if weight > _FAR:
                for t in range(counts.shape[1]):
                    for c in range(first, last):
                        out[g, t, c] += weight * counts[h, t, c]


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
                    _outputs(pmf, M, q)
                    for y in range(L):
                        for c in range(classes):
                            q[y, c] = n[y, c] / (q[y, c] + _TINY)
                    for x in range(K):
                        for c in range(classes):
                            u[x, c] = np.float32(0.0)
                        for y in range(L):
                            m = M[x, y]
                            for c in range(classes):
                                u[x, c] += m * q[y, c]
                        for c in range(classes):
                            factor = u[x, c] / (size[c] + _TINY)
                            u[x, c] = pmf[x, c] * factor * np.sqrt(factor)
                _shrunk(u, size, parent[g, first : first + K], kappa, pmf, whole)
                for way in range(2):
                    if lines[j, way, 0] > 1:
                        _smoothed(pmf, parent[g, first : first + K], lines[j, way], smooth, u)
            _outputs(pmf, M, q)
            for y in range(L):
                for c in range(classes):
                    Q[g, at + y, c] = max(q[y, c] / constant[at + y], _LEAST)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _outputs(pmf, M, q):  # type: ignore[no-untyped-def]
    for y in range(M.shape[1]):
        for c in range(pmf.shape[1]):
            q[y, c] = np.float32(0.0)
    for x in range(M.shape[0]):
        for y in range(M.shape[1]):
            m = M[x, y]
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


@njit(cache=True, nogil=True)
def draw(  # type: ignore[no-untyped-def]
    codes,
    bits,
    units,
    lo,
    hi,
    offsets,
    unsent,
    starts,
    matrix,
    places,
    bases,
    bit_starts,
    firsts,
    odds,
    Q,
    pi,
    P,
    drawn,
    rows,
    tokens,
    key,
    out,
    out_bits,
):
    """States of the first ``drawn`` columns and of the bit columns, given outputs and group.

    Row i writes to ``out[rows[i]]``; its randomness depends on ``key`` and ``tokens[rows[i]]``.
    """
    classes = pi.shape[1]
    p = np.empty(classes, np.float32)
    s = np.empty((bases.shape[0], classes), np.float32)
    models = np.array([0, classes])
    score = np.zeros(1)
    unit = 1.0 / 18446744073709551616.0
    for w in range(lo, hi):
        g = units[w, 0]
        table, prior = Q[g], pi[g]
        for i in range(units[w, 1], units[w, 2]):
            _weigh(
                codes, bits, i, offsets, unsent, bases, firsts, table, prior, models, p, s, score
            )
            state = splitmix64_compiled(key ^ splitmix64_compiled(tokens[rows[i]]))
            want = np.float32(state * unit)
            pick = 0
            reached = p[0]
            while reached < want and pick < classes - 1:
                pick += 1
                reached += p[pick]
            for j in range(drawn):
                state = splitmix64_compiled(state)
                first, K = starts[j], starts[j + 1] - starts[j]
                L = (places[j + 1] - places[j]) // K
                at = places[j] + np.int64(codes[i, j])
                whole = np.float32(0.0)
                for x in range(K):
                    whole += P[g, first + x, pick] * matrix[at + x * L]
                want = np.float32(state * unit) * whole
                reached = np.float32(0.0)
                x = 0
                while x < K - 1:
                    reached += P[g, first + x, pick] * matrix[at + x * L]
                    if reached > want:
                        break
                    x += 1
                out[rows[i], j] = x
            for b in range(bases.shape[0]):
                state = splitmix64_compiled(state)
                first, K = bit_starts[b], bit_starts[b + 1] - bit_starts[b]
                sent = bits[i, firsts[b]] != UNSENT
                want = np.float32(state * unit) * (s[b, pick] if sent else np.float32(1.0))
                reached = np.float32(0.0)
                a = 0
                while a < K - 1:
                    factor = np.float32(1.0)
                    if sent:
                        factor = odds[b, 1] if bits[i, firsts[b] + a] else odds[b, 0]
                    reached += P[g, first + a, pick] * factor
                    if reached > want:
                        break
                    a += 1
                out_bits[rows[i], b] = a
