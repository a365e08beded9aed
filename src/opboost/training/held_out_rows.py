"""Choose the rows that training holds out for its score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import IntArray
from opboost.training.targets import Target

MIN_SCORED_ROWS = 50
"""With fewer held-out rows, no score is given: it would be mostly chance."""

MIN_CLASS_ROWS = 10
"""Each of two classes needs this many held-out rows."""

MAX_SCORED_ROWS = 10_000
"""At most this many rows are held out: more would not change the score."""


@dataclass(frozen=True, slots=True)
class Split:
    """The rows to learn from and the rows to score, both ascending."""

    seen: IntArray
    held: IntArray
    unscored: str = ""


def split_rows(target: Target, share: float, seed: int) -> Split:
    """Hold out a random share of the rows, the same share of each class.

    >>> split = split_rows(Target.of_classes(np.arange(500) % 2), 0.2, seed=0)
    >>> len(split.seen), len(split.held), split.unscored
    (400, 100, '')
    >>> split_rows(Target.of_classes(np.arange(60) % 2), 0.2, seed=0).unscored
    '12 held-out rows are too few, at least 50 are needed'
    """
    rng = np.random.default_rng([seed, 0x5C07E])
    share = min(share, MAX_SCORED_ROWS / max(1, len(target.y)))
    group = target.y if target.labels is not None else np.zeros(len(target.y), dtype=np.int64)
    held = []
    for g in np.unique(group):
        places = rng.permutation(np.flatnonzero(group == g))
        held.append(places[: round(share * len(places))])
    chosen = np.sort(np.concatenate(held))
    seen = np.setdiff1d(np.arange(len(target.y)), chosen, assume_unique=True)
    return Split(seen, chosen, _too_few(target, chosen))


def _too_few(target: Target, held: IntArray) -> str:
    if len(held) < MIN_SCORED_ROWS:
        return f"{len(held)} held-out rows are too few, at least {MIN_SCORED_ROWS} are needed"
    if target.task == "binary":
        least = int(np.bincount(target.y[held], minlength=2).min())
        if least < MIN_CLASS_ROWS:
            return (
                f"{least} held-out rows of the rarer class are too few, at least {MIN_CLASS_ROWS} "
                "are needed"
            )
    return ""
