"""The split query: which codes a model was cut at, and what the answers become in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opboost.boosting.booster import Replace, Trained
from opboost.columns.codebook import Codebook
from opboost.errors import PeerError
from opboost.estimators.learner import Books
from opboost.parties.label.received_release import ReceivedRelease
from opboost.parties.message_checks import check_answer
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Cuts, SplitQuery


@dataclass(frozen=True, slots=True)
class SplitQuestion:
    """What one party is asked: codes by column, and where the answers belong in the model."""

    offer: ReceivedRelease
    left_up_to: bool
    width: int
    numbers: dict[int, int]
    codes: dict[int, tuple[int, ...]]
    books: Books

    @classmethod
    def of(
        cls, offer: ReceivedRelease, trained: Trained, books: Books, first: int
    ) -> SplitQuestion:
        """The question about a party whose first feature is ``first``."""
        numbers, feature, number = {}, first, 0
        for column in offer.private:
            if column.has_order:
                numbers[feature] = number
            feature += len(column.feature_names())
            number += len(column.release_names())
        cuts = trained.cuts()
        codes = {
            f: _wire_codes(cuts.get(f, []), books[f], offer.heads[number], trained.left_up_to)
            for f, number in numbers.items()
        }
        return cls(offer, trained.left_up_to, feature - first, numbers, codes, books)

    def query(self, job: str) -> SplitQuery:
        """The message: each column's codes, rising, those that stand for a value."""
        columns = [
            Cuts(number, self.codes[feature])
            for feature, number in self.numbers.items()
            if self.codes[feature]
        ]
        return SplitQuery(job, self.left_up_to, tuple(columns))

    def answered(self) -> dict[int, Replace]:
        """What replaces cuts of columns whose codebook is withheld; the whole answer is checked."""
        query = self.query(self.offer.schema.job)
        books = {number: head.codebook for number, head in enumerate(self.offer.heads)}
        try:
            cells = check_answer(query, self.offer.channel.answer(), self.offer.private, books)
        except PeerError as error:
            raise PeerError(f"Party {self.offer.channel.party!r}: {error}") from None
        asked = {cuts.column: cuts.codes for cuts in query.columns}
        return {
            feature: _Answered(
                dict(zip(asked[number], cells[number], strict=True)),
                self.offer.heads[number].values,
                self.left_up_to,
            )
            for feature, number in self.numbers.items()
            if number in asked and self.books[feature] is None
        }


def _wire_codes(
    cuts: Sequence[float], book: Codebook | None, head: ColumnHead, left_up_to: bool
) -> tuple[int, ...]:
    """The codes, as they were sent, at which a feature's cuts lie.

    A model that was trained on draws has codes of its own: their values lead to those of the wire.
    """
    first = 0 if left_up_to else 1
    if book is None or head.codebook is None:
        round_ = math.floor if left_up_to else math.ceil
        codes = {round_(cut) for cut in cuts if math.isfinite(cut)}
    else:
        value_of = book.last_of if left_up_to else book.value_of
        values = [v for v in map(value_of, cuts) if math.isfinite(v)]
        codes = set(np.flatnonzero(np.isin(head.codebook.values, values)).tolist())
    return tuple(sorted(c for c in codes if first <= c < head.values))


@dataclass(frozen=True, slots=True)
class _Answered:
    """A cut between codes to the value behind it."""

    values: dict[int, float]
    count: int
    left_up_to: bool

    def __call__(self, cut: float) -> float:
        if not math.isfinite(cut):
            return cut
        code = math.floor(cut) if self.left_up_to else math.ceil(cut)
        if code < (0 if self.left_up_to else 1):
            return -math.inf
        return self.values[code] if code < self.count else math.inf
