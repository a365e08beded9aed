"""The feature parties' releases, as the label party receives them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import BoolArray
from opboost.columns.codebook import CodedColumn
from opboost.columns.private_column import PrivateColumn
from opboost.errors import PeerError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.channel import Channel
from opboost.promises import Choice, Joint, NoGuarantee
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Schema
from opboost.protocol.stored_columns import StoredColumn, read_head, unpack_column
from opboost.training.column_origins import Origins
from opboost.training.feature_matrix import OwnColumn
from opboost.training.released_columns import ReleasedColumn

BLOCK_ROWS = 1 << 20
"""The number of rows that are read at a time from columns on disk."""


@dataclass(frozen=True, slots=True)
class ReceivedRelease:
    """One party's release, with its columns renamed as in the model."""

    channel: Channel
    schema: Schema
    private: tuple[PrivateColumn, ...]
    heads: list[ColumnHead] = field(default_factory=list)
    """The headers of the released columns, known once these are received."""

    @property
    def sent(self) -> float:
        """The share of rows for which each of the party's columns is sent."""
        return self.schema.columns_per_row / len(self.private) or 1.0

    def received(self) -> list[ReleasedColumn]:
        """Return the released columns."""
        numbers = [c.name for c in self.private for _ in c.release_names()]
        found: dict[Hashable, list[CodedColumn]] = {c.name: [] for c in self.private}
        announced = AnnouncedColumns.of(self.schema, self.private)
        for number, (head, column) in enumerate(self.channel.columns()):
            announced.check(head, number)
            self.heads.append(head)
            found[numbers[number]].append(column)
        self._check_count(len(numbers))
        return [ReleasedColumn(c, tuple(found[c.name]), self.sent) for c in self.private]

    def stored(self, folder: Path) -> dict[Hashable, Sequence[StoredColumn]]:
        """Return the released columns by private column, unpacked into files instead of memory."""
        numbers = [c.name for c in self.private for _ in c.release_names()]
        found: dict[Hashable, list[StoredColumn]] = {c.name: [] for c in self.private}
        announced = AnnouncedColumns.of(self.schema, self.private)
        for number, file in enumerate(self.channel.files()):
            announced.check(read_head(file), number)
            column = unpack_column(file, folder / f"{self.channel.party}-{number:05d}.codes")
            self.heads.append(column.head)
            found[numbers[number]].append(column)
        self._check_count(len(numbers))
        return dict(found)

    def _check_count(self, due: int) -> None:
        came = len(self.heads)
        if came != due:
            raise PeerError(f"Party {self.channel.party!r} sent {came} of {due} columns.")


def sent_by_all(
    offers: Sequence[ReceivedRelease], release: Sequence[ReleasedColumn]
) -> BoolArray | None:
    """Return the rows for which every party sent something; None if that is all of them.

    A party sends nothing about a person whom it has forgotten.  Its schema announces any other gap.
    """
    released = {c.private.name: c.parts for c in release}
    return _sent_by_all(offers, released, offers[0].schema.rows)


def stored_by_all(
    offers: Sequence[ReceivedRelease], stored: Mapping[Hashable, Sequence[StoredColumn]]
) -> BoolArray | None:
    """Do as :func:`sent_by_all` for columns that stay on disk, a block of rows at a time."""
    if not any(c.head.gaps for columns in stored.values() for c in columns):
        return None
    count, found = offers[0].schema.rows, []
    for start in range(0, count, BLOCK_ROWS):
        here = slice(start, min(start + BLOCK_ROWS, count))
        size = here.stop - here.start
        released = {name: [c.rows(here) for c in columns] for name, columns in stored.items()}
        there = _sent_by_all(offers, released, size)
        found.append(np.ones(size, dtype=np.bool_) if there is None else there)
    whole = np.concatenate(found)
    return None if whole.all() else whole


def _sent_by_all(
    offers: Sequence[ReceivedRelease], released: Mapping[Hashable, Sequence[CodedColumn]], rows: int
) -> BoolArray | None:
    absent = [_absent(o, released, rows) for o in offers if not o.schema.columns_per_row]
    found = [rows for rows in absent if rows is not None and rows.any()]
    return None if not found else ~np.logical_or.reduce(found)


