"""The split query: which codes a party is asked for, and how the answers enter the model.

The codes at which a model has cuts reveal something about labels.  A query for all codes of a
party's columns follows from its release alone, and reveals nothing about labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from opboost.boosting.booster import Replace, Trained
from opboost.columns.codebook import Codebook
from opboost.columns.private_column import PrivateColumn
from opboost.errors import PeerError
from opboost.parties.label.received_release import ReceivedRelease
from opboost.parties.message_checks import check_answer
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Cuts, SplitQuery
from opboost.training.feature_matrix import Books
from opboost.training.train_model import values_in

Ask = Literal["auto", "all", "used", "always", "if-needed"]
"""Which values a party is asked for.

``"all"`` asks for every value, and ``"used"`` (formerly ``"always"``) for the values behind the
model's cuts.  ``"if-needed"`` is ``"used"`` if some of these values are not known; otherwise it
asks for nothing.  ``"auto"`` is ``"all"`` if the values are known and few, otherwise ``"used"``.
"""

MAX_VALUES_ASKED = 256
"""The most values per column for which ``"auto"`` asks for all of them."""


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
        cls, offer: ReceivedRelease, trained: Trained, books: Books, first: int, *, whole: bool
    ) -> SplitQuestion:
        """Build the question for a party whose first feature is ``first``.

        With ``whole`` the question asks for all codes of all columns, otherwise for the codes of
        the model's cuts.
        """
        numbers, feature, number = {}, first, 0
        for column in offer.private:
            if column.has_order:
                numbers[feature] = number
            feature += len(column.feature_names())
            number += len(column.release_names())
        cuts = trained.cuts()
        left = trained.left_up_to
        codes = {
            f: _all_codes(offer.heads[number], left)
            if whole
            else _wire_codes(cuts.get(f, []), books[f], offer.heads[number], left)
            for f, number in numbers.items()
        }
        return cls(offer, trained.left_up_to, feature - first, numbers, codes, books)

    def query(self, job: str) -> SplitQuery:
        """Return the message: for each column the codes whose values are wanted, ascending."""
        columns = [
            Cuts(number, self.codes[feature])
            for feature, number in self.numbers.items()
            if self.codes[feature]
        ]
        return SplitQuery(job, self.left_up_to, tuple(columns))

    def answered(self) -> dict[int, Replace]:
        """Check the whole answer; return the cut values of columns whose codebook is withheld."""
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


def split_values(
    offers: Sequence[ReceivedRelease],
    trained: Trained,
    books: Books,
    ask: Ask,
) -> dict[int, Replace]:
    """Ask every party for the values behind the cuts of its columns, or for all its values.

    Parties whose codebooks are known are asked too, unless ``ask`` is ``"if-needed"``.
    """
    questions, feature = [], 0
    for offer in offers:
        whole = ask == "all" or (ask == "auto" and is_small(offer))
        question = SplitQuestion.of(offer, trained, books, feature, whole=whole)
        feature += question.width
        needed = any(books[f] is None for f in question.numbers)
        if ask != "if-needed" or needed:
            offer.channel.ask(question.query(offer.schema.job))
            questions.append(question)
    found = values_in(books, trained)
    for question in questions:
        found |= question.answered()
    return found


def is_small(offer: ReceivedRelease) -> bool:
    """Return whether a release contains its values, few enough that asking for all costs little.

    A party that withholds values until it is asked (``codebook = "cuts"``) is asked only for those
    of the model's cuts.
    """
    return all(
        head.codebook is not None and head.values <= MAX_VALUES_ASKED
        for column, head in zip(_released(offer), offer.heads, strict=True)
        if column.has_order
    )


def _released(offer: ReceivedRelease) -> list[PrivateColumn]:
    """Return the private column behind each released column."""
    return [c for c in offer.private for _ in c.release_names()]


def _all_codes(head: ColumnHead, left_up_to: bool) -> tuple[int, ...]:
    """Return every code of a column at which a cut could lie."""
    return tuple(range(0 if left_up_to else 1, head.values))


def ask_nothing(offers: Sequence[ReceivedRelease]) -> None:
    """Tell parties that no split value is needed: a continued model already has grid values."""
    for offer in offers:
        offer.channel.ask(SplitQuery(offer.schema.job, False, ()))
    for offer in offers:
        offer.channel.answer()


def _wire_codes(
    cuts: Sequence[float], book: Codebook | None, head: ColumnHead, left_up_to: bool
) -> tuple[int, ...]:
    """Return the codes, as the party sent them, at which a feature's cuts lie.

    A model that was trained on draws has its own codes, which are converted by their values.
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
    """Maps a cut between codes to the value behind it."""

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
