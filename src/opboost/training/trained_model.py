"""A boosted model in grid values, with what it needs to predict from released or clean columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.boosting import Trained
from opboost.boosting.booster import Matrix
from opboost.denoise import Verdict
from opboost.runtime.threads import threads_limited
from opboost.training.feature_matrix import Layout
from opboost.training.held_out_score import HeldOutScore
from opboost.training.posterior_prediction import Posterior
from opboost.training.released_columns import ReleasedColumn
from opboost.training.score_by_party import ScoreParts, predicted_by_score


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A finished model.

    Attributes:
        layout: What its features are.
        trained: The stock model, in grid values.
        posterior: How desensitised rows are predicted; None where the model sees them as they are.
        labels: The classes; None for a regression.
        denoised: Whether it was trained on posterior draws; None where a file does not tell.
        verdict: The held-out losses that ``denoise="auto"`` compared, or None.
        score: What it is worth on held-out rows; None where none were held out.
        scores: What parties are asked for where their scores are predicted from; None where trees
            do not keep to one party.
    """

    layout: Layout
    trained: Trained
    posterior: Posterior | None = None
    labels: np.ndarray[Any, Any] | None = None
    denoised: bool | None = None
    verdict: Verdict | None = None
    score: HeldOutScore | None = None
    scores: ScoreParts | None = None

    def of_released(self, table: Any, release: Sequence[ReleasedColumn]) -> FloatArray:
        """Predictions for rows whose private columns were released, beside own columns.

        The release holds the columns of the layout, in its order.
        """
        own = self.layout.own_values(table, len(release[0]))
        if self.posterior is None:
            return self.of_matrix(self.layout.values(release, own))
        with threads_limited(len(own) * len(self.layout.names())):
            return self.posterior.predict(self.trained, release, own)

    def of_matrix(self, values: Matrix) -> FloatArray:
        """Predictions for rows in the features of the layout."""
        with threads_limited(values.size):
            return self.trained.predict(values)

    def of_scores(self, table: Any, answers: Mapping[str, ReleasedColumn], rows: int) -> FloatArray:
        """Predictions for rows whose scores parties released, beside own columns."""
        assert self.scores is not None
        own = self.layout.own_values(table, rows)
        return predicted_by_score(self.layout, self.trained, self.scores, own, answers)

    def sent_shares(self) -> dict[Hashable, float] | None:
        """The share of rows that sent each column, where predictions depend on it.

        It is 0 for columns that were left out, because they tell nothing about the label.
        """
        if self.posterior is None:
            return None
        names = (c.name for c in self.layout.private)
        return dict(zip(names, self.posterior.coding.sent, strict=True))

    def importances(self) -> dict[Hashable, float]:
        """How much each column was worth; one-hot features count for their column."""
        score = self.trained.importance()
        by_name: dict[Hashable, float] = {}
        place = 0
        for name, width in self.layout.widths():
            by_name[name] = float(score[place : place + width].sum())
            place += width
        return by_name
