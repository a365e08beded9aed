"""Columns of a party that knows only some of the people, and sends nothing for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.columns.codebook import Codebook, CodedColumn, encode
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.mechanisms import Mechanism
from opboost.training.released_columns import ReleasedColumn


def spread(column: ReleasedColumn, places: IntArray, rows: int) -> ReleasedColumn:
    """Return a column of ``rows`` rows: these values at ``places``, and absent elsewhere.

    >>> import opboost as op
    >>> age = op.PrivateColumn(
    ...     "age", op.NumericMapping(op.Domain(1, 3), (0, 9)), op.ClampMap(op.Domain(1, 3), 1.0)
    ... )
    >>> sent = ReleasedColumn(age, (CodedColumn(np.array([0, 1]), Codebook(np.array([1, 3]))),))
    >>> spread(sent, np.array([1, 2]), 4).absent.tolist()
    [True, False, False, True]
    """
    absent = np.ones(rows, dtype=np.bool_)
    absent[places] = False
    parts = []
    for part in column.parts:
        codes = np.zeros(rows, dtype=part.codes.dtype)
        codes[places] = part.codes
        missing = absent.copy()
        if part.missing is not None:
            missing[places] = part.missing
        parts.append(CodedColumn(codes, part.book, missing))
    return replace(column, parts=tuple(parts), absent=absent)


def marked_absent(release: Sequence[ReleasedColumn]) -> list[ReleasedColumn]:
    """Return one party's columns; rows about which the party sent nothing are marked as absent."""
    gaps = np.logical_and.reduce([_gaps(part) for c in release for part in c.parts])
    return [replace(column, absent=gaps) for column in release]


def absent_column(private: PrivateColumn, rows: int, sent: float = 1.0) -> ReleasedColumn:
    """Return a column that is absent in every row."""
    mechanism = private.mechanism
    value = mechanism.outputs.L if isinstance(mechanism, Mechanism) else 0
    gone = np.ones(rows, dtype=np.bool_)
    part = CodedColumn(np.zeros(rows, dtype=np.uint8), Codebook(np.array([value])), gone)
    return ReleasedColumn(private, (part,) * len(private.release_names()), sent, gone)


def clear_column(private: PrivateColumn, prepared: Prepared) -> ReleasedColumn:
    """Return a column as it would be released without noise."""
    if private.mapping is None:
        book, count = Codebook(np.array([0, 1])), len(private.release_names())
        bits = [(prepared.cells == a).astype(np.uint8) for a in range(count)]
        return ReleasedColumn(private, tuple(CodedColumn(b, book) for b in bits))
    codes, book = encode(prepared.cells)
    gaps = prepared.missing if private.flagged() is not None else None
    return ReleasedColumn(private, (CodedColumn(codes, book, gaps),))


def nobody_sent(release: Sequence[ReleasedColumn]) -> BoolArray:
    """Return the rows in which every column is absent."""
    none = np.zeros(len(release[0]), dtype=np.bool_)
    return np.asarray(
        np.logical_and.reduce([none if c.absent is None else c.absent for c in release])
    )


def _gaps(part: CodedColumn) -> BoolArray:
    return np.zeros(len(part.codes), np.bool_) if part.missing is None else part.missing
