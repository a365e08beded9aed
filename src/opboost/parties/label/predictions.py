"""Predictions for rows for which feature parties hold some columns.

A prediction is a job like training, but it ends when the columns have arrived.  It needs no split
query, because the model already contains the values behind its cuts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray, IntArray
from opboost.columns.codebook import Codebook
from opboost.columns.column_specs import declared_difference
from opboost.columns.dataframes import column_names
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, ParameterError, PeerError
from opboost.files.predict_without import presence_columns
from opboost.parties.label.received_release import ReceivedRelease
from opboost.parties.message_checks import check_values_shown, ends
from opboost.promises import Joint
from opboost.training.absent_columns import absent_column
from opboost.training.column_screening import LEFT_OUT
from opboost.training.released_columns import ReleasedColumn

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions in the order of the label party's table.

    They cover the rows that all parties have, or with ``rows="mine"`` all rows.

    Attributes:
        rows: Their places in that table, ascending.
        prediction: The most likely class, or the value.
        probabilities: One column per class; None for a regression.
        classes: The classes of those columns; None for a regression.
        guarantee: The privacy guarantee for one person's record.
    """

    rows: IntArray
    prediction: np.ndarray[Any, Any]
    probabilities: FloatArray | None
    classes: np.ndarray[Any, Any] | None
    guarantee: Joint

    @classmethod
    def of(
        cls,
        model: OpBoostClassifier | OpBoostRegressor,
        own: Any,
        release: Sequence[ReleasedColumn],
        places: IntArray,
        guarantee: Joint,
    ) -> Predicted:
        """Predict released rows; ``places`` are their places in the table."""
        return cls._of(model, model.trained_model_.of_released(own, release), places, guarantee)

    @classmethod
    def of_scores(
        cls,
        model: OpBoostClassifier | OpBoostRegressor,
        own: Any,
        answers: Mapping[str, ReleasedColumn],
        places: IntArray,
        guarantee: Joint,
    ) -> Predicted:
        """Predict rows for which each party released its part of the score."""
        found = model.trained_model_.of_scores(own, answers, len(places))
        return cls._of(model, found, places, guarantee)

    @classmethod
    def _of(
        cls,
        model: OpBoostClassifier | OpBoostRegressor,
        predicted: FloatArray,
        places: IntArray,
        guarantee: Joint,
    ) -> Predicted:
        order = np.argsort(places)
        found = predicted[order]
        from opboost.estimators import OpBoostRegressor

        if isinstance(model, OpBoostRegressor):
            return cls(places[order], found, None, None, guarantee)
        likeliest = np.asarray(model.classes_[found.argmax(axis=1)])
        return cls(places[order], likeliest, found, model.classes_, guarantee)

    def table(self) -> pa.Table:
        """Return the columns that ``opboost predict`` writes."""
        from opboost.files.train_and_predict import prediction_table

        return prediction_table(self.prediction, self.classes, self.probabilities)


def check_own(model: OpBoostClassifier | OpBoostRegressor, own: Any) -> None:
    """Refuse a table of the label party that lacks own columns of the model."""
    names = [] if own is None else column_names(own)
    added = presence_columns(model)
    for column in model.own_columns_:
        if column.name not in names and column.name not in added:
            raise ColumnError(
                column.name,
                "is needed by the model but is not in the table",
                hint="The label party held it in training: add it to the label party's table.",
            )


def names_of_party(model: OpBoostClassifier | OpBoostRegressor, party: str) -> list[str]:
    """Return a party's own names for its columns of the model."""
    parties = model.origins_.parties
    return [str(n).removeprefix(f"{party}.") for n, owner in parties.items() if owner == party]


def check_no_absence(rows: str, without: Sequence[str]) -> None:
    """Refuse a prediction by score unless every party takes part and knows every row."""
    if rows == "mine" or without:
        raise ParameterError(
            "A prediction by score needs every party to know every row. Use release='columns', or "
            "rows='common' without leaving a party out."
        )


def check_offers(
    model: OpBoostClassifier | OpBoostRegressor,
    offers: Sequence[ReceivedRelease],
    without: Sequence[str] = (),
) -> None:
    """Refuse anything but the model's columns, under the declarations of the training.

    Columns already have the unique names that they were given in training.
    """
    for offer in offers:
        check_values_shown(offer.schema)
    wanted = {c.name: c for c in model.private_columns_}
    for offer in offers:
        for column in offer.private:
            _check_column(column, wanted.pop(column.name, None), offer.channel.party)
    parties = model.origins_.parties
    lacking = [name for name in wanted if parties.get(name) not in without]
    if lacking:
        names = ", ".join(repr(name) for name in lacking)
        raise PeerError(
            f"No party sent {names}, which the model was trained on. Predict with the parties "
            "and columns of the training, or leave parties out by name (without)."
        )
    shares = {c.name: offer.sent for offer in offers for c in offer.private}
    known = model.sent_shares_ or {}
    if any(share not in (LEFT_OUT, shares.get(name, share)) for name, share in known.items()):
        raise PeerError(
            "The parties send a different share of their columns per row than in training "
            "(columns_per_row under [budget]). Restore that setting."
        )


def of_model(
    model: OpBoostClassifier | OpBoostRegressor, release: Sequence[ReleasedColumn], rows: int
) -> list[ReleasedColumn]:
    """Return the released columns in the model's order; missing ones count as not sent."""
    came = {c.private.name: _with_book(c) for c in release}
    return [came.get(c.name) or absent_column(c, rows) for c in model.private_columns_]


def _check_column(came: PrivateColumn, wanted: PrivateColumn | None, party: str) -> None:
    if wanted is None:
        raise PeerError(
            f"Party {party!r} sent column {came.name!r}, which the model does not have. It must "
            "leave out columns that were not part of the training."
        )
    if differs := declared_difference(came, wanted):
        part, theirs, ours = differs
        raise PeerError(
            f"Column {came.name!r} of party {party!r} differs in {part} from the one that the "
            f"model was trained on: {theirs} instead of {ours}. Restore that setting."
        )


def _with_book(column: ReleasedColumn) -> ReleasedColumn:
    """Give a column without any sent value a codebook of one value, to which its gaps refer."""
    private = column.private
    book = Codebook(np.array([0 if private.mapping is None else ends(private)[0]]))
    parts = (replace(p, book=book) if p.book is None else p for p in column.parts)
    return replace(column, parts=tuple(parts))
