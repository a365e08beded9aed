"""The input columns of a model, and how JSON values become the arrays that it predicts from.

A value that does not fit is refused; the message names its column, its place and the rule.  The
message never shows the value, because answers end up in logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray
from opboost.columns.dataframes import Encoded
from opboost.columns.date_columns import as_days
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping
from opboost.scoring.refusals import DOES_NOT_FIT, RequestRefused
from opboost.training.feature_matrix import OwnColumn

Kind = Literal["number", "date", "number or date", "category"]

Place = Callable[[int], str]
"""A function that says where a row's value is in the request, such as ``rows[3]``."""

_NUMBERS: frozenset[type] = frozenset({int, float, bool, type(None)})
_SCALARS: frozenset[type] = _NUMBERS | {str}
_JSON_KINDS = {
    str: "text",
    bool: "a boolean",
    type(None): "null",
    list: "a list",
    dict: "an object",
}
_TAKES = {
    "number": "numbers",
    "date": "dates as text, such as 2024-05-31",
    "number or date": "numbers, or dates as text if it held dates in training",
    "category": "categories: text or numbers",
}


@dataclass(frozen=True, slots=True)
class InputColumn:
    """An input column of the requests.

    Attributes:
        name: Its name in the requests.
        kind: The kind of its values.
        gaps: Whether a value may be null.
        known: The model's categories by their JSON values; None for numbers.
        unknown: What to do with other categories: refuse them, count them as missing, or pass
            them on.
    """

    name: str
    kind: Kind
    gaps: bool
    known: Mapping[Any, Any] | None = None
    unknown: Literal["refuse", "missing", "pass"] = "refuse"

    @classmethod
    def of_private(
        cls, column: PrivateColumn, unknown: Literal["refuse", "missing"]
    ) -> InputColumn:
        """Return the input for a private column, which may hold what its declaration allows."""
        if isinstance(column.mapping, NumericMapping):
            kind: Kind = "number" if column.mapping.unit is None else "date"
            return cls(str(column.name), kind, column.takes_gaps)
        rule = unknown if column.takes_gaps else "refuse"
        known = _in_json(column.categories)
        return cls(str(column.name), "category", column.takes_gaps, known, rule)

    @classmethod
    def of_own(cls, column: OwnColumn) -> InputColumn:
        """Return the input for an own column, which ignores categories unknown in training."""
        if column.categories is None:
            return cls(str(column.name), "number or date", True)
        return cls(str(column.name), "category", True, _in_json(column.categories), "pass")

    @property
    def datatype(self) -> str:
        """The type of its tensor in the Open Inference Protocol."""
        if self.kind in ("number", "number or date"):
            return "FP64"
        texts = self.known is None or all(isinstance(c, str) for c in self.known)
        return "BYTES" if texts else "FP64"

    def example(self) -> Any:
        """Return a value that the column accepts."""
        if self.known is not None:
            return next(iter(self.known), None)
        return "2024-05-31" if self.kind == "date" else 0

    def read(self, values: Sequence[Any], place: Place) -> Encoded | FloatArray:
        """Return JSON values as floats, with NaN for missing values, or as categories.

        >>> age = InputColumn("age", "number", gaps=False)
        >>> age.read([31, 40.5], "rows[{}]".format).tolist()
        [31.0, 40.5]
        >>> age.read([31, "forty"], "rows[{}]".format)
        Traceback (most recent call last):
        opboost.scoring.refusals.RequestRefused: Column 'age' takes numbers, and rows[1] holds text.
        """
        found = (
            self._categories(values, place)
            if self.known is not None
            else self._floats(values, place)
        )
        if not self.gaps:
            gone = found.codes < 0 if isinstance(found, Encoded) else np.isnan(found)
            if gone.any():
                raise self._refused(int(np.argmax(gone)), place, "takes no missing values", "null")
        return found

    def _floats(self, values: Sequence[Any], place: Place) -> FloatArray:
        kinds = set(map(type, values))
        if self.kind == "date" or (self.kind == "number or date" and str in kinds):
            return self._days(values, kinds, place)
        if not kinds <= _NUMBERS:
            raise self._wrong_kind(values, _NUMBERS, place)
        try:
            found = np.array(values, dtype=np.float64)
        except OverflowError:
            found = np.array([_float(v) for v in values])
        if np.isinf(found).any():
            row = int(np.argmax(np.isinf(found)))
            raise self._refused(row, place, "takes numbers that 64 bits can hold", "a larger one")
        return found

    def _days(self, values: Sequence[Any], kinds: set[type], place: Place) -> FloatArray:
        texts: frozenset[type] = frozenset({str, type(None)})
        if not kinds <= texts:
            raise self._wrong_kind(values, texts, place)
        try:
            return as_days(pa.table({self.name: pa.array(values, pa.string())}), self.name)
        except ColumnError as error:
            row = error.row or 0
            raise self._refused(row, place, f"takes {_TAKES[self.kind]}", "other text") from None

    def _categories(self, values: Sequence[Any], place: Place) -> Encoded:
        if not set(map(type, values)) <= _SCALARS:
            raise self._wrong_kind(values, _SCALARS, place)
        assert self.known is not None
        index: dict[Any, int] = {None: -1}
        codes = [index.setdefault(v, len(index) - 1) for v in values]
        del index[None]
        distinct = [self.known.get(v, _UNKNOWN) for v in index]
        strange = [v for v, c in zip(index, distinct, strict=True) if c is _UNKNOWN]
        if strange:
            self._check_strange(strange, values, place)
            distinct = [None if c is _UNKNOWN else c for c in distinct]
        found = np.array(codes, dtype=np.int64)
        if strange and self.unknown == "missing":
            gone = np.array([c is None for c in distinct])
            found = np.where(gone[found] & (found >= 0), -1, found)
        return Encoded(found, distinct)

    def _check_strange(self, strange: list[Any], values: Sequence[Any], place: Place) -> None:
        """Refuse a category that the declaration does not list, or a value of another type."""
        row = values.index(strange[0])
        if self.unknown == "refuse":
            listed = ", ".join(repr(c) for c in list(self.known or ())[:8] if c is not None)
            raise self._refused(
                row, place, f"takes its declared categories ({listed})", "another one"
            )
        kinds = {isinstance(c, str) for c in self.known or ()}
        for value in strange:
            if self.unknown == "pass" and {isinstance(value, str)} != kinds and kinds:
                takes = "text" if True in kinds else "numbers"
                row = values.index(value)
                raise self._refused(row, place, f"takes {takes}", _json_kind(value))

    def _wrong_kind(
        self, values: Sequence[Any], right: frozenset[type], place: Place
    ) -> RequestRefused:
        row = next(i for i, v in enumerate(values) if type(v) not in right)
        return self._refused(row, place, f"takes {_TAKES[self.kind]}", _json_kind(values[row]))

    def _refused(self, row: int, place: Place, rule: str, came: str) -> RequestRefused:
        return RequestRefused(
            DOES_NOT_FIT, f"Column {self.name!r} {rule}, and {place(row)} holds {came}."
        )


_UNKNOWN = object()


def _json_kind(value: Any) -> str:
    return _JSON_KINDS.get(type(value), "a number")


def _float(value: Any) -> float:
    try:
        return float("nan") if value is None else float(value)
    except OverflowError:
        return float("inf")


def _in_json(categories: Sequence[Any]) -> dict[Any, Any]:
    """Return categories by their JSON values: dates as text, and null left out."""
    return {c.isoformat() if isinstance(c, date) else c: c for c in categories if c is not None}
