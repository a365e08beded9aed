"""How many entries a codebook of class margins should have, from training rows alone.

A fifth of the *training* rows is held out.  A by-party model learns from the others at a record
total; the held-out rows then release their scores at the same level through codebooks of several
sizes.  Test rows take no part.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opboost.parties.channel import MemoryChannel
from opboost.parties.label.label_party import LabelParty
from opboost.randomness.streams import SeededRng
from opboost.scores.score_model import SCORE
from opboost.training.released_columns import from_sample
from opboost.training.score_by_party import (
    SMALLEST_LEAF,
    class_codebook,
    fitted_codebook,
    predicted_by_score,
    score_parts,
)
from opboost_lab.accuracy import MEASURES, PARAMS, measured, parted
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private
from opboost_lab.score_totals import feature_parties, ids

HELD_OUT = 0.2

SIZES = (1.0, 1.2, 1.6, 2.0, 2.4, 3.2)
"""Entries per class; 1 is an entry for each class, the nearest being that of the largest margin."""


@cache
def by_size(name: str, total: float, seed: int) -> dict[float, float]:
    """The task's measure on held-out training rows, by entries per class."""
    data = _within_training(all_private(parted(name, seed)), seed)
    X, y, X_held, y_held = data.split()
    with tempfile.TemporaryDirectory() as folder:
        known = feature_parties(data, X, total, 1, Path(folder))
        bank = _Keeping(
            None,
            y,
            ids=ids(X),
            structure="by-party",
            held_out=0,
            booster_params=PARAMS["xgboost"],
            random_state=seed,
            task="classify",
        )
        bank.train([MemoryChannel(p) for p in known])
    model, prepared, books = bank.kept
    private = model.layout.private
    rows = [c.prepare(X_held) for c in private]
    found = {}
    for size in SIZES:

        def codebook(scores: Any, size: float = size) -> Any:
            if size == 1:
                return class_codebook(scores)
            return fitted_codebook(scores, round(size * scores.shape[1]))

        parts = score_parts(
            model.layout, model.trained, prepared.problem, books, prepared.rows.draws,
            SMALLEST_LEAF, codebook,
        )  # fmt: skip
        (party, part), *_ = parts.parties.items()
        column = part.model.column(total)
        noisy = column.release(part.model.cells(private, rows, total), SeededRng(seed))
        answer = from_sample([column], {SCORE: noisy}, 1.0)[0]
        own = np.empty((len(y_held), 0))
        predicted = predicted_by_score(model.layout, model.trained, parts, own, {party: answer})
        classes = np.asarray(model.labels)
        found[size] = measured(data, predicted, y_held, classes)[MEASURES[data.task]]
    return found


def _within_training(data: DataSet, seed: int) -> DataSet:
    """The training rows as a set of their own, a fifth of them its test rows."""
    order = np.random.default_rng([seed, 0xC0DE]).permutation(data.train.num_rows)
    held = round(HELD_OUT * len(order))
    return replace(
        data,
        train=data.train.take(np.sort(order[held:])),
        test=data.train.take(np.sort(order[:held])),
    )


class _Keeping(LabelParty):
    """A label party that keeps what its scores are made from."""

    kept: Any = None

    def _with_scores(self, model: Any, prepared: Any, books: Any) -> Any:
        self.kept = model, prepared, books
        return super()._with_scores(model, prepared, books)


if __name__ == "__main__":
    import sys

    data_set, *totals = sys.argv[1:]
    for level in map(float, totals):
        tried = [by_size(data_set, level, seed) for seed in range(5)]
        means = {s: round(float(np.mean([t[s] for t in tried])), 4) for s in SIZES}
        print(data_set, level, means, flush=True)
