"""Messages about a release: its columns and promises, and its receipt."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from opboost.columns.column_specs import column_from_dict, column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, OpBoostError, WireError, in_words, unseen
from opboost.grid import NumericMapping
from opboost.mechanisms import NominalMechanism, WithMissing
from opboost.protocol.message_rules import (
    BYTES,
    FLOAT,
    INT,
    TEXT,
    Units,
    arrow,
    check,
    check_job,
    check_party,
)

Books = Literal["full", "cuts"]
MAX_COLUMNS = 10_000


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """The public part of one private column; ``spec`` is its description as data.

    With units ``"grid"`` its bounds and category names are not sent: cells are numbered.
    """

    spec: str

    @classmethod
    def of(cls, column: PrivateColumn, name: str, units: Units) -> ColumnSchema:
        """Return the description of a column under the name that the label party may know."""
        spec = column_to_dict(column) | {"name": name}
        if units == "grid":
            spec = _without_units(column, spec)
        if found := _unseen(spec):
            raise ColumnError(
                column.name,
                f"has a name or a category with an invisible character ({found})",
                hint='Rename it; names = "hidden" and units = "grid" send numbers instead.',
            )
        return cls(json.dumps(spec, sort_keys=True, ensure_ascii=False))

    def column(self) -> PrivateColumn:
        """The column as declared, or, in grid units, as one whose raw values are its cells."""
        try:
            spec = json.loads(self.spec)
            if character := _unseen(spec):
                raise WireError(
                    "A column's name or category has an invisible character "
                    f"({character}), which a terminal might act on. Its party has to rename it, or "
                    'to send numbers (names = "hidden", units = "grid").'
                )
            found = column_from_dict(spec)
            check(isinstance(found.name, str) and 0 < len(found.name) <= 200, "A bad name.")
            found.guarantee()
        except WireError:
            raise
        except (OpBoostError, ValueError, TypeError, RecursionError, OverflowError) as error:
            raise WireError(f"A column's description cannot be used: {in_words(error)}.") from None
        return found


def _unseen(spec: Any) -> str:
    """Return the code point of a description's first invisible character, or an empty string."""
    if isinstance(spec, str):
        found = unseen(spec)
        return f"U+{ord(found):04X}" if found else ""
    inside = [*spec.keys(), *spec.values()] if isinstance(spec, dict) else spec
    if not isinstance(inside, list | tuple):
        return ""
    return next(filter(None, map(_unseen, inside)), "")


def _without_units(column: PrivateColumn, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the column with cells instead of raw values, and positions instead of categories."""
    if column.mapping is None:
        assert isinstance(column.mechanism, NominalMechanism)
        positions = list(range(1, len(column.mechanism.categories) + 1))
        spec["mechanism"] = {**spec["mechanism"], "categories": positions}
        spec["missing"] = {"policy": "raise"}
        return spec
    grid = column.mapping.domain
    if isinstance(column.mapping, NumericMapping):
        spec["mapping"] = {
            "grid": [grid.L, grid.R],
            "bounds": [grid.L - 0.5, grid.R + 0.5],
            "scale": "linear",
            "mapping": "cells",
        }
    else:
        spec["mapping"] = {"grid": [grid.L, grid.R], "order": list(range(grid.L, grid.R + 1))}
    flagged = column.flagged()
    spec["missing"] = {"policy": "raise"}
    if isinstance(flagged, WithMissing):
        level, cell = flagged.eps_missing, flagged.constant
        spec["missing"] = {"policy": "flag", "eps_missing": level, "constant": cell}
    elif flagged is not None:
        spec["missing"] = {"policy": "symbol"}
    return spec


@dataclass(frozen=True, slots=True)
class Schema:
    """The description of the release that a feature party is about to send.

    ``scores`` is the most that scores in predictions may additionally reveal about a person.
    """

    party: str
    job: str
    rows: int
    ids: bytes
    codebook: Books
    units: Units
    columns: tuple[ColumnSchema, ...]
    columns_per_row: int
    scores: float = 0.0

    KIND: ClassVar = "schema"
    ARROW: ClassVar = arrow(
        party=TEXT,
        job=TEXT,
        rows=INT,
        ids=BYTES,
        codebook=TEXT,
        units=TEXT,
        columns=BYTES,
        columns_per_row=INT,
        scores=FLOAT,
    )

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        check(self.rows > 0, "A release must have rows.")
        check(len(self.ids) == 32, "The digest of the row IDs has 32 bytes.")
        check(self.codebook in ("full", "cuts"), "codebook is 'full' or 'cuts'.")
        check(self.units in ("grid", "raw"), "units are 'grid' or 'raw'.")
        check(0 < len(self.columns) <= MAX_COLUMNS, "A release has from 1 to 10,000 columns.")
        check(0 <= self.columns_per_row <= len(self.columns), "columns_per_row is too large.")
        check(0 <= self.scores < math.inf, "The total of scores is a finite number from 0.")

    def private(self) -> tuple[PrivateColumn, ...]:
        """The private columns, as far as the label party knows them; their names are distinct."""
        found = tuple(c.column() for c in self.columns)
        names = [str(name) for c in found for name in c.release_names()]
        check(len(set(names)) == len(names), "A column's name occurs twice.")
        check(len(names) <= MAX_COLUMNS, "A release has at most 10,000 columns.")
        return found


MAX_HALVINGS = 3
"""How often a weight of one may be halved: a pilot's weights are 1, 1/2, 1/4 and 1/8."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The label party's answer to a pilot: how often each column is sent for other people.

    ``columns`` holds, in the schema's order, how often a weight of one is halved, 0 to 3 times.
    It is empty if the label party withholds the weights: then all columns weigh the same.
    """

    job: str
    columns: tuple[int, ...]

    KIND: ClassVar = "weights"
    ARROW: ClassVar = arrow(job=TEXT, columns=pa.list_(INT))

    def __post_init__(self) -> None:
        check_job(self.job)
        check(len(self.columns) <= MAX_COLUMNS, "A release has at most 10,000 columns.")
        halved = all(type(h) is int and 0 <= h <= MAX_HALVINGS for h in self.columns)
        check(halved, "A weight is halved 0 to 3 times.")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The head of a feature party's ledger at the time of a release, signed by that party."""

    party: str
    job: str
    entry: int
    head: bytes
    certificate: bytes
    signature: bytes

    KIND: ClassVar = "receipt"
    ARROW: ClassVar = arrow(
        party=TEXT, job=TEXT, entry=INT, head=BYTES, certificate=BYTES, signature=BYTES
    )

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        check(self.entry >= 0 and len(self.head) == 32, "A receipt names an entry and its hash.")

    def signed(self) -> bytes:
        """Return the bytes that the signature covers."""
        words = ["opboost receipt 1", self.party, self.job, str(self.entry), self.head.hex()]
        return "\n".join(words).encode()
