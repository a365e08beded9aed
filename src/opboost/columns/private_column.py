"""One private column: how raw values get onto the grid, through which mechanism, and what of gaps.

This is the step that all users share: the transformer, the command line and the feature party hand
a column in and get released columns out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.columns.dataframes import Encoded, OutColumn, as_numbers, categories, column
from opboost.errors import ColumnError, DataError, ParameterError
from opboost.grid import NumericMapping, OrdinalMapping
from opboost.grid.ordinal_mapping import code_positions
from opboost.mechanisms import Mechanism, RandomizedResponse, UnaryEncoding, WithMissing
from opboost.promises import Guarantee, checked_epsilon
from opboost.randomness.streams import KeyedRng, Rng, SeededRng, row_keys

MAX_FLOAT32_INTEGER = 2**24
"""Boosters compare 32-bit floats, which tell integers up to this apart."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Policy for gaps: whether a value is missing goes through randomised response.

    ``constant`` is a public value in raw units (or a category); a missing row that is reported
    present draws as if it held the constant.
    """

    eps_missing: float
    constant: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_missing", checked_epsilon("eps_missing", self.eps_missing))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A column on the grid (or as positions of categories), before any noise; it never leaves."""

    cells: IntArray
    missing: BoolArray
    outside: int
    raw: FloatArray | IntArray

    def where(self, rows: BoolArray) -> Prepared:
        """Some of the rows."""
        return replace(self, cells=self.cells[rows], missing=self.missing[rows], raw=self.raw[rows])


