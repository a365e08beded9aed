"""The columns that come out of a transformer, in the order of those that went in."""

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
    """Released columns in the place of private ones; others by their name, if they stay."""
    out: list[OutColumn | Hashable] = []
    for name in names:
        if name in released:
            out += released[name]
        elif passthrough:
            out.append(name)
    return out


def output_names(
    names: Sequence[Hashable],
    spoken: Sequence[Any],
    columns: Sequence[PrivateColumn],
    *,
    passthrough: bool,
) -> list[str]:
    """The names of the columns that come out; ``spoken`` has the caller's name for each input."""
    by_name = {c.name: c for c in columns}
    out: list[str] = []
    for name, said in zip(names, spoken, strict=True):
        if name in by_name:
            plain = by_name[name].release_names()
            prefix = str(name)
            out += [str(said) + str(n)[len(prefix) :] for n in plain]
        elif passthrough:
            out.append(str(said))
    return out


def input_names(given: Any, known: Any, count: int) -> Sequence[Any]:
    """The names of the columns that went in, as scikit-learn wants them checked.

    ``known`` has those of the table in ``fit``, None if it had none; so many columns it had.
    """
    if given is not None:
        told = np.asarray(given, dtype=object)
        if known is not None and not np.array_equal(told, known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(told) != count:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({count}), got {len(told)}"
            )
        return list(told)
    return [f"x{i}" for i in range(count)] if known is None else list(known)
