"""A certificate as a file that others can check with integer arithmetic.

The checker, check_certificate.py in docs/files, shares no code with this package.  For each
mechanism, the file holds the promise and the exact distribution that is sampled: the integer table
or the numbers of the closed form.  Levels are decimals, as the configuration states them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from opboost.columns.private_column import PrivateColumn
from opboost.distributions import (
    CellRuns,
    ClampedLaplace,
    IntegerTable,
    KeepOrRedraw,
    PiecewiseDensity,
    TruncatedGeometric,
    Window,
)
from opboost.errors import ColumnError
from opboost.grid import Domain, Partition
from opboost.mechanisms import (
    Mechanism,
    NominalMechanism,
    SubsetSelection,
    UnaryEncoding,
    WindowWithMissing,
    WithMissing,
    registry,
)
from opboost.mechanisms.mechanism import distribution_of
from opboost.promises import (
    DLDP,
    LDP,
    CappedDLDP,
    Flagged,
    Guarantee,
    Joint,
    LocalDLDP,
    PartitionDLDP,
)

FORMAT = "opboost certificate 1"


def exported_certificate(
    columns: Sequence[PrivateColumn], record: Joint, total: float | None = None
) -> dict[str, Any]:
    """Return the certificate of these columns as plain JSON data.

    ``record`` is the promise about the whole record; its parts other than columns, such as scores,
    are stated without a distribution.  ``total`` is the stated record total; without one, it is the
    sum of the largest totals of as many columns as are sent for a row.

    >>> import opboost as op
    >>> age = PrivateColumn("age", None, op.ClampMap(op.Domain(1, 10), 0.64))
    >>> file = exported_certificate([age], age.guarantee().on("age"))
    >>> file["record"]["total"], file["mechanisms"][0]["channel"]["kind"]
    ('5.76', 'table')
    """
    mechanisms: dict[Any, dict[str, Any]] = {}
    for column in columns:
        if type(column.mechanism) not in {entry.built_by for entry in registry.ENTRIES}:
            raise _no_form(column)
        key = column.mechanism, column.flagged()
        if key not in mechanisms:
            mechanisms[key] = {
                "columns": [],
                "promise": _promise(column),
                "channel": _channel(column),
                "gaps": _gaps(column),
            }
        mechanisms[key]["columns"].append(str(column.name))
    names = [str(c.name) for c in columns]
    stated = {str(n): p for n, p in record.parts.items() if str(n) not in names}
    sent = record.columns_per_row or sum(choice.count for choice in record.choices) or len(names)
    totals = [_most_revealed(column) for column in columns]
    largest = sorted((t for t in totals if t is not None), reverse=True)
    columns_total = sum(largest[:sent]) if total is None else _decimal(total)
    whole = columns_total + sum(_decimal(part.total) for part in stated.values())
    return {
        "format": FORMAT,
        "mechanisms": list(mechanisms.values()),
        "record": {
            "columns": names,
            "columns_per_row": sent,
            "stated": [{"what": n, "level": _text(_decimal(p.total))} for n, p in stated.items()],
            "total": None if None in totals else _text(Fraction(whole)),
            "not_covered": list(record.caveats),
        },
    }


def _most_revealed(column: PrivateColumn) -> Fraction | None:
    """Return the largest bound of a column's promise as an exact decimal; None if it has none."""
    domain = column.mechanism.domain if isinstance(column.mechanism, Mechanism) else Domain(0, 1)
    pairs: list[tuple[int | None, int]] = [(domain.L, domain.R)]
    if column.flagged() is not None:
        pairs += [(None, domain.L), (None, domain.R)]
    bounds = [_bound(column.guarantee(), *pair) for pair in pairs]
    found = [bound for bound in bounds if bound is not None]
    return max(found) if len(found) == len(bounds) else None


def _bound(promise: Guarantee, x: int | None, y: int) -> Fraction | None:
    """Return the bound between two cells; ``x`` is None for a missing value."""
    match promise:
        case Flagged(inner, eps_missing, constant):
            inside = _bound(inner, constant if x is None else x, y)
            return inside if x is not None or inside is None else _decimal(eps_missing) + inside
        case LDP(epsilon):
            return _decimal(epsilon) * (x != y)
        case CappedDLDP(near, cap):
            return _decimal(cap) if x is None else min(_decimal(near) * abs(x - y), _decimal(cap))
    assert x is not None
    match promise:
        case DLDP(epsilon):
            return _decimal(epsilon) * abs(x - y)
        case LocalDLDP(epsilon, runs):
            return None if runs.index(x) != runs.index(y) else _decimal(epsilon) * abs(x - y)
        case PartitionDLDP(eps_prt, eps_ner, runs):
            borders, cells = abs(runs.index(x) - runs.index(y)), min(abs(x - y), runs.widest - 1)
            return borders * _decimal(eps_prt) + cells * _decimal(eps_ner)
    return None


