"""Look up pseudo-random 128-bit handles in a sorted array, and read their records.

A look-up waits for memory more than it computes.  So both loops below first read the first bytes of
everything that a block of people needs: independent reads overlap in the processor.  The loops
return the sum of these bytes as their last result, because a compiler drops a read whose result is
not used; callers ignore it.
"""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

_BLOCK = 64
"""The number of people whose records are prefetched at a time."""


@njit(cache=True, nogil=True)
def index_handles(known, shift, starts):  # type: ignore[no-untyped-def]
    """Fill ``starts``: where each group of handles begins and, at the end, how many handles exist.

    ``known`` are pairs of words, sorted by the first.  A group is those with the same first word
    after a right shift by ``shift`` bits.
    """
    group = 0
    for i in range(known.shape[0]):
        while group <= np.int64(known[i, 0] >> shift):
            starts[group] = i
            group += 1
    starts[group:] = known.shape[0]


@njit(cache=True, nogil=True)
def find(known, starts, shift, wanted, order, places):  # type: ignore[no-untyped-def]
    """Fill ``places``: the position in ``known`` of each ``wanted`` pair of words, or -1.

    ``starts`` is the result of :func:`index_handles` for ``known``.  Handles are uniform, so the
    search begins where a uniform handle is expected within its group, a few steps away.  ``order``
    sorts the wanted ones roughly, so that neighbours touch the same memory.
    """
    below = (np.uint64(1) << shift) - np.uint64(1)
    share = 1.0 / (np.float64(below) + 1.0)
    guesses = np.empty(_BLOCK, dtype=np.int64)
    ahead = np.uint64(0)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        for b, i in enumerate(block):
            group = wanted[i, 0] >> shift
            first, last = starts[group], starts[group + np.uint64(1)]
            within = np.float64(wanted[i, 0] & below) * share
            guesses[b] = min(first + np.int64(within * (last - first)), max(first, last - 1))
            if first < last:
                ahead += known[guesses[b], 0]
        for b, i in enumerate(block):
            word = wanted[i, 0]
            group = word >> shift
            first, last = starts[group], starts[group + np.uint64(1)]
            place = guesses[b]
            while place < last and known[place, 0] < word:
                place += 1
            while place > first and known[place - 1, 0] >= word:
                place -= 1
            places[i] = -1
            while place < last and known[place, 0] == word:
                if known[place, 1] == wanted[i, 1]:
                    places[i] = place
                    break
                place += 1
    return ahead


@njit(cache=True, nogil=True)
def recall(  # type: ignore[no-untyped-def]
    order, places, records, columns, whole, tags, members, touched, decided, sent, draws
):
    """Copy what records say about cells that are not decided yet.

    ``records`` are a run's bits (decided, sent) and draws.  A row of ``columns`` holds a column of
    the release, a column of the run, the position of its draw in the run and in ``draws``, its
    size in bytes, and the position of its tag in the run (-1: none).  A draw with a different
    tag is skipped.

    ``whole`` is for people whose columns were all sent: their draws are copied in spans.  It holds
    the bits of these columns, and a row per span: its start in the run, its start in ``draws``, and
    its size in bytes.  The bits are empty if draws cannot be copied in spans, as with tags.

    ``members`` marks the records that were used, ``touched`` the rows whose person has a record in
    some run.  The first result counts rows that repeat the person of an earlier row: the first
    record that they find is marked already.
    """
    says, was_sent, drawn = records
    bits, spans = whole
    is_whole = np.zeros(len(places), dtype=np.bool_)
    repeats, ahead = 0, np.int64(0)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        for i in block:
            place = places[i]
            if place >= 0:
                ahead += np.int64(says[place, 0]) + np.int64(was_sent[place, 0])
                ahead += np.int64(members[place])
                if drawn.shape[1]:
                    ahead += np.int64(drawn[place, 0])
        for i in block:
            place = places[i]
            if place < 0:
                continue
            repeats += members[place] and not touched[i]
            plain = len(bits) > 0 and not touched[i]
            members[place] = touched[i] = True
            for b in range(len(bits)):
                plain &= (says[place, b] & was_sent[place, b] & bits[b]) == bits[b]
            if plain:
                is_whole[i] = True
                for s in range(spans.shape[0]):
                    source, target = spans[s, 0], spans[s, 1]
                    for b in range(spans[s, 2]):
                        draws[i, target + b] = drawn[place, source + b]
                continue
            for c in range(columns.shape[0]):
                j, k, source, target, width, tag = columns[c]
                bit = np.uint8(128) >> np.uint8(k & 7)
                if decided[i, j] or not says[place, k >> 3] & bit:
                    continue
                is_sent = (was_sent[place, k >> 3] & bit) != 0
                if is_sent and tag >= 0:
                    found = np.uint64(0)
                    for b in range(8):
                        found |= np.uint64(drawn[place, tag + b]) << np.uint64(8 * b)
                    if found != tags[i, j]:
                        continue
                decided[i, j] = True
                sent[i, j] = is_sent
                if is_sent:
                    for b in range(width):
                        draws[i, target + b] = drawn[place, source + b]
    for i in range(len(is_whole)):  # in the order of rows, so that memory is read in order
        if is_whole[i]:
            for c in range(columns.shape[0]):
                decided[i, columns[c, 0]] = True
                sent[i, columns[c, 0]] = True
    return repeats, ahead
