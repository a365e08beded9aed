"""Data sets of scikit-learn, for a quick run without the paper's data.

``columns.toml`` declares their bounds: round numbers based on the published descriptions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from opboost_lab.data.datasets import DataSet, declared_bounds, halves


def breast_cancer() -> DataSet:
    """Return tumours, malignant or benign: five private measurements, ten of the label party."""
    bounds = declared_bounds("breast_cancer")
    found = load_breast_cancer(as_frame=True)
    names = [c for c in found.data.columns if c in bounds or c.endswith("error")]
    kinds = np.array(found.target_names)[found.target.to_numpy()]
    table = pa.table({**_columns(found.data[names]), "diagnosis": kinds})
    return DataSet("breast cancer", "binary", bounds, *halves(table), "diagnosis")


def digits() -> DataSet:
    """Return handwritten digits: 4 × 4 private blocks, each of four pixels from 0 to 16."""
    found = load_digits()
    blocks = found.images.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
    bounds = {f"block{i}": (0.0, 64.0) for i in range(1, 17)}
    table = pa.table({**dict(zip(bounds, blocks.T, strict=True)), "digit": found.target})
    return DataSet("digits", "multiclass", bounds, *halves(table), "digit")


def diabetes() -> DataSet:
    """Return the progress of diabetes after a year: nine private measurements."""
    bounds = declared_bounds("diabetes")
    found = load_diabetes(as_frame=True, scaled=False)
    table = pa.table({**_columns(found.data), "progress": found.target.to_numpy()})
    return DataSet("diabetes", "regression", bounds, *halves(table), "progress")


def _columns(frame: Any) -> dict[str, Any]:
    return {name: frame[name].to_numpy() for name in frame.columns}


BUNDLED: dict[str, Callable[[], DataSet]] = {
    "Adult": breast_cancer,
    "Pen-digits": digits,
    "Powerplant": diabetes,
    "CASP": diabetes,
    "Industrial": diabetes,
}
"""The stand-in for each of the paper's sets."""