def _promise(column: PrivateColumn) -> dict[str, Any]:
    promise = column.mechanism.guarantee()
    match promise:
        case LDP(epsilon):
            return {"form": "ldp", "epsilon": _level(epsilon)}
        case DLDP(epsilon):
            return {"form": "dldp", "epsilon": _level(epsilon)}
        case CappedDLDP(near, cap):
            return {"form": "capped", "near": _level(near), "cap": _level(cap)}
        case LocalDLDP(epsilon, runs):
            return {"form": "local", "epsilon": _level(epsilon), "runs": _runs(runs)}
        case PartitionDLDP(eps_prt, eps_ner, runs):
            levels = {"eps_prt": _level(eps_prt), "eps_ner": _level(eps_ner)}
            return {"form": "partition", **levels, "runs": _runs(runs)}
    raise _no_form(column)


def _runs(partition: Partition) -> int | list[int]:
    """Return the width of the runs, or the first cell of each run but the first, counted from 0."""
    if isinstance(partition.theta, int):
        return partition.theta
    assert partition.domain is not None
    return [first - partition.domain.L for first in partition.theta]


def _channel(column: PrivateColumn) -> dict[str, Any]:
    """Return the exact distribution of a column's mechanism."""
    mechanism = column.mechanism
    if isinstance(mechanism, NominalMechanism):
        return _of_categories(column, mechanism)
    size = mechanism.domain.size
    match distribution_of(mechanism):
        case IntegerTable(weights=weights, bits=bits):
            rows = [list(map(hex, row)) for row in weights]
            return {"kind": "table", "cells": size, "bits": bits, "rows": rows}
        case Window() as window:
            inside = [window.weight(d) for d in range(-window.reach, window.reach + 1)]
            return _shifts(size, inside, window.weight(window.reach + 1))
        case KeepOrRedraw(ratio=ratio):
            return _shifts(size, [ratio.numerator], ratio.denominator)
        case ClampedLaplace(decay=decay):
            return {"kind": "clamped", "cells": size, "decay": _factor(decay.rational())}
        case TruncatedGeometric(decay=decay):
            return {"kind": "truncated", "cells": size, "decay": _factor(decay.rational())}
        case PiecewiseDensity(s=s):
            return {"kind": "piecewise", "cells": size, "decay": _factor(1 / s)}
        case CellRuns(outer=outer, inner=inner):
            factor = {"inner": _factor(inner.rational())}
            if outer is None:
                return {"kind": "inside runs", "cells": size, **factor}
            return {"kind": "runs", "cells": size, "outer": _factor(outer.rational()), **factor}
    raise _no_form(column)


def _shifts(cells: int, weights: list[int], floor: int) -> dict[str, Any]:
    """Describe rows that equal one row of weights, shifted to each cell, with a floor elsewhere."""
    whole = sum(weights) + (cells - 1) * floor
    row = {"weights": list(map(hex, weights)), "floor": hex(floor), "sum": hex(whole)}
    return {"kind": "shifts", "cells": cells, **row}


def _of_categories(column: PrivateColumn, mechanism: NominalMechanism) -> dict[str, Any]:
    count = len(mechanism.categories)
    match mechanism:
        case UnaryEncoding():
            on, off, bits = mechanism.integer_channel()
            chances = {"on": hex(on), "off": hex(off), "bits": bits}
            return {"kind": "unary", "cells": count, **chances}
        case SubsetSelection():
            on, bits = mechanism.integer_inclusion()
            chance = {"on": hex(on), "bits": bits}
            return {"kind": "subset", "cells": count, "size": mechanism.subset_size, **chance}
    raise _no_form(column)


def _gaps(column: PrivateColumn) -> dict[str, Any] | None:
    """Return how a missing value is reported; None if it counts as a cell or is refused."""
    match column.flagged():
        case WithMissing(mechanism, eps_missing, constant) as flagged:
            lie, bits = flagged.integer_flag()
            at = constant - mechanism.domain.L
            flag = {"eps_missing": _level(eps_missing), "constant": at}
            return {"kind": "flag", "lie": hex(lie), "bits": bits, **flag}
        case WindowWithMissing(window) as symbol:
            gap, cell, bits = symbol.integer_symbol()
            chances = {"gap": hex(gap), "cell": hex(cell), "bits": bits}
            if not isinstance(distribution_of(window), IntegerTable):
                return {"kind": "symbol", **chances}
            end = 1 + (window.reach if window.clipped else 0)
            return {
                "kind": "symbol",
                **chances,
                "row": [end, *[1] * (window.outputs.size - 2), end],
            }
    return None


def _factor(below_one: Fraction) -> list[str]:
    return [hex(below_one.numerator), hex(below_one.denominator)]


def _decimal(level: float) -> Fraction:
    """Return a level as the shortest decimal of its float."""
    return Fraction(repr(level))


def _level(level: float) -> str:
    return _text(_decimal(level))


def _text(level: Fraction) -> str:
    """Return a decimal fraction with all its digits."""
    digits = max(len(str(level.denominator)) * 4, 1)
    scaled = str(level.numerator * 10**digits // level.denominator).rjust(digits + 1, "0")
    return f"{scaled[:-digits]}.{scaled[-digits:]}".rstrip("0").rstrip(".")


def _no_form(column: PrivateColumn) -> ColumnError:
    return ColumnError(
        column.name,
        f"has the mechanism {type(column.mechanism).__name__}, which no certificate describes",
        hint="Use one of those that a configuration can name (docs/configuration.md).",
    )
