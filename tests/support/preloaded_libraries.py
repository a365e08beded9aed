"""Load the libraries that every installation has: import this once, then fork.

No module of OpBoost is loaded, so that a missing extra has the same effect as in a new process.
"""

from importlib import import_module

for _name in (
    "narwhals", "numba", "pyarrow.csv", "pyarrow.flight", "pyarrow.parquet", "pydantic",
    "rich.table", "scipy.stats", "sklearn.ensemble", "sklearn.metrics", "sklearn.model_selection",
    "typer",
):  # fmt: skip
    import_module(_name)
