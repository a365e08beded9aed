"""Uniform draws: cells, coins, unary codes and subsets."""

from __future__ import annotations

import numpy as np

from opboost.distributions.fixed_point import mulhi
from opboost.runtime.compiling import njit

_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def draw_keep(x, lower, size, keep, words, out, undecided):  # type: ignore[no-untyped-def]
    """Keep ``x`` if its first word is below ``keep``, else redraw; count the undecided rows."""
    flagged = 0
    for i in range(x.shape[0]):
        coin, word = words[0, i], words[1, i]
        redrawn = lower + np.int64(mulhi(word, size))
        out[i] = np.int64(x[i]) if coin < keep else redrawn
        # The next 64 bits could still carry word * size into the next cell.
        open_row = coin == keep or (coin > keep and word * size > _ZERO - size)
        undecided[i] = open_row
        flagged += open_row
    return flagged


@njit(cache=True, nogil=True)
def draw_bits(position, width, on, off, words, out):  # type: ignore[no-untyped-def]
    """Draw a unary code: set a bit if its word is below ``on`` at the position, ``off`` elsewhere.

    Return how many words equal their threshold; those are left to the caller.
    """
    flagged = 0
    for i in range(position.shape[0]):
        for j in range(width):
            word = words[j, i]
            threshold = on if j == position[i] else off
            out[i, j] = word < threshold
            flagged += word == threshold
    return flagged


@njit(cache=True, nogil=True)
def draw_coins(threshold, words, out):  # type: ignore[no-untyped-def]
    """Mark words below ``threshold``; return how many equal it, which are left to the caller."""
    flagged = 0
    for i in range(words.shape[0]):
        out[i] = words[i] < threshold
        flagged += words[i] == threshold
    return flagged


@njit(cache=True, nogil=True)
def draw_uniform(lower, size, words, out, undecided):  # type: ignore[no-untyped-def]
    """Draw uniformly from ``size`` cells from ``lower`` on; return how many stay undecided."""
    flagged = 0
    for i in range(words.shape[0]):
        out[i] = lower + np.int64(mulhi(words[i], size))
        undecided[i] = words[i] * size > _ZERO - size
        flagged += undecided[i]
    return flagged


@njit(cache=True, nogil=True)
def draw_subset(position, width, size, on, words, out, undecided):  # type: ignore[no-untyped-def]
    """Draw sets of ``size`` categories as bits.

    A set holds the row's own category if that category's word is below ``on``.  Each of the others
    is taken with probability ``needed / left`` (places that are still free, over categories that
    are still to come), so all sets of the others are equally likely.
    Return how many rows stay undecided; those are left to the caller.
    """
    flagged = 0
    for i in range(position.shape[0]):
        own = position[i]
        word = words[own, i]
        taken = word < on
        open_row = word == on
        out[i, own] = taken
        needed = size - taken
        left = width - 1
        for j in range(width):
            if j != own:
                count = np.uint64(left)
                word = words[j, i]
                chosen = np.int64(mulhi(word, count)) < needed
                # The next 64 bits could still carry word * count into the next integer.
                open_row |= word * count > _ZERO - count
                out[i, j] = chosen
                needed -= chosen
                left -= 1
        undecided[i] = open_row
        flagged += open_row
    return flagged
