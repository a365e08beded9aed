"""The tables whose costs are measured: the paper's rows and columns, or bundled stand-ins.

The paper trains on 80 % of Adult's official training file, on Pen-digits' official one, and on 80 %
of CASP, as its traffic shows (docs/errata.md).  Without these sets, rows of scikit-learn's sets are
drawn with replacement, to the same number of rows and of private columns.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from opboost.boosting.booster import Task
from opboost.errors import ParameterError
from opboost_lab.data import datasets
from opboost_lab.data.datasets import DataSet

ROWS = {"Adult": 26_048, "Pen-digits": 7_494, "CASP": 36_584}
COLUMNS = {"Adult": 5, "Pen-digits": 16, "CASP": 9}
STAND_INS = {"Adult": "breast cancer", "Pen-digits": "digits", "CASP": "diabetes"}
TASKS: dict[str, Task] = {"Adult": "binary", "Pen-digits": "multiclass", "CASP": "regression"}


@dataclass(frozen=True, slots=True)
class CostTable:
    """Private columns with declared bounds, the label party's own columns, and the label."""

    private: pa.Table
    bounds: dict[str, tuple[float, float]]
    own: pa.Table | None
    y: np.ndarray[Any, Any]
    task: Task


@lru_cache(maxsize=4)
def cost_table(name: str, bundled: bool, rows: int | None = None) -> CostTable:
    """Return the training rows of a set, or the first ``rows`` of them.

    >>> table = cost_table("CASP", bundled=True)
    >>> table.private.shape, table.task
    ((36584, 9), 'regression')
    """
    if name not in ROWS:
        raise ParameterError(f"{name!r} has no costs in the paper. It has: {', '.join(ROWS)}.")
    data = _stand_in(name) if bundled else datasets.ALL[name]()
    train = data.train
    if not bundled and name == "Adult":
        train, _ = datasets.halves(train)
    train = train.slice(0, rows or ROWS[name])
    private = list(data.bounds)
    others = [c for c in train.column_names if c not in private and c != data.label]
    return CostTable(
        train.select(private),
        data.bounds,
        train.select(others) if others else None,
        train.column(data.label).to_numpy(zero_copy_only=False),
        TASKS[name],
    )


def _stand_in(name: str) -> DataSet:
    found: Any = {"Adult": load_breast_cancer, "Pen-digits": load_digits, "CASP": load_diabetes}[
        name
    ]()
    spread = np.argsort(-np.ptp(found.data, axis=0), kind="stable")
    X = found.data[:, np.sort(spread[: COLUMNS[name]])]
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(X), ROWS[name])
    names = [f"x{j + 1}" for j in range(X.shape[1])]
    low, high = X.min(axis=0), X.max(axis=0)
    table = pa.table({n: X[chosen, j] for j, n in enumerate(names)})
    return DataSet(
        STAND_INS[name],
        TASKS[name],
        {n: (float(low[j]), float(high[j])) for j, n in enumerate(names)},
        table.append_column("y", pa.array(found.target[chosen])),
        table.slice(0, 0),
        "y",
    )
