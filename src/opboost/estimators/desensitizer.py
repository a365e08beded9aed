"""A scikit-learn transformer that desensitises the private columns of a table."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from opboost._typing import BoolArray
from opboost.budgets.budget import (
    CHUNK_ROWS,
    Budget,
    RecordBudget,
    below_share,
    cell_words,
    check_no_pilot,
    columns_sent,
)
from opboost.budgets.column_chances import checked_weights
from opboost.budgets.record_plan import RecordPlan, stated_budget
from opboost.budgets.release_accounting import Account, RowSums
from opboost.budgets.release_counts import Travels
from opboost.budgets.release_terms import Counted, Terms
from opboost.columns.dataframes import (
    OutColumn,
    has_index,
    in_pandas,
    is_frame,
    only_sent,
    rebuild,
    stack,
)
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.errors import DroppedIndexWarning, InferredBoundsWarning
from opboost.estimators.declarations import Declarations
from opboost.estimators.output_columns import input_names, output_columns, output_names
from opboost.estimators.remembered_table import Release, ReleaseMemory
from opboost.estimators.settled_columns import SettledColumns
from opboost.promises import Joint, NoGuarantee
from opboost.randomness.streams import Rng, SeededRng, default_rng

Weigh = Callable[[Release, BoolArray], Mapping[Any, float]]
"""A function that takes the release of a pilot (a random share of the rows) and a mask of the
pilot's rows, and returns each column's weight."""

CheckColumns = Callable[[Any, tuple[PrivateColumn, ...]], None]
"""A function that may refuse a table and its private columns before any noise is drawn."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What ``fit`` settled on; a later change of a parameter takes effect at the next ``fit``."""

    names: tuple[Hashable, ...]
    passthrough: bool
    budget: Budget | None
    rng: Rng


