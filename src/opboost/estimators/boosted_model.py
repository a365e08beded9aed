"""A boosted model in grid values, with what it needs to predict from released or clean columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opboost._typing import FloatArray
from opboost.boosting import Trained
from opboost.errors import ParameterError
from opboost.training.denoised_rows import decoded
from opboost.training.feature_matrix import Layout, Released
from opboost.training.posterior_prediction import Posterior


@dataclass(frozen=True, slots=True)
class BoostedModel:
    """A trained model, the layout of its features, and the posterior if rows were denoised."""

    layout: Layout
    trained: Trained
    posterior: Posterior | None

    def of_released(
        self, table: Any, released: Mapping[Hashable, Sequence[Released]]
    ) -> FloatArray:
        """Predictions for rows whose private columns were released, beside own columns."""
        values = decoded(self.layout, released)
        if self.posterior is None:
            return self.trained.predict(self.layout.released_values(table, values))
        rows = len(next(iter(values.values()))[0].values)
        own = self.layout.own_values(table, rows)
        return self.posterior.predict(self.trained, values, own)

    def importances(self) -> dict[Hashable, float]:
        """How much each column was worth; one-hot features count for their column."""
        score = self.trained.importance()
        by_name: dict[Hashable, float] = {}
        place = 0
        for name, width in self.layout.widths():
            by_name[name] = float(score[place : place + width].sum())
            place += width
        return by_name

    def save(self, path: Path, *, units: str, strip: bool) -> None:
        """Write the stock library's own file, in grid values or in raw ones."""
        trained = self.trained
        if units == "raw":
            trained = trained.replaced(self.layout.raw_units(trained.left_up_to))
        elif units != "grid":
            raise ParameterError(f"units must be 'grid' or 'raw'; got {units!r}.")
        trained.save(path, strip=strip)
