"""One private column: its mapping to the grid, its mechanism, and its policy for missing values.

The transformer, the command line and the feature party all release columns through this module:
they pass a column in and get released columns back.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.columns.dataframes import Encoded, OutColumn, as_numbers, categories, column
from opboost.columns.date_columns import as_days
from opboost.errors import ColumnError, DataError, ParameterError
from opboost.grid import NumericMapping, OrdinalMapping
from opboost.grid.dates import day_number, is_date
from opboost.grid.ordinal_mapping import code_positions
from opboost.mechanisms import (
    GapMechanism,
    Mechanism,
    NominalMechanism,
    RandomizedResponse,
    WindowMap,
    WindowWithMissing,
    WithMissing,
)
from opboost.promises import Guarantee, checked_epsilon
from opboost.randomness.streams import KeyedRng, Rng, SeededRng, row_keys

MAX_FLOAT32_INTEGER = 2**24
"""Boosters compare 32-bit floats, which represent all integers up to this one."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A policy for missing values: randomised response reports whether a value is missing.

    ``constant`` is a public value in raw units (or a category).  A missing row that is reported
    present gets a draw as if it held the constant.
    """

    eps_missing: float
    constant: Any

    def __post_init__(self) -> None:
        if is_date(self.constant):
            object.__setattr__(self, "constant", day_number(self.constant))
        object.__setattr__(self, "eps_missing", checked_epsilon("eps_missing", self.eps_missing))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A column on the grid (or as positions of categories), without noise; it is never sent."""

    cells: IntArray
    missing: BoolArray
    outside: int
    raw: FloatArray | IntArray

    def where(self, rows: BoolArray) -> Prepared:
        """Return some of the rows."""
        return replace(self, cells=self.cells[rows], missing=self.missing[rows], raw=self.raw[rows])


