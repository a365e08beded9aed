"""The label party's rows: its own columns, the labels, the IDs, and who else knows each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.columns.dataframes import rows_of
from opboost.parties.channel import Channel
from opboost.parties.label.known_rows import KnownRows, present, with_presence
from opboost.parties.label.received_release import ReceivedRelease, origins
from opboost.parties.message_checks import check_schema
from opboost.protocol.messages import Rows, Schema, Welcome
from opboost.psi.align_rules import RowChoice
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import Keys
from opboost.training.absent_columns import marked_absent
from opboost.training.released_columns import ReleasedColumn


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """The rows that a job is about: those of the table, or those that an alignment chose.

    Attributes:
        count: How many rows there are.
        own: The label party's own columns, or None.
        y: The labels, or None for rows to be predicted.
        keys: The rows' IDs.
        choice: ``"common"`` or ``"mine"``: which rows an alignment chooses.
        presence: Whether the model gets a column per party that says whether it knows the person.
        places: The rows' numbers in the table once they are aligned; None before.
        known: With ``"mine"``, who knows which rows, once they are aligned.
    """

    count: int
    own: Any
    y: Any
    keys: Keys
    choice: RowChoice = "common"
    presence: bool = False
    places: IntArray | None = None
    known: KnownRows | None = None

    def aligned(
        self, rows: IntArray, digests: Digests, known: Mapping[str, IntArray], nonce: bytes
    ) -> LabelRows:
        """Return the rows that an alignment chose, in the order given."""
        return replace(
            self,
            count=len(rows),
            own=where(self.own, rows),
            y=None if self.y is None else self.y[rows],
            keys=self.keys.chosen(rows, digests, nonce),  # frees memory for the training
            places=rows,
            known=KnownRows.of(digests, rows, known) if self.choice == "mine" else None,
        )

    def table_places(self) -> IntArray:
        """Return the rows' numbers in the table."""
        return np.arange(self.count) if self.places is None else self.places

    def check_given(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Refuse parties whose given rows differ from the label party's, before anybody draws."""
        if self.places is not None:  # aligned: both sides have proved that they know the rows
            return
        expected = self.count, self.keys.digest(welcome.nonce)
        for channel in channels:

            def check(rows: Rows, party: str = channel.party) -> None:
                check_schema(rows, party, welcome.job, *expected)

            channel.check_rows(welcome, check)

    def check_schema(self, schema: Schema, party: str, welcome: Welcome) -> None:
        """Refuse a party's release of other rows than these."""
        rows, digest = self.count, self.keys.digest(welcome.nonce)
        if self.known is not None:
            rows, digest = self.known.expected(party, welcome.nonce)
        check_schema(schema, party, welcome.job, rows, digest)

    def released(self, offers: Sequence[ReceivedRelease]) -> list[ReleasedColumn]:
        """Return the parties' released columns for these rows."""
        found = []
        for offer in offers:
            columns = offer.received()
            if self.known is not None:
                columns = [self.known.spread(c, offer.channel.party) for c in columns]
            elif self.choice == "mine":
                columns = marked_absent(columns)
            found += columns
        return found

    def own_with_presence(
        self, offers: Sequence[ReceivedRelease], release: Sequence[ReleasedColumn]
    ) -> Any:
        """Return the own columns, with the presence columns if they are wanted."""
        if not self.presence:
            return self.own
        return with_presence(self.own, present(release, origins(offers).parties))


def where(table: Any, rows: BoolArray | IntArray) -> Any:
    """Return some rows of a table; None if there is no table."""
    places = np.arange(len(rows))[rows] if rows.dtype == np.bool_ else rows.astype(np.int64)
    return None if table is None else rows_of(table, places)
