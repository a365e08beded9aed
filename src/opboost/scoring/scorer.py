"""One model that scores the rows of a request."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import DataError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.scoring.input_columns import InputColumn, Place
from opboost.scoring.refusals import DOES_NOT_FIT, RequestRefused
from opboost.scoring.released_people import ReleasedPeople


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Predictions of some rows; probabilities have a column for each class."""

    prediction: np.ndarray[Any, Any]
    probability: FloatArray | None


class Scorer:
    """A model, and the columns that it needs in a request.

    Args:
        estimator: A fitted classifier or regressor.
        name: The model's name over HTTP.
        released: Stored releases.  With these, a request names people by ID, and their private
            columns are read from these releases.
        unknown: Whether to refuse an undeclared category, or to treat it as missing.

    >>> import numpy as np, pandas as pd, opboost as op
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(17, 91, 200), "own": rng.normal(size=200)})
    >>> clf = op.OpBoostClassifier(
    ...     bounds={"age": (17, 90)}, budget=op.Budget.record(4), booster="gbdt"
    ... )
    >>> scorer = Scorer(clf.fit(people, people["own"] > 0), "credit")
    >>> scorer.score(
    ...     {"age": [30, 60], "own": [2.5, -1.0]}, 2, "rows[{}]".format
    ... ).prediction.tolist()
    [True, False]
    """

    def __init__(
        self,
        estimator: OpBoostClassifier | OpBoostRegressor,
        name: str,
        *,
        released: ReleasedPeople | None = None,
        unknown: Literal["refuse", "missing"] = "refuse",
    ) -> None:
        self.name, self._model, self._people = name, estimator.trained_model_, released
        self._floats = getattr(self._model.trained, "floats", np.float32)
        self.classes = getattr(estimator, "classes_", None)
        self.guarantee = estimator.guarantee_
        self._own = {c.name: InputColumn.of_own(c) for c in estimator.own_columns_}
        self._private: dict[Hashable, InputColumn] = {}
        if released is None:
            self._private = {
                c.name: InputColumn.of_private(c, unknown) for c in estimator.private_columns_
            }
        order = [*self._own.values(), *self._private.values()]
        self.inputs = {column.name: column for column in order}
        self.ids = () if released is None else released.ids

    @property
    def ready(self) -> bool:
        """Whether requests can be answered: the stored releases, if any, can be read."""
        if self._people is None:
            return True
        try:
            self._people.check()
        except RequestRefused:
            return False
        return self._people.ready

    @property
    def names(self) -> list[str]:
        """The columns of a request; IDs come first if people are looked up."""
        return [*self.ids, *self.inputs]

    def score(self, columns: Mapping[str, Sequence[Any]], rows: int, place: Place) -> Scores:
        """Score rows given by column, under the names of :attr:`names`."""
        values = {name: column.read(columns[name], place) for name, column in self.inputs.items()}
        own = [c.block_of(values[self._own[c.name].name]) for c in self._model.layout.own]
        try:
            if self._people is not None:
                release = self._people.released([columns[name] for name in self.ids])
                features = self._model.layout.own_matrix(own, rows)
                return self._scores(self._model.of_released_rows(features, release))
            prepared = {
                c.name: c.prepare_values(values[self._private[c.name].name])
                for c in self._model.layout.private
            }
            matrix = self._model.layout.plain_matrix(prepared, own, self._floats)
            return self._scores(self._model.of_matrix(matrix))
        except DataError as error:  # unlike str(error), error.logged never quotes a value
            raise RequestRefused(DOES_NOT_FIT, error.logged) from None

    def warm_up(self) -> None:
        """Score one made-up row, so that the first request does not wait for libraries."""
        if self._people is not None:
            return
        example = {name: [column.example()] for name, column in self.inputs.items()}
        self.score(example, 1, "rows[{}]".format)

    def _scores(self, predicted: FloatArray) -> Scores:
        if self.classes is None:
            return Scores(predicted, None)
        return Scores(np.asarray(self.classes[predicted.argmax(axis=1)]), predicted)


def model_name(path: Path) -> str:
    """Return the name of the model in this file.

    >>> model_name(Path("models/credit.opboost"))
    'credit'
    """
    return path.name.removesuffix(".opboost")
