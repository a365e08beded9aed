"""Predictions for rows of which feature parties hold a part.

A prediction is a job like a training that ends when the columns have come.  Nobody asks for values
behind cuts: the model has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray, IntArray
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.column_specs import column_to_dict
from opboost.columns.dataframes import column_names
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, PeerError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.files.train_and_predict import prediction_table
from opboost.parties.label.received_release import ReceivedRelease, sent
from opboost.parties.message_checks import check_values_shown, ends
from opboost.promises import Joint
from opboost.training.feature_matrix import Released


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions for the rows that all parties have, in the order of the label party's table.

    Attributes:
        rows: Where they stand in that table, rising.
        prediction: The likeliest class, or the value.
        probabilities: One column a class; None for a regression.
        classes: Those classes; None for a regression.
        guarantee: What is promised about one person's record.
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
        released: dict[Hashable, Sequence[Released]],
        places: IntArray,
        guarantee: Joint,
    ) -> Predicted:
        """The predictions for released rows that stand at these places of the table."""
        order = np.argsort(places)
        if isinstance(model, OpBoostRegressor):
            values = model.predict_released(own, released)[order]
            return cls(places[order], values, None, None, guarantee)
        chances = model.predict_proba_released(own, released)[order]
        likeliest = np.asarray(model.classes_[chances.argmax(axis=1)])
        return cls(places[order], likeliest, chances, model.classes_, guarantee)

    def table(self) -> pa.Table:
        """The columns that ``opboost predict`` writes."""
        return prediction_table(self.prediction, self.classes, self.probabilities)


def check_own(model: OpBoostClassifier | OpBoostRegressor, own: Any) -> None:
    """Refuse a table of the label party that lacks columns which the model takes from it."""
    names = [] if own is None else column_names(own)
    for column in model.own_columns_:
        if column.name not in names:
            raise ColumnError(
                column.name,
                "is needed by the model but is not in the table",
                hint="The label party held it in the training: add it to its table.",
            )


def of_model(
    model: OpBoostClassifier | OpBoostRegressor, offers: list[ReceivedRelease]
) -> dict[Hashable, Sequence[Released]]:
    """What the parties released, by the model's columns; anything else is refused.

    Names are told apart already, as they were for the training.
    """
    for offer in offers:
        check_values_shown(offer.schema)
    wanted = {c.name: c for c in model.private_columns_}
    for offer in offers:
        for column in offer.private:
            _check_column(column, wanted.pop(column.name, None), offer.channel.party)
    if wanted:
        names = ", ".join(repr(name) for name in wanted)
        raise PeerError(
            f"No party sent {names}, which the model was trained on. The parties of the training "
            "take part, with the columns that they had then."
        )
    share = sent(offers)
    if model.sent_share_ is not None and model.sent_share_ != share:
        raise PeerError(
            "The parties send another share of their columns a row than in the training "
            "(columns_per_row under [budget]). Bring that setting back."
        )
    released: dict[Hashable, Sequence[Released]] = {}
    for offer in offers:
        came = offer.received()
        released |= {c.name: [_with_book(c, r) for r in came[c.name]] for c in offer.private}
    return released


def _check_column(came: PrivateColumn, wanted: PrivateColumn | None, party: str) -> None:
    if wanted is None:
        raise PeerError(
            f"Party {party!r} sent column {came.name!r}, which the model does not have. It leaves "
            "out what was no part of the training."
        )
    theirs, ours = column_to_dict(came), column_to_dict(wanted)
    for part, differs in (
        ("mechanism", _differs(theirs["mechanism"], ours["mechanism"])),
        ("mapping", _differs(theirs["mapping"], ours["mapping"])),
        ("missing", came.flagged() != wanted.flagged()),
    ):
        if differs:
            raise PeerError(
                f"Column {came.name!r} of party {party!r} has another {part} than the model was "
                f"trained on: {_told(theirs[part])} instead of {_told(ours[part])}. Bring that "
                "setting back."
            )


def _differs(theirs: Any, ours: Any) -> bool:
    return theirs != ours and _told(theirs) != _told(ours)  # a gap's nan is not equal to itself


def _told(spec: Any) -> str:
    if not isinstance(spec, dict):
        return "none"
    return ", ".join(f"{key} {value}" for key, value in spec.items())


def _with_book(column: PrivateColumn, came: Released) -> Released:
    """A column that no row sent has no values; any value stands for its gaps."""
    if not isinstance(came, CodedColumn) or came.book is not None:
        return came
    lower = 0 if column.mapping is None else ends(column)[0]
    return replace(came, book=Codebook(np.array([lower])))