@dataclass(frozen=True, slots=True)
class PrivateColumn:
    """The declaration of one private column.

    ``missing`` is ``"raise"``, a public constant that replaces missing values, a :class:`Flag`, or
    ``"symbol"``: a missing value is one more symbol of a Window-map, at no extra cost.
    """

    name: Hashable
    mapping: NumericMapping | OrdinalMapping | None
    mechanism: Mechanism | NominalMechanism
    outside: Literal["clamp", "raise"] = "clamp"
    missing: Any = "raise"

    def __post_init__(self) -> None:
        if self.outside not in ("clamp", "raise"):
            raise ColumnError(
                self.name, f"has outside={self.outside!r}", hint="Write 'clamp' or 'raise'."
            )
        if is_date(self.missing):
            object.__setattr__(self, "missing", day_number(self.missing))
        reports_gaps = isinstance(self.missing, Flag) or self._is_symbol
        if reports_gaps and isinstance(self.mechanism, NominalMechanism):
            raise ColumnError(
                self.name,
                "is nominal, where missing values are a category of their own",
                hint="Declare a category for it instead of a flag or symbol: None, in TOML nan.",
            )
        if self._is_symbol and not isinstance(self.mechanism, WindowMap):
            raise ColumnError(
                self.name,
                "has missing='symbol', which only a Window-map supports",
                detail=f"its mechanism is {type(self.mechanism).__name__}",
                hint='Use op.WindowMap(...), in TOML mechanism = { kind = "window-map", '
                "total = 4.0 }, or missing=op.Flag(eps_missing=..., constant=...).",
            )
        self._constant()  # refuses a constant without a cell early, not at the first gap

    @property
    def _is_symbol(self) -> bool:
        return isinstance(self.missing, str) and self.missing == "symbol"

    def release_names(self) -> list[Hashable]:
        """Return the names of the released columns: one, or one per category for unary encoding."""
        if isinstance(self.mechanism, NominalMechanism):
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
        """Return the names of the booster's features: one, or one per category without an order."""
        if self.has_order or isinstance(self.mapping, NumericMapping) or self.mapping is None:
            return [str(name) for name in self.release_names()]
        return [f"{self.name}={c}" for c in self.mapping.order.categories]

    def guarantee(self) -> Guarantee:
        """Return the promise about this column."""
        flagged = self.flagged()
        return (flagged or self.mechanism).guarantee()

    def scaled(self, share: float) -> PrivateColumn:
        """Return the same column with its levels multiplied by ``share``."""
        missing = self.missing
        if isinstance(missing, Flag):
            missing = replace(missing, eps_missing=missing.eps_missing * share)
        return replace(self, mechanism=self.mechanism.scaled(share), missing=missing)

    def prepare(self, table: Any, first_row: int = 0) -> Prepared:
        """Return this column of a table as cells; an error about a bad value names the column.

        ``first_row`` is the number of the table's first row in a larger table, for messages.
        """
        if not isinstance(self.mapping, NumericMapping):
            values: Encoded | FloatArray = categories(table, self.name)
        elif self.mapping.unit is not None:
            values = as_days(table, self.name, first_row)
        else:
            numbers = as_numbers(self.name, column(table, self.name), first_row)
            values = numbers.astype(np.float64, copy=False)
        return self.prepare_values(values, first_row)

    def prepare_values(self, values: Encoded | FloatArray, first_row: int = 0) -> Prepared:
        """Return the cells of values that are already read: floats (NaN if missing) or categories.

        >>> import opboost as op
        >>> grid = op.Domain(1, 10)
        >>> age = PrivateColumn("age", NumericMapping(grid, (0, 100)), op.ClampMap(grid, 1.0))
        >>> age.prepare_values(np.array([5.0, 95.0])).cells.tolist()
        [1, 10]
        """
        try:
            if isinstance(values, Encoded):
                return self._prepare_categories(values, first_row)
            assert isinstance(self.mapping, NumericMapping)
            return self._prepare_numbers(values, self.mapping, first_row)
        except ColumnError:
            raise
        except (DataError, ParameterError) as error:
            raise ColumnError.of(self.name, error) from None

    def states(self, prepared: Prepared) -> IntArray:
        """Return, per row, a number that identifies the input of its draw: a cell or "missing"."""
        states = prepared.cells.astype(np.int64) << 1
        if self.flagged() is not None:
            states = np.where(prepared.missing, 1, states)
        return states

    def release(self, prepared: Prepared, rng: Rng | None = None) -> list[OutColumn]:
        """Draw noise once; seeded noise depends on a row's value, not on its position."""
        if isinstance(rng, SeededRng):
            rng = KeyedRng(rng.child(self.name), row_keys(prepared.raw))
        if isinstance(self.mechanism, NominalMechanism):
            bits = self.mechanism.sample_positions(prepared.cells, rng)
            names = self.release_names()
            return [OutColumn(name, bits[:, j]) for j, name in enumerate(names)]
        flagged = self.flagged()
        if flagged is None:
            return [OutColumn(self.name, self.mechanism.sample(prepared.cells, rng))]
        drawn, reported = flagged.sample(prepared.cells, prepared.missing, rng)
        return [OutColumn(self.name, drawn, reported)]

    def _prepare_numbers(
        self, raw: FloatArray, mapping: NumericMapping, first_row: int
    ) -> Prepared:
        cells, gaps, infinite, outside = mapping.scan(raw)
        if infinite:
            row = int(np.argmax(np.isinf(raw)))
            raise ColumnError(
                self.name,
                "holds infinite values",
                detail=f"{_share(infinite, raw.size, first_row)}, first: {raw[row]} in row "
                f"{row + first_row}",
                hint="Replace them with a number or mark them as missing.",
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
        declared = self.categories
        missing = rows.codes < 0
        values, codes = rows.values, rows.codes
        if missing.any():
            # If None is declared, missing values are a category; otherwise they are filled in.
            filling = None if None in declared else self._filling(missing, first_row)
            values, codes = [*values, filling], np.where(missing, len(values), codes)
            if filling is None:
                missing = np.zeros_like(missing)
        positions = code_positions(declared, codes, values, first_row)
        if self.mapping is None:
            return Prepared(positions, missing, 0, positions)
        domain = self.mapping.domain
        return Prepared((positions + domain.L).astype(domain.dtype()), missing, 0, positions)

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The declared categories, with None for missing values; a column of numbers has none."""
        if isinstance(self.mapping, OrdinalMapping):
            return self.mapping.order.categories
        assert isinstance(self.mechanism, NominalMechanism)
        return self.mechanism.categories

    @property
    def takes_gaps(self) -> bool:
        """Whether values may be missing: there is a policy or a category for them."""
        if not (isinstance(self.missing, str) and self.missing == "raise"):
            return True
        return not isinstance(self.mapping, NumericMapping) and None in self.categories

    def _filling(self, missing: BoolArray, first_row: int) -> Any:
        """Return what replaces a missing value; raise an error if the policy is ``"raise"``."""
        if isinstance(self.missing, str) and self.missing == "raise":
            raise ColumnError(
                self.name,
                "has missing values (NaN or null)",
                detail=f"{_share(int(missing.sum()), missing.size, first_row)}, "
                f"first: row {first_row + int(np.argmax(missing))}",
                hint=self._gap_advice(),
                row=first_row + int(np.argmax(missing)),
            )
        if self._is_symbol:  # no draw depends on it
            if isinstance(self.mapping, NumericMapping):
                return self.mapping.bounds[0]
            return self.categories[0]
        return self.missing.constant if isinstance(self.missing, Flag) else self.missing

    def _gap_advice(self) -> str:
        """Return what to declare about missing values, with the free option first."""
        symbol = 'Write missing = "symbol" in TOML, missing="symbol" in Python'
        if isinstance(self.mechanism, WindowMap):
            return (
                f"{symbol}: missing is then one more value, at no extra cost. Or fill them in, or "
                "choose a public constant (missing=...)."
            )
        if not self.has_order:
            return (
                f"{symbol}, under a record budget. Otherwise, declare a category for them (nan in "
                "TOML, None in Python), fill them in, or choose a declared category (missing=...)."
            )
        return (
            "Fill them in, or choose a public constant (missing=...) or a flag: "
            'missing=op.Flag(eps_missing=..., constant=...), in TOML missing = "flag" with '
            "eps_missing and missing_constant."
        )

    def _constant(self) -> int | None:
        """Return the cell of the public constant if the policy has one, else None."""
        if self._is_symbol or (isinstance(self.missing, str) and self.missing == "raise"):
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
        if constant not in self.categories:
            raise ColumnError(
                self.name,
                "needs one of its categories for missing values",
                detail=f"got {constant!r}",
                hint=f"Declared are {', '.join(map(repr, self.categories))}.",
            )
        return self.categories.index(constant) + (
            self.mapping.domain.L if self.mapping is not None else 0
        )

    def cell_of_gaps(self) -> int | None:
        """Return the cell that missing values count as; None if they are refused or reported."""
        return None if self.flagged() is not None else self._constant()

    def flagged(self) -> GapMechanism | None:
        """Return the mechanism that reports missing values; None without a flag or a symbol."""
        if self._is_symbol:
            assert isinstance(self.mechanism, WindowMap)
            return WindowWithMissing(self.mechanism)
        if not isinstance(self.missing, Flag) or isinstance(self.mechanism, NominalMechanism):
            return None
        constant = self._constant()
        assert constant is not None
        return WithMissing(self.mechanism, self.missing.eps_missing, constant)


def _share(marked: int, size: int, first_row: int) -> str:
    """Return how many rows are marked and, for a piece of a larger table, which piece."""
    whole = f"{marked} of {size} rows"
    return f"{whole} from row {first_row} on" if first_row else whole


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False


def check_release_names(columns: Iterable[PrivateColumn], others: Iterable[Hashable]) -> None:
    """Refuse two released columns with the same name: one would replace the other."""
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
