"""The output columns of a transformer, in the order of its input columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.estimators.remembered_table import Release


def output_columns(
    names: Sequence[Hashable], released: Release, *, passthrough: bool
) -> list[OutColumn | Hashable]:
    """Return released columns in place of private ones, and the names of others if they stay."""
    out: list[OutColumn | Hashable] = []
    for name in names:
        if name in released:
            out += released[name]
        elif passthrough:
            out.append(name)
    return out


def output_names(
    names: Sequence[Hashable],
    given: Sequence[Any],
    columns: Sequence[PrivateColumn],
    *,
    passthrough: bool,
) -> list[str]:
    """Return the names of the output columns; ``given`` has the caller's name for each input."""
    by_name = {c.name: c for c in columns}
    out: list[str] = []
    for name, given_name in zip(names, given, strict=True):
        if name in by_name:
            plain = by_name[name].release_names()
            prefix = str(name)
            out += [str(given_name) + str(n)[len(prefix) :] for n in plain]
        elif passthrough:
            out.append(str(given_name))
    return out


def input_names(given: Any, known: Any, count: int) -> Sequence[Any]:
    """Return the names of the input columns, checked as scikit-learn requires.

    ``known`` holds the column names of the table that was fitted, or None if it had none; ``count``
    is the number of its columns.
    """
    if given is not None:
        names = np.asarray(given, dtype=object)
        if known is not None and not np.array_equal(names, known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(names) != count:
            raise ValueError(
                f"input_features should have length equal to number of features ({count}), got "
                f"{len(names)}"
            )
        return list(names)
    return [f"x{i}" for i in range(count)] if known is None else list(known)