class Desensitizer(Travels, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map private columns to a grid and desensitise them there.

    Args:
        mechanism: One mechanism for all private columns, or a dict by column.  A record budget
            chooses the mechanisms itself.  A tuple of ``PrivateColumn`` declares the columns
            completely; leave the other parameters about columns out.
        bounds: The public range of each numeric column, such as ``{"age": (17, 90)}``, or one pair
            for all columns.  ``"infer"`` takes the bounds from the data; it warns, and the
            guarantee says so.
        categories: The categories of each ordinal column, such as ``{"size": op.Ordered(["S", "M",
            "L"])}``.  A nominal column needs a mechanism that lists its categories:
            ``op.UnaryEncoding`` or randomised response.
        scale: ``"linear"``, ``"log"`` or public breakpoints; or a dict by column.
        mapping: How values map to grid cells; or a dict by column.  ``"cells"`` divides the bounds
            into cells of equal width; ``"paper"`` rounds up, as the paper's function B does.
        outside: What to do with values beyond the bounds, ``"clamp"`` or ``"raise"``; or a dict by
            column.
        missing: What to do with missing values; or a dict by column.  ``"raise"`` refuses them.  A
            public constant, such as ``40``, replaces them.  With ``"symbol"``, "missing" is one
            more value that a Window-map can report.  With ``op.Flag``, a noisy bit says whether a
            value is missing.
        budget: ``op.Budget.record(4)`` limits what all columns together reveal about one person.
            The other budgets split the mechanism's level (its ε) over the columns.
        remainder: What to do with columns about which nothing is declared.  ``"raise"`` refuses
            them, and ``"drop"`` leaves them out.  ``"passthrough"`` releases them without noise.
            ``"own"`` is for a party that trains on these columns itself.  They appear in the
            output but count as never sent to anyone, so the guarantee has no caveat about them.
        noise_rng: ``None`` draws cryptographic noise.  ``op.SeededRng(7)`` draws the same noise in
            each run, which protects nobody: ``guarantee_`` then reads ``none: seeded``.

    Attributes:
        guarantee_: What is promised about one person's record (a ``Joint``).  If rows with equal
            content were released more than once, by this transformer or another, it covers all
            these releases together.  Its caveats list releases that it could not count.
        columns_: The private columns as declared.
        plan_: The plan of a record budget, or None.
        column_weights_: The column weights that a pilot found, or None.
        outside_: How many values of the last table were outside the bounds, by column.  Do not
            publish these numbers: they describe the data, and no guarantee covers them.  They are
            never pickled.
        releases_: How many releases have been made since ``fit``.

    **The index is dropped.**  A pandas index may hold an ID or a raw value, and nothing is declared
    about it.  Released rows keep their order and are numbered from 0.  If the table has another
    index, as after splitting or shuffling, ``transform`` warns with ``op.DroppedIndexWarning``.

    **Release once.**  If you pass the same table object again and its content has not changed, you
    get the same release again, at no cost.  With fresh noise on the same rows, anyone could average
    the noise away.  Anything else is a new release: another fit, a copy, a subset or a reordered
    table.  If two releases contain equal rows, their losses add up, and ``guarantee_`` shows the
    sum.  Rows are equal if their private columns are; rows that you have scaled or rounded are not
    recognised.  Releases are counted in this process, and in worker processes to which it sends
    estimators.

    **One row per person.**  Every row counts as one person.  If several rows of a table are about
    the same person, their losses add up, but ``guarantee_`` shows the loss of one row.

    >>> import opboost as op, pandas as pd
    >>> people = pd.DataFrame({"age": [23, 71, 40]})
    >>> d = op.Desensitizer(bounds={"age": (17, 90)}, budget=op.Budget.record(4))
    >>> released = d.fit_transform(people)
    >>> print(d.guarantee_)
    age: 4-LDP
    sent for each row: 1 of the columns, chosen at random
    one person's record: at most 4
    """

    def __init__(
        self,
        mechanism: Any = None,
        *,
        bounds: Any = None,
        categories: Any = None,
        scale: Any = "linear",
        mapping: Any = "cells",
        outside: Any = "clamp",
        missing: Any = "raise",
        budget: Budget | RecordPlan | None = None,
        remainder: Literal["raise", "passthrough", "drop", "own"] = "raise",
        noise_rng: Rng | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.bounds = bounds
        self.categories = categories
        self.scale = scale
        self.mapping = mapping
        self.outside = outside
        self.missing = missing
        self.budget = budget
        self.remainder = remainder
        self.noise_rng = noise_rng

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the table against the declarations.

        No value of the table is learned, unless bounds are inferred.
        """
        check_no_pilot(stated_budget(self.budget), "which a Desensitizer does not see")
        self._fit(X, lambda column, prepared: None)
        return self

    def _fit(
        self,
        X: Any,
        look: Callable[[PrivateColumn, Prepared], None],
        check: CheckColumns = lambda table, columns: None,
    ) -> Any:
        """Fit: map each private column to the grid, pass it to ``look``, and do not keep it.

        ``check`` is called first, and may refuse the table and its private columns.
        """
        table = self._validated(X, reset=True)
        settled = SettledColumns.of(self._declared(), table, self.remainder, self.budget)
        for name in settled.inferred:
            warnings.warn(
                f"Bounds of column {name!r} are taken from the data: its smallest and largest "
                "value are revealed, and no guarantee covers that. Declare public bounds instead.",
                InferredBoundsWarning,
                stacklevel=3,
            )
        settled.check_release_names()
        check(table, settled.columns)
        outside = {}
        for c in settled.columns:
            prepared = c.prepare(table)
            outside[c.name] = prepared.outside
            look(c, prepared)
        # All checks have passed; nothing below can fail and leave the fit incomplete.
        self._plan = _Plan(
            settled.names,
            settled.keeps_others,
            settled.budget,
            default_rng(self.noise_rng),
        )
        self.columns_ = settled.columns
        self.plan_: RecordPlan | None = settled.plan
        self.column_weights_: dict[Hashable, float] | None = None
        self._account = Account(self._terms(settled.caveats()))
        self.outside_: dict[Hashable, int] = outside
        self._forget()
        return table

    def _declared(self) -> Declarations:
        return Declarations(
            self.mechanism,
            self.bounds,
            self.categories,
            self.scale,
            self.mapping,
            self.outside,
            self.missing,
        )

    def fit_release(
        self,
        X: Any,
        weigh: Weigh | None = None,
        check: CheckColumns = lambda table, columns: None,
    ) -> tuple[Any, Release]:
        """Fit and release in one pass over the columns; return the checked table and the release.

        The release uses the generator and budget that ``fit`` settles on.  If any column is
        refused, nothing is released.  If the budget has a pilot, ``weigh`` gives the column
        weights.  ``check`` may refuse the columns before any noise is drawn.  If the same table is
        passed to :meth:`transform` later, this release is returned again.
        """
        if weigh is None:
            check_no_pilot(stated_budget(self.budget), "which a Desensitizer does not see")
        rng = default_rng(self.noise_rng)
        drawn: Release = {}
        memory, sums = ReleaseMemory(), RowSums()
        content = memory.content()

        def draw(column: PrivateColumn, prepared: Prepared) -> None:
            sums.add(column, prepared)
            content.add(column, prepared)
            drawn[column.name] = column.release(prepared, rng)

        table = self._fit(X, draw, check)
        budget = self._plan.budget
        if weigh is not None and isinstance(budget, RecordBudget) and budget.awaits_weights:
            sent = self._sent_after_pilot(drawn, budget, len(sums.total), weigh)
        else:
            sent = self._sent_columns(len(sums.total))
        for place, c in enumerate(self.columns_):
            drawn[c.name] = only_sent(drawn[c.name], sent, place)
        self._account.add(sums)
        self._memory = memory
        memory.keep(X, content, drawn)
        return table, drawn

    @classmethod
    def of_columns(
        cls,
        columns: tuple[PrivateColumn, ...],
        names: tuple[Hashable, ...],
        *,
        named: bool,
        rng: Rng,
        released: Counted,
        note: str = "",
    ) -> Desensitizer:
        """Return a fitted transformer for columns that are already declared.

        :func:`opboost.estimators.saving.load` uses it.  ``released`` counts the releases that were
        made earlier or elsewhere; ``note`` says what this count leaves out.
        """
        made = cls(columns, remainder="own")
        made._plan = _Plan(names, True, None, rng)
        made.columns_ = columns
        made.plan_ = None
        made.column_weights_ = None
        made.outside_ = {}
        made.n_features_in_ = len(names)
        if named:
            made.feature_names_in_ = np.array(names, dtype=object)
        made._account = Account(made._terms(()), released, note)
        made._forget()
        return made

    def transform(self, X: Any) -> Any:
        """Return the released table: grid values (or bits) in place of the private columns."""
        table, released = self.release(X)
        out = output_columns(self._plan.names, released, passthrough=self._plan.passthrough)
        # scikit-learn's set_output wraps arrays; without it, the output has the input's type.
        kind = _get_output_config("transform", self)["dense"]
        if kind not in ("default", "pandas"):
            return stack(table, out)
        if has_index(table):
            warnings.warn(
                "The index of the table is dropped: it may hold an ID or a raw value. The released "
                "rows keep their order and are numbered from 0. If something later joins rows by "
                "their index, as ColumnTransformer does under set_output(transform='pandas'), call "
                "X.reset_index(drop=True) first.",
                DroppedIndexWarning,
                stacklevel=3,
            )
        if kind == "pandas":  # scikit-learn would give an array the index of the raw table
            return in_pandas(stack(table, out))
        return rebuild(table, out)

    def release(self, X: Any) -> tuple[Any, Release]:
        """Return the checked table, and a dict of the released columns of each private column."""
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        return table, self._released(X, table)

    def validated(self, X: Any) -> Any:
        """Return the table if it has the columns of ``fit``, or raise an error."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def prepare(self, X: Any) -> tuple[Any, dict[Hashable, Prepared]]:
        """Return the table and its private columns on the grid, **without noise**.

        They must not leave the organisation.
        """
        table = self.validated(X)
        return table, {c.name: c.prepare(table) for c in self.columns_}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the names of the released columns."""
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        given = input_names(input_features, known, self.n_features_in_)
        plan = self._plan
        names = output_names(plan.names, given, self.columns_, passthrough=plan.passthrough)
        return np.array(names, dtype=object)

    @property
    def sent(self) -> float:
        """The share of rows for which each private column is sent (``Budget.sampled``)."""
        budget = self._plan.budget
        if budget is None or budget.columns_per_row is None:
            return 1.0
        return budget.columns_per_row / len(self.columns_)

    @property
    def releases_(self) -> int:
        """How many releases have been made since ``fit``."""
        check_is_fitted(self)
        return self._memory.made

    @property
    def guarantee_(self) -> Joint | NoGuarantee:
        """What is promised about one person's record, over all counted releases of these rows."""
        check_is_fitted(self)
        return self._account.guarantee()

    @property
    def account(self) -> Account:
        """What has been released, and how many times."""
        check_is_fitted(self)
        return self._account

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "columns_")

    def _validated(self, X: Any, *, reset: bool) -> Any:
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if len(X) == 0:
                raise ValueError(
                    "Found array with 0 sample(s) while a minimum of 1 is required by Desensitizer."
                )
            return X
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _released(self, X: Any, table: Any) -> dict[Hashable, list[OutColumn]]:
        """Return the release of this table: the remembered one, if there is one, or a new one."""
        prepared = [(c, c.prepare(table)) for c in self.columns_]
        with self._lock:
            self.outside_.update({c.name: p.outside for c, p in prepared})
            content, sums = self._memory.content(), RowSums()
            for c, column in prepared:
                content.add(c, column)
            known = self._memory.find(X, content)
            if known is None:
                for c, column in prepared:
                    sums.add(c, column)
                known = self._draw(prepared)
                self._account.add(sums)
                self._memory.keep(X, content, known)
            return known

    def _draw(self, prepared: list[tuple[PrivateColumn, Prepared]]) -> Release:
        sent = self._sent_columns(len(prepared[0][1].cells))
        released = {}
        for place, (private, cells) in enumerate(prepared):
            columns = private.release(cells, self._plan.rng)
            released[private.name] = only_sent(columns, sent, place)
        return released

    def _sent_after_pilot(
        self, drawn: Release, budget: RecordBudget, rows: int, weigh: Weigh
    ) -> BoolArray | None:
        """Choose the columns of each row: evenly in the pilot's rows, by ``weigh`` in the others.

        ``drawn`` holds noisy values for all rows and columns.
        """
        rng, names = self._plan.rng, [c.name for c in self.columns_]
        of_people = of_cells = rng
        if isinstance(rng, SeededRng):
            of_people, of_cells = rng.child("pilot"), rng.child("columns of each row")
        first = below_share(cell_words(rows, 1, of_people)[:, 0], budget.pilot)
        words = cell_words(rows, len(names), of_cells).copy()
        even = columns_sent(budget, lambda: words, names)
        shown = {
            name: [c.where(first) for c in only_sent(drawn[name], even, place)]
            for place, name in enumerate(names)
        }
        self.column_weights_ = checked_weights(weigh(shown, first), names, "The pilot's answer")
        weighted = replace(budget, weights=self.column_weights_)
        sent = columns_sent(weighted, lambda: words, names, lambda: first)
        # Later releases use these weights and need no pilot of their own.
        self._plan = replace(self._plan, budget=replace(weighted, pilot=0.0))
        return sent

    def _sent_columns(self, rows: int) -> BoolArray | None:
        rng = self._plan.rng
        if isinstance(rng, SeededRng):
            rng = rng.child("columns of each row")
        names, budget = [c.name for c in self.columns_], self._plan.budget

        def chosen(count: int) -> BoolArray | None:
            return columns_sent(budget, lambda: cell_words(count, len(names), rng), names)

        # A seeded stream restarts at each call, so every block of rows would get the same choices.
        if not rng.secure:
            return chosen(rows)
        sizes = [min(CHUNK_ROWS, rows - first) for first in range(0, rows, CHUNK_ROWS)]
        blocks = [block for size in sizes if (block := chosen(size)) is not None]
        return np.concatenate(blocks) if blocks else None

    def _terms(self, caveats: tuple[str, ...]) -> Terms:
        budget = self._plan.budget
        return Terms(
            self.columns_,
            None if budget is None else budget.columns_per_row,
            caveats,
            "" if self._plan.rng.secure else "seeded",
        )

    def _forget(self) -> None:
        self._memory = ReleaseMemory()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # Leave out what describes the data: it could be used to test guesses about people.
        local = ("_memory", "_lock", "outside_")
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k not in local}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "columns_" in state:
            self.outside_ = {}
            self._forget()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = getattr(self.noise_rng, "secure", True)
        tags.input_tags.string = True
        tags.input_tags.allow_nan = not (isinstance(self.missing, str) and self.missing == "raise")
        return tags