def _absent(
    offer: ReceivedRelease, released: Mapping[Hashable, Sequence[CodedColumn]], rows: int
) -> BoolArray | None:
    """Return the rows for which a party sent nothing; None if all its columns may report gaps."""
    columns = [(c.flagged() is not None, r) for c in offer.private for r in released[c.name]]
    gaps = [np.zeros(rows, bool) if r.missing is None else r.missing for _, r in columns]
    plain = [g for (flagged, _), g in zip(columns, gaps, strict=True) if not flagged]
    if not plain:
        return None
    if any((g != plain[0]).any() for g in plain) or any((plain[0] & ~g).any() for g in gaps):
        raise PeerError(
            f"Party {offer.channel.party!r} sent gaps in some columns of a row, which its schema "
            "does not announce."
        )
    return plain[0]


def named_apart(offers: list[ReceivedRelease], own: list[str]) -> list[ReceivedRelease]:
    """If parties have features of the same name, prefix the party's name or append a number."""
    seen = Counter([*own, *(n for o in offers for c in o.private for n in _all_names(c))])
    taken = set(own)
    apart = []
    for offer in offers:
        columns = []
        for column in offer.private:
            clash = any(seen[name] > 1 for name in _all_names(column))
            first = f"{offer.schema.party}.{column.name}" if clash else str(column.name)
            tries = chain([first], (f"{first}.{number}" for number in count(2)))
            columns.append(
                next(
                    c
                    for c in (replace(column, name=name) for name in tries)
                    if taken.isdisjoint(_all_names(c))
                )
            )
            taken.update(_all_names(columns[-1]))
        apart.append(replace(offer, private=tuple(columns)))
    return apart


def own_names(columns: Iterable[OwnColumn]) -> list[str]:
    """Return the names of the label party's columns, and of the features made from them."""
    return [name for c in columns for name in {str(c.name), *c.names()}]


def _all_names(column: PrivateColumn) -> set[str]:
    return {str(column.name), *column.feature_names()}


SCORES_LATER = "scores in predictions"
"""What a guarantee about training columns does not cover, if parties allow scores."""

_STATED_SCORES = re.compile(rf"{SCORES_LATER} of (?P<party>.+), at most (?P<most>\S+) more")


def promise(offers: list[ReceivedRelease]) -> Joint:
    """Return what all releases together guarantee about one person's record."""
    parts: dict[object, Any] = {}
    for offer in offers:
        parts |= {c.name: c.guarantee() for c in offer.private}
    caveats = tuple(
        f"{SCORES_LATER} of {o.schema.party}, at most {o.schema.scores:.12g} more"
        for o in offers
        if o.schema.scores
    )
    if len(offers) == 1:
        return Joint(parts, offers[0].schema.columns_per_row or None, caveats)
    choices = tuple(
        Choice(o.schema.columns_per_row, tuple(c.name for c in o.private))
        for o in offers
        if o.schema.columns_per_row
    )
    return Joint(parts, caveats=caveats, choices=choices)


def scores_stated(promise: Joint | NoGuarantee) -> dict[str, float]:
    """Return the most that scores may additionally reveal about a person, by party.

    It reads what :func:`promise` wrote, so it also works for the guarantee of a saved model.

    >>> scores_stated(Joint({}, None, ("scores in predictions of shop, at most 4.5 more",)))
    {'shop': 4.5}
    """
    if isinstance(promise, NoGuarantee):
        return {}
    found = (_STATED_SCORES.fullmatch(caveat) for caveat in promise.caveats)
    return {match["party"]: float(match["most"]) for match in found if match}


def scores_later(offers: Sequence[ReceivedRelease]) -> float:
    """Return the most that scores in predictions may additionally reveal about a person."""
    return sum(offer.schema.scores for offer in offers)


def origins(offers: Sequence[ReceivedRelease]) -> Origins:
    """Return which party holds each column, and for which columns raw units are withheld."""
    withheld = (c.name for o in offers if o.schema.units == "grid" for c in o.private)
    parties = {c.name: o.schema.party for o in offers for c in o.private}
    return Origins(parties, frozenset(withheld))


def seed(offers: list[ReceivedRelease]) -> int:
    """Return a seed derived from the releases."""
    digests = b"".join(head.digest for offer in offers for head in offer.heads)
    return int.from_bytes(hashlib.sha256(digests).digest()[:4], "big") >> 1
