"""Data that scikit-learn ships, for a quick look where the paper's sets are not here.

Bounds are declared in ``columns.toml``, as round numbers around what the sets' published
descriptions say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from opboost_lab.data.datasets import DataSet, declared_bounds, halves


def breast_cancer() -> DataSet:
    """Malignant or benign; five measurements are private, ten the label party's own."""
    bounds = declared_bounds("breast_cancer")
    found = load_breast_cancer(as_frame=True)
    names = [c for c in found.data.columns if c in bounds or c.endswith("error")]
    table = pa.table({c: found.data[c].to_numpy() for c in names})
    kinds = np.array(found.target_names)[found.target.to_numpy()]
    return _parted("breast cancer", "binary", bounds, table, "diagnosis", kinds)


def digits() -> DataSet:
    """Handwritten digits of 4 × 4 blocks, each of four pixels from 0 to 16; all private."""
    found = load_digits()
    blocks = found.images.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
    names = [f"block{i}" for i in range(1, 17)]
    table = pa.table(dict(zip(names, blocks.T, strict=True)))
    bounds = dict.fromkeys(names, (0.0, 64.0))
    return _parted("digits", "multiclass", bounds, table, "digit", found.target)


def diabetes() -> DataSet:
    """How far an illness has gone after a year; nine measurements are private."""
    bounds = declared_bounds("diabetes")
    found = load_diabetes(as_frame=True, scaled=False)
    table = pa.table({c: found.data[c].to_numpy() for c in found.data.columns})
    return _parted("diabetes", "regression", bounds, table, "progress", found.target.to_numpy())


def _parted(
    name: str,
    task: str,
    bounds: dict[str, tuple[float, float]],
    table: pa.Table,
    label: str,
    y: np.ndarray[tuple[int], np.dtype[np.generic]],
) -> DataSet:
    whole = table.append_column(label, pa.array(y))
    return DataSet(name, task, bounds, *halves(whole), label)


BUNDLED: dict[str, Callable[[], DataSet]] = {
    "Adult": breast_cancer,
    "Pen-digits": digits,
    "Powerplant": diabetes,
    "CASP": diabetes,
    "Industrial": diabetes,
}
"""Which set stands in for which of the paper's."""
