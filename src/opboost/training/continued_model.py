"""More trees on newly released people: what their columns share with an earlier model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opboost.columns.column_specs import declared_difference
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, DataError
from opboost.training.feature_matrix import Layout, OwnTable
from opboost.training.released_columns import ReleasedColumn
from opboost.training.trained_model import TrainedModel

_NEXT = "Give the columns and settings of the earlier training, or train a new model."


def continued_layout(earlier: TrainedModel, release: list[ReleasedColumn], own: OwnTable) -> Layout:
    """The earlier model's features for new rows; the release is put into their order.

    The new rows have the same columns under the same declarations; anything else is refused.
    """
    layout = earlier.layout
    check_same_private(earlier, [c.private for c in release])
    came = {c.private.name: c for c in release}
    for known in layout.private:
        if came[known.name].withheld:
            raise ColumnError(
                known.name,
                "has no codebook, so trees in its values cannot be added to a model",
                hint="Its party sends codebook = 'full', or a new model is trained.",
            )
    check_same_own(earlier, own)
    release[:] = [came[c.name] for c in layout.private]
    return layout


def check_same_private(earlier: TrainedModel, private: Sequence[PrivateColumn]) -> None:
    """Refuse other private columns, or other declarations, than the earlier model knows."""
    layout, came = earlier.layout, {c.name: c for c in private}
    for known in layout.private:
        if known.name not in came:
            raise ColumnError(known.name, "is private in the model that is continued", hint=_NEXT)
    for name in came.keys() - {c.name for c in layout.private}:
        raise ColumnError(name, "is not private in the model that is continued", hint=_NEXT)
    for known in layout.private:
        if differs := declared_difference(came[known.name], known):
            part, here, there = differs
            raise ColumnError(
                known.name,
                f"has another {part} than in the model that is continued",
                detail=f"{here} instead of {there}",
                hint=_NEXT,
            )


def check_same_own(earlier: TrainedModel, own: OwnTable) -> None:
    """Refuse other columns of the label party's own, or other kinds, than the model knows."""
    known = {c.name: c for c in earlier.layout.own}
    given = {c.name: c for c in own.columns}
    for name in (*(known.keys() - given.keys()), *(given.keys() - known.keys())):
        place = "the table" if name in known else "the model that is continued"
        raise ColumnError(name, f"is not in {place}", hint=_NEXT)
    for name, mine in known.items():
        if (mine.categories is None) != (given[name].categories is None):
            kind = "numbers" if mine.categories is None else "categories"
            raise ColumnError(name, f"holds {kind} in the model that is continued")


def check_same_labels(earlier: TrainedModel, labels: Any, task: str) -> None:
    """Refuse labels of another task or of other classes than the earlier model knows."""
    known = earlier.labels
    if (known is None) != (labels is None):
        raise DataError(f"The model that is continued is no {task}", hint=_NEXT)
    if known is not None and known.tolist() != labels.tolist():
        raise DataError(
            "The new rows hold other classes than the model that is continued",
            hint="Each class must be among them, and no other.",
        )
