"""Which columns of each feature party a continued model needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opboost.errors import ParameterError
from opboost.protocol.messages import ColumnSchema

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor


def needed_columns(
    model: OpBoostClassifier | OpBoostRegressor, parties: Sequence[str]
) -> dict[str, tuple[ColumnSchema, ...]]:
    """Return each party's columns of a model, as it announced them; refuse other parties.

    If the model and the job each have a single feature party, its name may differ between them.
    """
    owners = model.origins_.parties
    if len(parties) == 1 and len(set(owners.values())) < 2:
        owners = {c.name: parties[0] for c in model.private_columns_}
    known = sorted(set(owners.values()))
    if not known:
        raise ParameterError(
            "The model that is continued does not say which party holds each of its columns, and "
            f"the job has {len(parties)} feature parties. Train a new model with them."
        )
    for name in (*known, *parties):
        if name not in known or name not in parties:
            lacks = "takes no part in the job" if name in known else "has no columns in it"
            raise ParameterError(
                f"A model is continued with the parties of its training ({', '.join(known)}), and "
                f"{name!r} {lacks}. Continue it with the same parties, or train a new model."
            )
    found: dict[str, list[ColumnSchema]] = {name: [] for name in parties}
    for column in model.private_columns_:
        described = ColumnSchema.of(column, str(column.name), "raw")
        found[owners[column.name]].append(described)
    return {name: tuple(columns) for name, columns in found.items()}
