"""Sorted handles of people, and the positions of wanted ones among them."""

from __future__ import annotations

import numpy as np

from opboost._typing import IntArray, Words
from opboost.ledger.search_kernel import find, index_handles

HANDLES_PER_GROUP = 32
"""The expected number of handles in a group; the index says where each group begins."""

MAX_GROUP_BITS = 20
"""Handles are grouped by at most this many of their first bits; the index then takes 8 MB."""


def rough_order(handles: Words) -> IntArray:
    """Return an order that puts handles with the same first bits next to each other.

    Only two bytes are compared, because numpy sorts 16-bit numbers by counting, ten times as fast.
    """
    return np.argsort((handles[:, 0] >> np.uint64(48)).astype(np.uint16), kind="stable")


class Handles:
    """Handles that are sorted by their first word, with an index in memory.

    Cost: one pass over the handles, and 8 bytes for each group of about
    :data:`HANDLES_PER_GROUP`.
    """

    def __init__(self, known: Words) -> None:
        self._known = known
        bits = min(max((len(known) // HANDLES_PER_GROUP).bit_length(), 1), MAX_GROUP_BITS)
        self._shift = np.uint64(64 - bits)
        self._starts = np.empty(2**bits + 1, dtype=np.int64)
        index_handles(known, self._shift, self._starts)

    def places(self, wanted: Words, order: IntArray | None = None) -> IntArray:
        """Return the position of each handle, or -1; ``order`` is their rough order."""
        places = np.empty(len(wanted), dtype=np.int64)
        order = rough_order(wanted) if order is None else order
        wanted = np.ascontiguousarray(wanted)
        find(self._known, self._starts, self._shift, wanted, order, places)
        return places
