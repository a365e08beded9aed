"""The columns that a party's schema announces, and what each column's header may contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opboost.columns.private_column import PrivateColumn
from opboost.errors import PeerError
from opboost.parties.message_checks import ends
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Schema


class _Range(NamedTuple):
    """The lowest and highest output of a released column, and whether its codebook is withheld."""

    lower: int
    upper: int
    withheld: bool
    most_symbols: int


@dataclass(frozen=True, slots=True)
class AnnouncedColumns:
    """The released columns that a schema announces, with the range of each computed once."""

    rows: int
    ranges: tuple[_Range, ...]

    @classmethod
    def of(cls, schema: Schema, private: Sequence[PrivateColumn] | None = None) -> AnnouncedColumns:
        """Read a schema's columns; ``private`` are its private columns if already known."""
        columns = schema.private() if private is None else private
        cuts = schema.codebook == "cuts"
        ranges = tuple(_range(c, cuts) for c in columns for _ in c.release_names())
        return cls(schema.rows, ranges)

    def most_symbols(self, number: int) -> int:
        """Return the most symbols a column's stream may have: its outputs, plus one for gaps."""
        if number >= len(self.ranges):
            raise PeerError(f"Column {number} arrived, but only {len(self.ranges)} are announced.")
        return self.ranges[number].most_symbols

    def check(self, head: ColumnHead, number: int) -> None:
        """Refuse a column whose header contradicts its party's schema."""
        if number >= len(self.ranges) or head.column != number:
            raise PeerError(f"Column {head.column} arrived where column {number} was due.")
        lower, upper, withheld, _ = self.ranges[number]
        if head.rows != self.rows:
            raise PeerError(f"Column {number} has {head.rows:,} rows, the schema {self.rows:,}.")
        if head.values > upper - lower + 1:
            raise PeerError(
                f"Column {number} has {head.values} codes, more than its grid has cells."
            )
        if (head.codebook is None) != (withheld or not head.values):
            raise PeerError(f"Column {number} withholds its codebook, or should but does not.")
        if head.codebook is not None:
            values = head.codebook.values
            if values[0] < lower or values[-1] > upper:
                raise PeerError(f"Column {number} has values outside its grid {lower}..{upper}.")


def _range(column: PrivateColumn, cuts: bool) -> _Range:
    lower, upper = (0, 1) if column.mapping is None else ends(column)
    return _Range(lower, upper, cuts and column.has_order, upper - lower + 2)