@dataclass(frozen=True, slots=True)
class PrivateColumn:
    """What is declared about one private column.

    ``missing`` is ``"raise"``, a public constant that stands in for gaps, or a :class:`Flag`.
    """

    name: Hashable
    mapping: NumericMapping | OrdinalMapping | None
    mechanism: Mechanism | UnaryEncoding
    outside: Literal["clamp", "raise"] = "clamp"
    missing: Any = "raise"

    def __post_init__(self) -> None:
        if self.outside not in ("clamp", "raise"):
            raise ColumnError(
                self.name, f"has outside={self.outside!r}", hint="Write 'clamp' or 'raise'."
            )
        if isinstance(self.missing, Flag) and isinstance(self.mechanism, UnaryEncoding):
            raise ColumnError(
                self.name,
                "is nominal, where a gap is a category of its own",
                hint="Declare a category for it instead of a flag: None, in TOML nan.",
            )
        self._constant()  # refuse a constant that has no cell now, not with the first gap

    def release_names(self) -> list[Hashable]:
        """The columns that come out: one, or one a category for unary encoding."""
        if isinstance(self.mechanism, UnaryEncoding):
            return [f"{self.name}={category}" for category in self.mechanism.categories]
        return [self.name]

    @property
    def has_order(self) -> bool:
        """False for unary bits and for nominal columns under randomised response."""
        if self.mapping is None:
            return False
        numeric = isinstance(self.mapping, NumericMapping)
        return numeric or not isinstance(self.mechanism, RandomizedResponse)

    def feature_names(self) -> list[str]:
        """The features that a booster sees: one, or one a category where there is no order."""
        if self.has_order or isinstance(self.mapping, NumericMapping) or self.mapping is None:
            return [str(name) for name in self.release_names()]
        return [f"{self.name}={c}" for c in self.mapping.order.categories]

    def guarantee(self) -> Guarantee:
        """The promise about this column."""
        flagged = self.flagged()
        return (flagged or self.mechanism).guarantee()

    def scaled(self, share: float) -> PrivateColumn:
        """The same column at a share of its level."""
        missing = self.missing
        if isinstance(missing, Flag):
            missing = replace(missing, eps_missing=missing.eps_missing * share)
        return replace(self, mechanism=self.mechanism.scaled(share), missing=missing)

    def prepare(self, table: Any, first_row: int = 0) -> Prepared:
        """This column of a table, raw values to cells; bad ones are refused with its name.

        ``first_row`` is the number of the table's first row in a larger whole, for messages.
        """
        try:
            if isinstance(self.mapping, NumericMapping):
                return self._prepare_numbers(column(table, self.name), self.mapping, first_row)
            return self._prepare_categories(categories(table, self.name), first_row)
        except ColumnError:
            raise
        except (DataError, ParameterError) as error:
            raise ColumnError.of(self.name, error) from None

    def states(self, prepared: Prepared) -> IntArray:
        """A number for what a row's draw depends on: its cell, or that a flagged one is missing."""
        states = prepared.cells.astype(np.int64) << 1
        if self.flagged() is not None:
            states = np.where(prepared.missing, 1, states)
        return states

    def release(self, prepared: Prepared, rng: Rng | None = None) -> list[OutColumn]:
        """Desensitise once; a seeded generator gives a row noise by its value, not by its place."""
        if isinstance(rng, SeededRng):
            rng = KeyedRng(rng.child(self.name), row_keys(prepared.raw))
        if isinstance(self.mechanism, UnaryEncoding):
            bits = self.mechanism.sample_positions(prepared.cells, rng)
            names = self.release_names()
            return [OutColumn(name, bits[:, j]) for j, name in enumerate(names)]
        flagged = self.flagged()
        if flagged is None:
            return [OutColumn(self.name, self.mechanism.sample(prepared.cells, rng))]
        drawn, reported = flagged.sample(prepared.cells, prepared.missing, rng)
        return [OutColumn(self.name, drawn, reported)]

    def _prepare_numbers(
        self, values: np.ndarray[Any, Any], mapping: NumericMapping, first_row: int
    ) -> Prepared:
        raw = as_numbers(self.name, values, first_row).astype(np.float64, copy=False)
        cells, gaps, infinite, outside = mapping.scan(raw)
        if infinite:
            row = int(np.argmax(np.isinf(raw)))
            raise ColumnError(
                self.name,
                "holds infinite values",
                detail=f"{_share(infinite, raw.size, first_row)}, first: {raw[row]} in row "
                f"{row + first_row}",
                hint="Replace them by a number or mark them as missing.",
                row=row + first_row,
            )
        if self.outside == "raise" and outside:
            row = int(np.argmax(mapping.outside(raw)))
            raise ColumnError(
                self.name,
                "holds values outside its bounds",
                detail=f"{_share(outside, raw.size, first_row)} outside {mapping.bounds}, "
                f"first: {raw[row]} in row {row + first_row}",
                hint="Widen the declared bounds, or use outside='clamp'.",
                row=row + first_row,
            )
        if not gaps:
            return Prepared(cells, np.zeros(raw.size, dtype=np.bool_), outside, raw)
        missing = np.isnan(raw)
        filled = np.where(missing, self._filling(missing, first_row), raw)
        return Prepared(mapping.to_grid(filled), missing, outside, filled)

    def _prepare_categories(self, rows: Encoded, first_row: int) -> Prepared:
        declared = self._categories()
        missing = rows.codes < 0
        values, codes = rows.values, rows.codes
        if missing.any():
            # A gap is a category of its own where None is declared; else it is filled in.
            filling = None if None in declared else self._filling(missing, first_row)
            values, codes = [*values, filling], np.where(missing, len(values), codes)
            if filling is None:
                missing = np.zeros_like(missing)
        positions = code_positions(declared, codes, values, first_row)
        if self.mapping is None:
            return Prepared(positions, missing, 0, positions)
        domain = self.mapping.domain
        return Prepared((positions + domain.L).astype(domain.dtype()), missing, 0, positions)

    def _categories(self) -> tuple[Hashable, ...]:
        if isinstance(self.mapping, OrdinalMapping):
            return self.mapping.order.categories
        assert isinstance(self.mechanism, UnaryEncoding)
        return self.mechanism.categories

    def _filling(self, missing: BoolArray, first_row: int) -> Any:
        """What stands in for a gap; refused where the policy is to raise."""
        if isinstance(self.missing, str) and self.missing == "raise":
            raise ColumnError(
                self.name,
                "has missing values (NaN or null)",
                detail=f"{_share(int(missing.sum()), missing.size, first_row)}, "
                f"first: row {first_row + int(np.argmax(missing))}",
                hint="Fill them, or choose a public constant (missing=...) or a flag: "
                'missing=op.Flag(eps_missing=..., constant=...), in TOML missing = "flag" with '
                "eps_missing and missing_constant.",
                row=first_row + int(np.argmax(missing)),
            )
        return self.missing.constant if isinstance(self.missing, Flag) else self.missing

    def _constant(self) -> int | None:
        """The cell of the public constant, where the policy has one."""
        if isinstance(self.missing, str) and self.missing == "raise":
            return None
        constant = self.missing.constant if isinstance(self.missing, Flag) else self.missing
        if isinstance(self.mapping, NumericMapping):
            if not _is_finite(constant) or bool(self.mapping.outside(constant)):
                raise ColumnError(
                    self.name,
                    "needs a public constant within its bounds for missing values",
                    detail=f"got {constant!r}, bounds are {self.mapping.bounds}",
                    hint="Write 'raise', a number, or op.Flag(eps_missing=1.0, constant=...).",
                )
            return int(self.mapping.to_grid([constant])[0])
        if constant not in self._categories():
            raise ColumnError(
                self.name,
                "needs one of its categories for missing values",
                detail=f"got {constant!r}",
                hint=f"Declared are {', '.join(map(repr, self._categories()))}.",
            )
        return self._categories().index(constant) + (
            self.mapping.domain.L if self.mapping is not None else 0
        )

    def flagged(self) -> WithMissing | None:
        """The mechanism with its flag for missing values, where the policy is a flag."""
        if not isinstance(self.missing, Flag) or isinstance(self.mechanism, UnaryEncoding):
            return None
        constant = self._constant()
        assert constant is not None
        return WithMissing(self.mechanism, self.missing.eps_missing, constant)


def _share(marked: int, size: int, first_row: int) -> str:
    """How many rows; of a piece of a larger whole, which piece."""
    whole = f"{marked} of {size} rows"
    return f"{whole} from row {first_row} on" if first_row else whole


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def check_release_names(columns: Iterable[PrivateColumn], others: Iterable[Hashable]) -> None:
    """Refuse two released columns of one name: the one would replace the other."""
    seen = set(map(str, others))
    for private in columns:
        for name in map(str, private.release_names()):
            if name in seen:
                raise ColumnError(
                    private.name,
                    f"would be released as {name!r}, and so would another column",
                    hint="Rename the other column or the category.",
                )
            seen.add(name)
