"""Latent classes seen through a channel: expectation, likelihood and draws.

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
