"""A model trained with feature parties, and what its file and its estimator need."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opboost.budgets.release_accounting import Account
from opboost.budgets.release_terms import Counted, Terms
from opboost.promises import Joint, NoGuarantee
from opboost.training.column_origins import Origins
from opboost.training.model_file import ModelTerms, save_model_file
from opboost.training.targets import LabelKind
from opboost.training.trained_model import TrainedModel

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

ESTIMATORS: dict[LabelKind, str] = {
    "classify": "OpBoostClassifier",
    "regress": "OpBoostRegressor",
}
"""The name of the estimator for each kind of label."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelWithParties:
    """A model of columns that parties released under a joint promise.

    Its table has the label party's own columns first, then each party's in turn.
    """

    kind: LabelKind
    settings: Mapping[str, Any]
    """Parameters of the estimator."""
    model: TrainedModel
    promise: Joint
    """What the releases of this training guarantee."""
    origins: Origins
    scores_later: float
    """The most that scores in predictions may additionally reveal about a person."""
    earlier: Counted
    """The releases of the model that this training continued."""

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The columns of the model's table."""
        layout = self.model.layout
        return (*(c.name for c in layout.own), *(c.name for c in layout.private))

    def guarantee(self) -> Joint | NoGuarantee:
        """Return the promise of all releases, those of a continued model included."""
        return self._account().guarantee()

    def save(self, path: Path, label: str) -> None:
        """Write the file that ``estimator().save`` writes, without loading scikit-learn."""
        terms = ModelTerms(
            ESTIMATORS[self.kind],
            self.names,
            True,
            str(self.guarantee()),
            self.origins,
            self._account().counted(),
            label,
        )
        save_model_file(self.model, terms, path)

    def estimator(self) -> OpBoostClassifier | OpBoostRegressor:
        """Return the fitted estimator."""
        from opboost.estimators.boosted import KINDS
        from opboost.estimators.boosted_base import fitted_to_parties

        mechanisms = {c.name: c.mechanism for c in self.model.layout.private}
        bare = KINDS[self.kind](mechanisms, **self.settings)
        released = self._account().counted()
        made = fitted_to_parties(bare, self.model, self.names, released, self.origins)
        made.scores_later_ = self.scores_later
        return made

    def _account(self) -> Account:
        """Add the releases of this training to earlier ones: a person may be in all of them."""
        columns, promise = self.model.layout.private, self.promise
        terms = Terms(columns, promise.columns_per_row, promise.caveats, choices=promise.choices)
        account = Account(terms, {terms: 1})
        account.add_earlier(self.earlier)
        return account
