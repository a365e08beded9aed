"""How time and bytes grow with rows, columns, trees and layers.

Seconds are processor time on one thread, which other work on the machine changes little.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from opboost._typing import FloatArray
from opboost.boosting import Problem, make_booster
from opboost.mechanisms import ClampMap
from opboost.theory import protocol_cost
from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.measures.cost_tables import CostTable
from opboost_lab.reproduce.measures.traffic import job_traffic
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

EPSILON = 0.64
PARAMS = {"eta": 0.1, "nthread": 1}


def exponent(sizes: Sequence[float], figures: Sequence[float]) -> float:
    """Return the power by which figures grow with sizes: the slope of their logarithms.

    >>> exponent([10, 20, 40], [300, 1200, 4800])
    2.0
    """
    slope = np.polyfit(np.log(sizes), np.log(figures), 1)[0]
    return float(round(slope, 12))


def releasing(rows: int, columns: int, repeats: int) -> Json:
    """Return the seconds of a feature party's draws, on one thread."""
    mechanism = ClampMap(GRID, EPSILON)
    cells = [np.random.default_rng(j).integers(1, 11, rows) for j in range(columns)]
    mechanism.sample(cells[0][:10])
    seconds = _fastest(lambda: [mechanism.sample(x, threads=1) for x in cells], repeats)
    return {"seconds": seconds, "theory": protocol_cost(rows, columns, 1, 1, 1, 10).draws}


def training(rows: int, columns: int, trees: int, layers: int, repeats: int) -> Json:
    """Return the label party's seconds: training on codes, then replacing cuts by values."""
    X, y = _data(rows, columns)
    codes = np.floor((X - X.min(axis=0)) / np.ptp(X, axis=0) * 9.999).astype(np.float32)
    params = {**PARAMS, "n_estimators": trees, "max_depth": layers}
    booster, problem = make_booster("xgboost", params), Problem(codes, y, "binary", 2, seed=0)
    seconds = _fastest(lambda: booster.train(problem), repeats)
    trained = booster.train(problem)
    replace = dict.fromkeys(range(columns), lambda cut: 2 * cut)
    cost = protocol_cost(rows, columns, 1, trees, layers, 10)
    return {
        "seconds": seconds,
        "replacing": _fastest(lambda: trained.replaced(replace), repeats),
        "theory": cost.training_steps,
        "nodes": cost.replaced_nodes,
    }


def sending(rows: int, columns: int, trees: int, layers: int) -> Json:
    """Return the bytes that both parties send, and the bytes that the theorem counts."""
    X, y = _data(rows, columns)
    names = [f"x{j}" for j in range(columns)]
    table = CostTable(
        pa.table(dict(zip(names, X.T, strict=True))),
        dict.fromkeys(names, (-4.0, 4.0)),
        None,
        y,
        "binary",
    )
    params = {**PARAMS, "n_estimators": trees, "max_depth": layers}
    found = job_traffic(table, Method("Clamp-map"), EPSILON, "xgboost", params)
    cost = protocol_cost(rows, columns, 1, trees, layers, 10)
    return {
        "b": found["b"],
        "codes": found["codes"],
        "a": found["a"],
        "cuts": found["cuts"],
        "theory codes": cost.codes_bits / 8,
        "theory query": (cost.query_bits + cost.answer_bits) / 8,
        "paper codes": rows * columns * np.log2(rows) / 8,
    }


def _data(rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = (X.sum(axis=1) / np.sqrt(columns) + rng.normal(size=rows) > 0).astype(np.int64)
    return X, y


def _fastest(what: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several times, since other work on the machine only adds to it."""
    times = []
    with threadpool_limits(1):
        for _ in range(repeats):
            started = time.process_time()
            what()
            times.append(time.process_time() - started)
    return min(times)
