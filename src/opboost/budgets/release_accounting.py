"""The account of an estimator's releases, and their sum."""

from __future__ import annotations

import hashlib
import numbers
from typing import Any

import numpy as np

from opboost._typing import Words
from opboost.budgets.release_counts import distinct_words, register
from opboost.budgets.release_terms import Counted, Terms, added_up
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.grid import NumericMapping, OrdinalMapping
from opboost.mechanisms import NominalMechanism
from opboost.promises import Joint, NoGuarantee
from opboost.randomness.splitmix64 import add_hashes

COPIED = "this estimator is a copy of a fitted one: other releases of the same rows are not counted"
LOADED = "this estimator was loaded from a file: other releases of the same rows are not counted"

_MISSING = np.uint64(0x7FC00000)  # the bits of a 32-bit NaN


class RowSums:
    """Hashes of rows by the content of their private columns, built column by column.

    A row keeps its hash in a copy or a subset of the table, with columns reordered or renamed,
    and as 32-bit floats.  Rows with equal content count as one.  If two people in different
    tables have equal records, their releases are therefore counted too often rather than too
    rarely.  Equal rows within one table count once, as if they were about different people.
    """

    def __init__(self) -> None:
        self._total: Words | None = None

    def add(self, column: PrivateColumn, prepared: Prepared) -> None:
        """Add one private column."""
        if self._total is None:
            self._total = np.zeros(len(prepared.cells), dtype=np.uint64)
        if isinstance(column.mapping, NumericMapping):
            words = _number_words(prepared.raw)
        else:
            known = np.array([_word(c) for c in _categories(column)], dtype=np.uint64)
            words = known[prepared.raw.astype(np.int64)]
        add_hashes(self._total, np.where(prepared.missing, _MISSING, words))

    @property
    def total(self) -> Words:
        """The hashes without a key."""
        assert self._total is not None
        return self._total


def _number_words(values: Any) -> Words:
    with np.errstate(over="ignore"):
        narrow = np.asarray(values, dtype=np.float32) + np.float32(0)  # no negative zero
    return np.asarray(narrow.view(np.uint32).astype(np.uint64))


def _word(category: Any) -> Any:
    if category is None:
        return _MISSING
    if isinstance(category, numbers.Real):
        return _number_words([float(category)])[0]
    digest = hashlib.blake2b(repr(category).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _categories(column: PrivateColumn) -> tuple[Any, ...]:
    if isinstance(column.mapping, OrdinalMapping):
        return column.mapping.order.categories
    assert isinstance(column.mechanism, NominalMechanism)
    return column.mechanism.categories


class Account:
    """The releases of a fitted transformer, and the sum of all releases of the same rows.

    ``brought`` counts the releases made before the account was copied or loaded into this process,
    and ``note`` says how it got here.  A pickle holds the counts, but no hash of a row.
    """

    def __init__(self, terms: Terms, brought: Counted | None = None, note: str = "") -> None:
        self.terms, self._brought, self._note = terms, dict(brought or {}), note
        self._rows: list[Words] = []

    def add(self, sums: RowSums) -> None:
        """Count one release, before it is returned."""
        self._rows.append(register().note(self.terms, sums.total))

    def add_earlier(self, counted: Counted) -> None:
        """Count the releases of the model that is continued: a person may be in both tables."""
        for terms, times in counted.items():
            self._brought[terms] = self._brought.get(terms, 0) + times

    def counted(self) -> dict[Terms, int]:
        """Return, by terms, the most releases of any one row so far, wherever they were made."""
        counted = dict(self._brought) or {self.terms: 0}
        for terms, counts in register().counts(self._keys()).items():
            counted[terms] = counted.get(terms, 0) + int(counts.max())
        return {terms: times for terms, times in counted.items() if times}

    @property
    def releases(self) -> int:
        """The largest number of releases of any one row."""
        local = sum(register().counts(self._keys()).values(), np.zeros(1, dtype=np.int64))
        return sum(self._brought.values()) + int(local.max())

    def guarantee(self) -> Joint | NoGuarantee:
        """Return the promise of all releases of these rows, or of one if none was made yet."""
        notes = [self._note] if self._note else []
        if self._rows or not self._brought:  # otherwise nothing was released here
            notes += register().notes(self.terms)
        return added_up(self.counted() or {self.terms: 1}, notes)

    def _keys(self) -> Words:
        return distinct_words(np.concatenate([np.zeros(0, dtype=np.uint64), *self._rows]))

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "brought": self.counted()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["terms"], state["brought"], COPIED)  # type: ignore[misc]
