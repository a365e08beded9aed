"""How important each column and each party is to a model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from opboost.estimators.boosted_base import BoostedBase
from opboost.plots.importance_chart import draw_importances

LABEL_PARTY = "label party"
"""The name under which the label party is listed with the feature parties."""


@dataclass(frozen=True, slots=True)
class Importances:
    """Shares of the total gain of all splits; they add up to one.

    Attributes:
        columns: The share of each column, the most important first; one-hot features count for
            their column.
        parties: The share of each party, with the label party's own columns as ``"label party"``;
            empty for a model trained on one machine.
        held_by: The party of each column, if there are parties.

    ``print`` shows a table.
    """

    columns: Mapping[Hashable, float]
    parties: Mapping[str, float]
    held_by: Mapping[Hashable, str]

    def __str__(self) -> str:
        lines = [
            (str(name), self.held_by.get(name, ""), f"{share:.3f}")
            for name, share in self.columns.items()
        ]
        lines = [("column", "party" if self.parties else "", "share"), *lines]
        lines += [("", party, f"{share:.3f}") for party, share in self.parties.items()]
        first, second = (max(len(line[k]) for line in lines) for k in (0, 1))
        gap = second + 2 if second else 0
        return "\n".join(f"{a:{first}}  {b:{gap}}{c}" for a, b, c in lines)

    def draw(self, path: str | Path) -> None:
        """Draw a bar chart as a ``.png``, ``.svg`` or ``.pdf`` file; needs ``opboost[plots]``."""
        columns = {str(name): share for name, share in self.columns.items()}
        held_by = {str(name): party for name, party in self.held_by.items()}
        draw_importances(columns, held_by, self.parties, Path(path))


def importances(model: BoostedBase) -> Importances:
    """Return how important each column and each party is to a fitted classifier or regressor.

    The gain of a split is how much it lowers the loss on the training rows.  A share is part of
    the total gain with XGBoost, LightGBM and ``hist-gbdt``; with ``gbdt``, it is scikit-learn's own
    importance.

    >>> import numpy as np, pandas as pd, opboost as op
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"pay": rng.uniform(0, 9, 500), "age": rng.integers(17, 91, 500)})
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=2.0)
    >>> clf = op.OpBoostClassifier(m, bounds={"pay": (0, 9)}, random_state=0)
    >>> found = op.importances(clf.fit(table, table["pay"] > 5))
    >>> list(found.columns), round(sum(found.columns.values()), 6)
    (['pay', 'age'], 1.0)
    """
    check_is_fitted(model)
    shares = model.trained_model_.importances()
    columns = dict(sorted(shares.items(), key=lambda item: -item[1]))
    known = model.origins_.parties
    if not known:
        return Importances(columns, {}, {})
    held_by = {name: known.get(name, LABEL_PARTY) for name in columns}
    parties: dict[str, float] = {}
    for name, share in columns.items():
        parties[held_by[name]] = parties.get(held_by[name], 0.0) + share
    return Importances(columns, dict(sorted(parties.items(), key=lambda p: -p[1])), held_by)
