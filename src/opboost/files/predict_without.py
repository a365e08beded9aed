"""Predict on one machine for rows that some feature parties do not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray
from opboost.columns.dataframes import column_names
from opboost.errors import ParameterError
from opboost.training.absent_columns import absent_column, clear_column

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor


def check_left_out(
    model: OpBoostClassifier | OpBoostRegressor, without: Sequence[str], here: Sequence[str] = ()
) -> None:
    """Refuse to leave out a party that the model does not have, or that takes part in the job."""
    known = sorted(set(model.origins_.parties.values()))
    for party in without:
        if party not in known:
            listed = ", ".join(map(repr, known)) or "none"
            raise ParameterError(
                f"The model has no columns of a party {party!r}; its parties: {listed}."
            )
        if party in here:
            raise ParameterError(
                f"Party {party!r} takes part in the job, so it cannot be left out. Leave it out of "
                "feature_parties in the job file, or do not name it after --without."
            )


def check_taking_part(
    model: OpBoostClassifier | OpBoostRegressor, without: Sequence[str], here: Sequence[str]
) -> None:
    """Refuse a prediction unless each of the model's parties takes part or is left out by name.

    This check precedes any release.  If the model and the job have one party each, their names may
    differ.  A model that was trained on one machine knows no parties.
    """
    known = sorted(set(model.origins_.parties.values()))
    if not known or (len(known) == 1 and len(here) == 1):
        return
    for party in known:
        if party not in here and party not in without:
            raise ParameterError(
                f"Party {party!r} holds columns of the model and takes no part in the job. Add it "
                f"to feature_parties in the job file, or predict without it (--without {party})."
            )
    for party in here:
        if party not in known:
            raise ParameterError(
                f"Party {party!r} takes part in the job but has no columns in the model; its "
                f"parties: {', '.join(map(repr, known))}. Leave it out of feature_parties in the "
                "job file."
            )


def columns_of(
    model: OpBoostClassifier | OpBoostRegressor, without: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns that rows must have if these parties are left out."""
    parties, added = model.origins_.parties, presence_columns(model)
    names = (str(name) for name in model.feature_names_in_)
    return tuple(n for n in names if parties.get(n) not in without and n not in added)


def presence_name(party: str) -> str:
    """Return the name of the column that says whether a feature party knows the person.

    >>> presence_name("shop")
    'known to shop'
    """
    return f"known to {party}"


def presence_columns(model: OpBoostClassifier | OpBoostRegressor) -> dict[str, str]:
    """Return the parties whose presence is a column of the model, by that column's name."""
    own = {c.name for c in model.own_columns_}
    found = {presence_name(party): party for party in model.origins_.parties.values()}
    return {name: party for name, party in found.items() if name in own}


def predicted_without(
    model: OpBoostClassifier | OpBoostRegressor, table: pa.Table, without: Sequence[str]
) -> FloatArray:
    """Return predictions without the columns of some parties; all other columns hold raw values.

    A model that was trained with ``rows = "mine"`` uses only the trees of the label party's
    own columns for rows that no feature party has.  All other rows are predicted through the
    posterior: the mean over the values that the missing columns may have.
    """
    parties, rows = model.origins_.parties, table.num_rows
    release, clear = [], []
    for place, private in enumerate(model.private_columns_):
        if parties.get(private.name) in without:
            release.append(absent_column(private, rows))
        else:
            release.append(clear_column(private, private.prepare(table)))
            clear.append(place)
    own: Any = table
    for name, party in presence_columns(model).items():
        if name not in column_names(table):
            own = own.append_column(name, pa.array(np.full(rows, int(party not in without))))
    return model.trained_model_.of_released(own, release, frozenset(clear))
