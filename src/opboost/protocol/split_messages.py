"""The split query, which asks for the values behind cuts, and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from opboost.protocol.message_rules import BYTES, INT, TEXT, Units, arrow, check, check_job


@dataclass(frozen=True, slots=True)
class Cuts:
    """The distinct codes, ascending, at which trees split the rows of one released column."""

    column: int
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.codes, self.codes[1:], strict=False))
        check(rising and bool(self.codes) and self.codes[0] >= 0, "Cuts are ascending codes.")
        check(self.column >= 0, "Columns are numbered from 0.")


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """The label party's request for values: cuts by column, and nothing about trees.

    ``left_up_to`` says whether a value equal to a threshold belongs to its left side; this is
    needed for answers in raw units.
    """

    job: str
    left_up_to: bool
    columns: tuple[Cuts, ...]

    KIND: ClassVar = "split query"
    ARROW: ClassVar = arrow(
        job=TEXT,
        left_up_to=pa.bool_(),
        columns=pa.list_(pa.struct([("column", INT), ("codes", pa.list_(INT))])),
    )

    def __post_init__(self) -> None:
        check_job(self.job)
        numbers = [c.column for c in self.columns]
        check(numbers == sorted(set(numbers)), "A split query names each column once, in order.")


@dataclass(frozen=True, slots=True)
class Values:
    """The values behind the cuts of one column, in the same order."""

    column: int
    units: Units
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        check(self.units in ("grid", "raw"), "units are 'grid' or 'raw'.")
        check(not any(map(math.isnan, self.values)), "A split value must be a number.")


@dataclass(frozen=True, slots=True)
class SplitValues:
    """The answer to the split query whose digest it names."""

    job: str
    query: bytes
    columns: tuple[Values, ...]

    KIND: ClassVar = "split values"
    ARROW: ClassVar = arrow(
        job=TEXT,
        query=BYTES,
        columns=BYTES,
    )

    def __post_init__(self) -> None:
        check_job(self.job)
