"""Compiled expectation, likelihood and draws for latent classes seen through noise.

A row belongs to a group (that of its label) and to a class, which is not observed.  The classes are
the last axis of all tables, so that the innermost loops run over neighbours in memory:

* ``Q[group, t, class]``: the chance of an output, divided by a constant of that output, so that
  products of many stay near one.  ``t = offsets[j] + code`` for column j.  The code ``unsent[j]``
  means that the row did not send the column: it carries no information, and is skipped.
* A column of unary bits has a base line and one line for each category: its factor is
  ``Q[base] + sum of Q[base + 1 + a] over set bits a``.  A first bit of 2 means that the row did not
  send the column.

Several models are fitted in one pass, side by side on the axis of classes; ``models`` holds where
each begins.  A pass costs little more for many models than for one.

Rows are sorted by group and cut into units ``(group, begin, end)``.  Each unit has sums of its own,
so the result does not depend on the number of threads.

Rows are weighed a few at a time, because passing arrays to an inlined function costs more than the
work on one row.

Divisions follow numpy and do not check for zero.  A check would keep a loop from working on several
classes at once.

Functions that other functions here call are inlined.  Otherwise numba may link one copy of them in
the process that compiles, and another in a process that reads the cache.  Under ``fastmath`` the
two round differently, and the first fit on a machine would differ from all later ones.
"""

from __future__ import annotations

import numpy as np

from opboost.randomness.splitmix64 import splitmix64_compiled
from opboost.runtime.compiling import njit

UNSENT = 2
"""The first bit of a unary column that a row did not send."""

_TINY = np.float32(1e-30)
_ONE = np.float32(1.0)
_ROWS = 32  # rows that are weighed at a time
_KEPT = 2**20  # running sums that are kept while rows of a group are drawn
_FACTORS = 9  # a float holds the product of this many chances from 1e-4 to 1e3


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _rescaled(p, due, rows, models, score, scored):  # type: ignore[no-untyped-def]
    """Scale each model's shares to sum to one, in the first ``rows`` rows if they are ``due``.

    If ``scored``, add their log-sums to ``score``.
    """
    for k in range(models.shape[0] - 1):
        first, last = models[k], models[k + 1]
        for r in range(rows):
            if due[r]:
                whole = _TINY
                for c in range(first, last):
                    whole += p[r, c]
                if scored:
                    score[r, k] += np.log(whole)
                whole = np.float32(1.0) / whole
                for c in range(first, last):
                    p[r, c] *= whole


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _multiplied(p, due, rows, Q, lines, sent, begin, count):  # type: ignore[no-untyped-def]
    """Multiply shares by the chances of ``count`` outputs from ``begin`` on, two at a time.

    Rows that sent such outputs are ``due`` to be scaled.
    """
    classes = p.shape[1]
    for r in range(rows):
        k, end = begin, min(begin + count, sent[r])
        due[r] = k < end
        while k + 1 < end:
            t, after = lines[r, k], lines[r, k + 1]
            for c in range(classes):
                p[r, c] *= Q[t, c] * Q[after, c]
            k += 2
        if k < end:
            t = lines[r, k]
            for c in range(classes):
                p[r, c] *= Q[t, c]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")
