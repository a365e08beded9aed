"""Check that a feature party has the columns that a job needs, before anything is drawn.

A continued model keeps the columns and declarations of its first training.  The label party tells
each party which of the model's columns are its own, and the party compares them with its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opboost.columns.continued_columns import check_same_private
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ParameterError, refusing
from opboost.protocol.messages import Books, ColumnSchema, Welcome

MAX_NAME_NUMBER = 9
"""The highest number that is appended to a name shared by several columns of a job."""


def check_needed(
    welcome: Welcome, party: str, columns: Sequence[ColumnSchema], codebook: Books
) -> None:
    """Refuse a job that needs other columns than this party has, or values that it withholds.

    ``columns`` are those that the party would announce with its release.
    """
    if not welcome.columns and not welcome.values:
        return
    own = [c.column() for c in columns]
    with refusing("declaration"):
        if welcome.columns:
            known = [c.column() for c in welcome.columns]
            check_same_private(_under_own_names(known, own, party), own)
        if welcome.values and codebook == "cuts" and any(c.has_order for c in own):
            why = "continues a model" if welcome.columns else "stops early"
            raise ParameterError(
                f"The label party's job {why}, which needs the values of released codes, and "
                'codebook = "cuts" withholds them. Write codebook = "full" under [party]: it '
                "is computed from noisy values only, so it costs no privacy."
            )


def _under_own_names(
    known: Sequence[PrivateColumn], own: Sequence[PrivateColumn], party: str
) -> list[PrivateColumn]:
    """Return a party's columns in a model, renamed to the party's own names where they match.

    Columns that the party does not have keep the model's name.
    """
    left = {str(c.name): c for c in known}
    found = []
    for column in own:
        name = next((n for n in names_in_models(party, str(column.name)) if n in left), None)
        if name is not None:
            found.append(replace(left.pop(name), name=column.name))
    return [*found, *left.values()]


def names_in_models(party: str, name: str) -> Iterator[str]:
    """Yield the names that a party's column may have in a model, where all names are distinct.

    >>> list(names_in_models("shop", "age"))[:4]
    ['age', 'shop.age', 'age.2', 'shop.age.2']
    """
    names = (name, f"{party}.{name}")
    yield from names
    for number in range(2, MAX_NAME_NUMBER + 1):
        yield from (f"{n}.{number}" for n in names)
