"""Continue a model on newly released people: check columns and labels, and reorder columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opboost.columns.continued_columns import NEXT_STEP, check_same_private
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, DataError
from opboost.training.feature_matrix import Layout, OwnTable
from opboost.training.released_columns import ReleasedColumn
from opboost.training.trained_model import TrainedModel


def continued_layout(earlier: TrainedModel, release: list[ReleasedColumn], own: OwnTable) -> Layout:
    """Return the earlier model's features for new rows, and sort the release into their order.

    Refuse new rows unless they have the same columns under the same declarations.
    """
    layout = earlier.layout
    check_same_columns(earlier, [c.private for c in release], own)
    came = {c.private.name: c for c in release}
    for known in layout.private:
        if came[known.name].withheld:
            raise ColumnError(
                known.name,
                "has no codebook, so trees in its values cannot be added to a model",
                hint="Let its party send codebook = 'full', or train a new model.",
            )
    release[:] = [came[c.name] for c in layout.private]
    return layout


def check_same_columns(
    earlier: TrainedModel, private: Sequence[PrivateColumn], own: OwnTable
) -> None:
    """Refuse private or own columns other than those of the earlier model."""
    check_same_private(earlier.layout.private, private)
    check_same_own(earlier, own)


def check_same_own(earlier: TrainedModel, own: OwnTable) -> None:
    """Refuse own columns that differ from the model's in name or kind."""
    known = {c.name: c for c in earlier.layout.own}
    given = {c.name: c for c in own.columns}
    for name in (*(known.keys() - given.keys()), *(given.keys() - known.keys())):
        place = "the table" if name in known else "the model that is continued"
        raise ColumnError(name, f"is not in {place}", hint=NEXT_STEP)
    for name, mine in known.items():
        if (mine.categories is None) != (given[name].categories is None):
            kind = "numbers" if mine.categories is None else "categories"
            raise ColumnError(name, f"holds {kind} in the model that is continued")


def check_same_labels(earlier: TrainedModel, labels: Any, task: str) -> None:
    """Refuse labels whose task or classes differ from the earlier model's."""
    known = earlier.labels
    if (known is None) != (labels is None):
        raise DataError(f"The model that is continued is not a {task}", hint=NEXT_STEP)
    if known is not None and known.tolist() != labels.tolist():
        raise DataError(
            "The classes of the new rows are not those of the model that is continued",
            hint="Each of its classes must occur, and no other.",
        )
