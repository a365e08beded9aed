"""Libraries that every installation has, loaded: import this once, then fork.

Nothing of OpBoost is among them, so that it meets an absent extra as it does in a new process.
"""

from importlib import import_module

for _name in (
    "narwhals", "numba", "pyarrow.csv", "pyarrow.flight", "pyarrow.parquet", "pydantic",
    "rich.table", "scipy.stats", "sklearn.ensemble", "sklearn.metrics", "sklearn.model_selection",
    "typer",
):  # fmt: skip
    import_module(_name)