def _weigh(  # type: ignore[no-untyped-def]
    codes,
    bits,
    begin,
    end,
    offsets,
    unsent,
    bases,
    firsts,
    Q,
    pi,
    models,
    lines,
    sent,
    due,
    p,
    s,
    score,
    scored,
):
    """Weigh rows begin..end of one group.

    For row begin + r, write the lines of the ``sent[r]`` outputs that it sent to ``lines[r]``, the
    classes' shares to ``p[r]`` and the bits' factors to ``s[r]``.  ``scored`` adds the row's
    log-likelihoods to ``score[r]``; computing them takes as long as everything else.

    Each step is done for all rows before the next step, because the steps of a single row wait for
    each other.  What is written for a row does not depend on the other rows.
    """
    classes, rows, most = pi.shape[0], end - begin, 0
    for r in range(rows):
        told = 0
        for j in range(codes.shape[1]):
            code = np.int64(codes[begin + r, j])
            lines[r, told] = offsets[j] + code
            told += code != unsent[j]
        sent[r] = told
        most = max(most, told)
        for c in range(classes):
            p[r, c] = pi[c]
    for first in range(0, most, _FACTORS):
        _multiplied(p, due, rows, Q, lines, sent, first, _FACTORS)
        _rescaled(p, due, rows, models, score, scored)
    for b in range(bases.shape[0]):
        for r in range(rows):
            due[r] = bits[begin + r, firsts[b]] != UNSENT
            if due[r]:
                for c in range(classes):
                    s[r, b, c] = Q[bases[b], c]
                for a in range(firsts[b + 1] - firsts[b]):
                    if bits[begin + r, firsts[b] + a]:
                        for c in range(classes):
                            s[r, b, c] += Q[bases[b] + 1 + a, c]
                for c in range(classes):
                    p[r, c] *= s[r, b, c]
        if b % 8 == 7:
            _rescaled(p, due, rows, models, score, scored)
    if bases.shape[0]:
        for r in range(rows):
            due[r] = True
        _rescaled(p, due, rows, models, score, scored)


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
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
):
    """Add each row's shares to the ``counts`` and ``sizes`` of its unit.

    A row of weight w counts as w rows, or as one if there are no weights.
    """
    classes = pi.shape[1]
    lines, sent = np.empty((_ROWS, codes.shape[1]), np.int64), np.empty(_ROWS, np.int64)
    due = np.empty(_ROWS, np.bool_)
    p = np.empty((_ROWS, classes), np.float32)
    s = np.empty((_ROWS, bases.shape[0], classes), np.float32)
    score = np.empty((0, 0))
    for u in range(lo, hi):
        g = units[u, 0]
        table, prior, sums, size = Q[g], pi[g], counts[u], sizes[u]
        for begin in range(units[u, 1], units[u, 2], _ROWS):
            end = min(begin + _ROWS, units[u, 2])
            _weigh(
                codes, bits, begin, end, offsets, unsent, bases, firsts, table, prior, models,
                lines, sent, due, p, s, score, False,
            )  # fmt: skip
            for r in range(end - begin):
                i = begin + r
                if weight.shape[0]:
                    for c in range(classes):
                        p[r, c] *= weight[i]
                for c in range(classes):
                    size[c] += p[r, c]
                for k in range(sent[r]):
                    t = lines[r, k]
                    for c in range(classes):
                        sums[t, c] += p[r, c]
                for b in range(bases.shape[0]):
                    if bits[i, firsts[b]] == UNSENT:
                        continue
                    for c in range(classes):
                        s[r, b, c] = p[r, c] / s[r, b, c]
                        sums[bases[b], c] += s[r, b, c]
                    for a in range(firsts[b + 1] - firsts[b]):
                        if bits[i, firsts[b] + a]:
                            for c in range(classes):
                                sums[bases[b] + 1 + a, c] += s[r, b, c]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def likelihoods(codes, bits, units, lo, hi, offsets, unsent, bases, firsts, Q, pi, models, out):  # type: ignore[no-untyped-def]
    """Write log-likelihoods to ``out[row, model]``, up to a constant per row."""
    classes = pi.shape[1]
    lines, sent = np.empty((_ROWS, codes.shape[1]), np.int64), np.empty(_ROWS, np.int64)
    due = np.empty(_ROWS, np.bool_)
    p = np.empty((_ROWS, classes), np.float32)
    s = np.empty((_ROWS, bases.shape[0], classes), np.float32)
    for u in range(lo, hi):
        table, prior = Q[units[u, 0]], pi[units[u, 0]]
        for begin in range(units[u, 1], units[u, 2], _ROWS):
            end = min(begin + _ROWS, units[u, 2])
            _weigh(
                codes, bits, begin, end, offsets, unsent, bases, firsts, table, prior, models,
                lines, sent, due, p, s, out[begin:end], True,
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
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
    """Draw the first ``drawn`` columns and the bit columns, given outputs and group.

    Rows of a group that sent the same value and drew the same class share the distribution of the
    state.  Its running sums are kept, if all of them together need little memory.
    Row i writes to ``out[rows[i]]``; its randomness depends on ``key`` and ``tokens[rows[i]]``.
    """
    classes = pi.shape[1]
    lines, sent = np.empty((_ROWS, codes.shape[1]), np.int64), np.empty(_ROWS, np.int64)
    due = np.empty(_ROWS, np.bool_)
    p = np.empty((_ROWS, classes), np.float32)
    s = np.empty((_ROWS, bases.shape[0], classes), np.float32)
    models = np.array([0, classes])
    score = np.empty((0, 0))
    outputs, most, height = np.empty(drawn, np.int64), 0, 0
    for j in range(drawn):
        outputs[j] = (places[j + 1] - places[j]) // (starts[j + 1] - starts[j])
        most = max(most, starts[j + 1] - starts[j])
        height = offsets[j] + outputs[j]
    keeps = classes * height * most <= _KEPT
    ladders = np.empty((classes * height if keeps else 1, most), np.float32)
    made = np.zeros(len(ladders), np.bool_)
    group = -1
    unit = 1.0 / 18446744073709551616.0
    for w in range(lo, hi):
        g = units[w, 0]
        table, prior, pmfs = Q[g], pi[g], P[g]
        if g != group:
            made[:] = False
            group = g
        for begin in range(units[w, 1], units[w, 2], _ROWS):
            end = min(begin + _ROWS, units[w, 2])
            _weigh(
                codes, bits, begin, end, offsets, unsent, bases, firsts, table, prior, models,
                lines, sent, due, p, s, score, False,
            )  # fmt: skip
            for i in range(begin, end):
                r = i - begin
                state = splitmix64_compiled(key ^ splitmix64_compiled(tokens[rows[i]]))
                want = np.float32(state * unit)
                pick = 0
                reached = p[r, 0]
                while reached < want and pick < classes - 1:
                    pick += 1
                    reached += p[r, pick]
                for j in range(drawn):
                    state = splitmix64_compiled(state)
                    first, K, L = starts[j], starts[j + 1] - starts[j], outputs[j]
                    code = np.int64(codes[i, j])
                    t = pick * height + offsets[j] + code if keeps else 0
                    if not made[t]:
                        whole = np.float32(0.0)
                        for x in range(K):
                            whole += pmfs[first + x, pick] * matrix[places[j] + code + x * L]
                            ladders[t, x] = whole
                        made[t] = keeps
                    want = np.float32(state * unit) * ladders[t, K - 1]
                    x = 0
                    for k in range(K - 1):
                        x += ladders[t, k] <= want
                    out[rows[i], j] = x
                for b in range(bases.shape[0]):
                    state = splitmix64_compiled(state)
                    first, K = bit_starts[b], bit_starts[b + 1] - bit_starts[b]
                    is_sent = bits[i, firsts[b]] != UNSENT
                    want = np.float32(state * unit) * (s[r, b, pick] if is_sent else _ONE)
                    reached = np.float32(0.0)
                    a = 0
                    while a < K - 1:
                        factor = _ONE
                        if is_sent:
                            factor = odds[b, 1] if bits[i, firsts[b] + a] else odds[b, 0]
                        reached += pmfs[first + a, pick] * factor
                        if reached > want:
                            break
                        a += 1
                    out_bits[rows[i], b] = a
