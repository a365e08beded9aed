"""Sound pipelines, and pipelines broken on purpose, for the audit of a whole release."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost.ledger import Drawing
from opboost.mechanisms import WindowWithMissing
from opboost.parties.feature.feature_party import FeatureParty
from opboost.storage import atomic_files
from robustness.audits.pipeline_trial import Pipeline, Record

RECORD_BUDGET = """
[budget]
record = 1.5
columns_per_row = 1
[columns.age]
bounds = [0, 3]
cells = 3
missing = "symbol"
[columns.pay]
bounds = [0, 3]
cells = 3
"""

BY_DISTANCE = """
[grid]
lower = 1
upper = 3
[mechanism]
kind = "clamp-map"
epsilon = 0.5
[columns.age]
bounds = [0, 3]
missing = "flag"
eps_missing = 0.7
missing_constant = 1.5
[columns.pay]
bounds = [0, 3]
"""

EVERY_RECORD: list[Record] = list(itertools.product((1, 2, 3, None), (1, 2, 3)))
SOME_RECORDS: list[Record] = [(1, 1), (None, 1), (3, 1), (1, 3)]

SOUND = {
    "a record budget, one of two columns per row, gaps as a symbol": Pipeline(RECORD_BUDGET),
    "levels per cell, all columns, gaps by a flag": Pipeline(BY_DISTANCE),
}


def fitted(declared: str, table: pa.Table) -> str:
    """Return a declaration whose bounds are taken from the data."""
    ends = pc.min_max(table["pay"]).as_py()
    return declared.replace("bounds = [0, 3]", f"bounds = [{ends['min']}, {ends['max'] + 1}]")


def changed(owner: Any, name: str, instead: Callable[..., Any]) -> Any:
    """Return a fault: ``instead`` gets the table, the method ``name``, and its arguments."""

    @contextmanager
    def fault(table: pa.Table) -> Iterator[None]:
        method = getattr(owner, name)
        with mock.patch.object(owner, name, lambda *given: instead(table, method, *given)):
            yield

    return fault


def true_flag(table: pa.Table, reports: Any, self: Any, gone: Any, rng: Any) -> Any:
    reports(self, gone, rng)
    return gone


def padded(table: pa.Table, add_checksum: Any, path: Path) -> None:
    """Make streams longer for larger values."""
    with path.open("ab") as file:
        file.write(bytes(8 * int(table["pay"][0].as_py())))
    add_checksum(path)


def largest(table: pa.Table, sent: Any, self: Any, people: Any) -> Any:
    """Send the column with the larger value."""
    age, pay = (np.nan_to_num(table[name].to_numpy()) for name in ("age", "pay"))
    return np.column_stack([age >= pay, age < pay])


def sorted_by_value(table: pa.Table, released: Any, self: Any, job: str) -> Any:
    """Send streams in an order that depends on the value."""
    schema, files = released(self, job)
    return schema, files[::-1] if table["pay"][0].as_py() > 2 else files


FAULTY = {
    "a mapping fitted on the data": Pipeline(RECORD_BUDGET, misread=fitted),
    "a level a thousandth larger than declared": Pipeline(
        RECORD_BUDGET, misread=lambda declared, _: declared.replace("1.5", "1.5015")
    ),
    "gaps reported truthfully": Pipeline(
        RECORD_BUDGET, changed(WindowWithMissing, "_reports", true_flag)
    ),
    "sizes that depend on values": Pipeline(
        RECORD_BUDGET, changed(atomic_files, "add_checksum", padded)
    ),
    "columns chosen by value": Pipeline(RECORD_BUDGET, changed(Drawing, "_sent", largest)),
    "messages ordered by value": Pipeline(
        RECORD_BUDGET, changed(FeatureParty, "released", sorted_by_value)
    ),
    "a refusal that depends on a value": Pipeline(
        RECORD_BUDGET.replace('missing = "symbol"\n', "")
    ),
}
