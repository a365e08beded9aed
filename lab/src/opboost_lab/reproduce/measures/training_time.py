"""Processor milliseconds of a training run on one thread: three samplers, and all the rest."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Problem, make_booster
from opboost.columns.codebook import Codebook
from opboost.columns.dataframes import as_numbers, column
from opboost.grid import NumericMapping
from opboost.mechanisms import AdjMap, GlobalMap, LocalMap, Mechanism
from opboost.training.feature_matrix import OwnColumn
from opboost_lab.accuracy import GRID, PARAMS
from opboost_lab.reproduce.measures import resampling
from opboost_lab.reproduce.measures.cost_tables import ROWS, CostTable, cost_table
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

MANY = 20_000
"""Resampling is not timed if a value would take more draws than this: it would hardly end."""


def cells(table: CostTable, method: Method) -> list[IntArray]:
    """Return the private columns on the grid."""
    mapping: Any = "cells" if method.kind == "ours" else "paper"
    return [
        NumericMapping(GRID, bounds, mapping=mapping).to_grid(
            as_numbers(c, column(table.private, c))
        )
        for c, bounds in table.bounds.items()
    ]


def desensitising_ms(
    name: str, method: Json, epsilon: float, bundled: bool, rows: int | None
) -> Json:
    """Return the times of our sampler and of the paper's resampling and table; draws per value.

    With ``rows``, only the first rows are timed, and times are scaled up to all.
    """
    chosen, table = Method(**method), cost_table(name, bundled, rows)
    share = ROWS[name] / len(table.y)
    mechanism, columns = chosen.mechanism(GRID, epsilon), cells(table, chosen)
    values = np.concatenate(columns)
    chosen.mechanism(GRID, 2 * epsilon).sample(values)  # compiles the loops
    mechanism.sample(columns[0])
    found: dict[str, Any] = {}
    again = [_ms(lambda: [mechanism.sample(x) for x in columns]) for _ in range(5)]
    found["ours"] = share * float(np.median(again))
    if isinstance(mechanism, GlobalMap | LocalMap | AdjMap):
        found["expected draws"] = resampling.expected_draws(mechanism, values)
        if resampling.worst_draws(mechanism, values) < MANY:
            times, draws = _papers(mechanism, columns)
            found |= {sampler: share * ms for sampler, ms in times.items()} | {"draws": draws}
    return found


def _papers(mechanism: Mechanism, columns: list[IntArray]) -> tuple[dict[str, float], float]:
    again = resampling.Resampling(np.random.default_rng(0))
    table = resampling.ExponentialTable(np.random.default_rng(0))
    times = {
        "resampling": _ms(lambda: [resampling.sample(mechanism, x, again) for x in columns]),
        "table": _ms(lambda: [resampling.sample(mechanism, x, table) for x in columns]),
    }
    return times, again.draws / sum(map(len, columns))


def training_ms(name: str, booster: str, method: Json, epsilon: float, bundled: bool) -> Json:
    """Return the time of all but desensitising: grid, codes, training, replacing cuts by values."""
    chosen, table = Method(**method), cost_table(name, bundled)
    mechanism = chosen.mechanism(GRID, epsilon)
    noisy = [mechanism.sample(x) for x in cells(table, chosen)]
    params = PARAMS[booster] | ({"nthread": 1} if booster == "xgboost" else {})
    own = [] if table.own is None else [OwnColumn.of(table.own, n) for n in table.own.column_names]
    y: Any = table.y.astype(float) if table.task == "regression" else None
    classes = 0
    if y is None:
        known, y = np.unique(table.y, return_inverse=True)
        classes = len(known)

    def whole() -> None:
        cells(table, chosen)
        books, blocks = [], []
        for column_ in noisy:
            values, codes = np.unique(column_, return_inverse=True)
            books.append(Codebook(values))
            blocks.append(codes.astype(np.float32)[:, None])
        blocks += [c.block(table.own).astype(np.float32) for c in own]
        X: FloatArray = np.hstack(blocks)
        problem = Problem(X, y, table.task, classes, seed=0)
        trained = make_booster(booster, params).train(problem)
        replace = {
            j: book.last_of if trained.left_up_to else book.value_of for j, book in enumerate(books)
        }
        trained.replaced(replace)

    with threadpool_limits(1):
        return {"ms": _ms(whole)}


def _ms(what: Callable[[], object]) -> float:
    started = time.process_time()
    what()
    return 1000 * (time.process_time() - started)
