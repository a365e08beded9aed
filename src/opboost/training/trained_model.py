"""A boosted model in grid values, and what it needs to predict from released or clean columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, FloatArray
from opboost.boosting import Trained
from opboost.boosting.booster import Matrix
from opboost.boosting.training_curve import Staged
from opboost.denoise import Verdict
from opboost.errors import DataError
from opboost.runtime.threads import threads_limited
from opboost.training.absent_columns import nobody_sent
from opboost.training.feature_matrix import Layout
from opboost.training.held_out_score import HeldOutScore
from opboost.training.posterior_prediction import Posterior
from opboost.training.released_columns import ReleasedColumn, rows_of
from opboost.training.score_by_party import ScoreParts, predicted_by_score


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A finished model.

    Attributes:
        layout: Its features.
        trained: The stock model, in grid values.
        posterior: What predicts desensitised rows; None if the model predicts them directly.
        labels: The classes; None for a regression.
        denoised: Whether it was trained on posterior draws; None if a file does not say.
        verdict: The held-out losses that ``denoise="auto"`` compared, or None.
        score: Its score on held-out rows; None if none were held out.
        scores: The scores that parties release in predictions by score; None if a tree may use the
            columns of several parties.
        own_rounds: How many of the first rounds read only own columns; these rounds predict rows
            that no party knows.
    """

    layout: Layout
    trained: Trained
    posterior: Posterior | None = None
    labels: np.ndarray[Any, Any] | None = None
    denoised: bool | None = None
    verdict: Verdict | None = None
    score: HeldOutScore | None = None
    scores: ScoreParts | None = None
    own_rounds: int = 0

    def of_released(
        self, table: Any, release: Sequence[ReleasedColumn], clear: frozenset[int] = frozenset()
    ) -> FloatArray:
        """Predict rows from released private columns and own columns.

        The release has the layout's columns, in its order.  The columns at the places ``clear``
        have no noise.
        """
        return self.of_released_rows(self.layout.own_values(table, len(release[0])), release, clear)

    def of_released_rows(
        self,
        own: Matrix,
        release: Sequence[ReleasedColumn],
        clear: frozenset[int] = frozenset(),
    ) -> FloatArray:
        """Predict rows from released private columns and own features."""
        nobody = nobody_sent(release)
        if not self.own_rounds or not nobody.any():
            return self._of_release(release, own, clear)
        alone = self._by_own_trees(release, own, nobody)
        if nobody.all():
            return alone
        whole = np.empty((len(own), *alone.shape[1:]))
        whole[nobody] = alone
        whole[~nobody] = self._of_release(rows_of(release, ~nobody), own[~nobody], clear)
        return whole

    def _of_release(
        self, release: Sequence[ReleasedColumn], own: Matrix, clear: frozenset[int]
    ) -> FloatArray:
        lacking = any(c.absent is not None and c.absent.any() for c in release)
        if self.posterior is None:
            if lacking and not self.own_rounds:
                raise DataError(
                    "The model was trained on noisy rows that all parties have, so it cannot "
                    "predict without a party's columns",
                    hint='Train it with denoising, or with rows = "mine".',
                )
            return self.of_matrix(self.layout.values(release, own))
        posterior = self.posterior.with_absent(clear) if lacking else self.posterior
        with threads_limited(len(own) * len(self.layout.names())):
            return posterior.predict(self.trained, release, own)

    def _by_own_trees(
        self, release: Sequence[ReleasedColumn], own: Matrix, rows: BoolArray
    ) -> FloatArray:
        """Predict rows for which no private column is known, with the first trees."""
        assert isinstance(self.trained, Staged)
        values = self.layout.values(rows_of(release, rows), own[rows])
        with threads_limited(values.size):
            return next(iter(self.trained.staged(values, [self.own_rounds])))

    def of_matrix(self, values: Matrix) -> FloatArray:
        """Predict rows in the features of the layout."""
        with threads_limited(values.size):
            return self.trained.predict(values)

    def of_scores(self, table: Any, answers: Mapping[str, ReleasedColumn], rows: int) -> FloatArray:
        """Predict rows from the scores that parties released and from own columns."""
        assert self.scores is not None
        own = self.layout.own_values(table, rows)
        return predicted_by_score(self.layout, self.trained, self.scores, own, answers)

    def sent_shares(self) -> dict[Hashable, float] | None:
        """Return the share of rows for which each column was sent; None if predictions ignore it.

        The share is 0 for columns that were left out because they say nothing about the label.
        """
        if self.posterior is None:
            return None
        names = (c.name for c in self.layout.private)
        return dict(zip(names, self.posterior.coding.sent, strict=True))

    def importances(self) -> dict[Hashable, float]:
        """Return the importance of each column; one-hot features count towards their column."""
        score = self.trained.importance()
        by_name: dict[Hashable, float] = {}
        place = 0
        for name, width in self.layout.widths():
            by_name[name] = float(score[place : place + width].sum())
            place += width
        return by_name
