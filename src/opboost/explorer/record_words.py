"""The sentence at the top of every page: the most that is revealed about one person."""

from __future__ import annotations

import math

from opboost.plots.svg import short

RECORD = "One person's record"
"""The beginning of the sentence; the page shows the sentence in bold."""


def record_words(total: float) -> str:
    """Return the person's total in a sentence.

    >>> record_words(11.52), record_words(math.inf)
    ("One person's record: at most 11.52.", "One person's record: nothing is promised.")
    """
    if math.isinf(total):
        return f"{RECORD}: nothing is promised."
    return f"{RECORD}: at most {short(total)}."
