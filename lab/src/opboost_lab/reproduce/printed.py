"""The figures that the paper prints; ``printed.toml`` explains the rows of each table."""

from typing import Any

from opboost_lab.toml_data import toml_data

_TABLES = toml_data("opboost_lab.reproduce", "printed")


def _rows(label: str, length: int) -> dict[str, tuple[Any, ...]]:
    """Return the rows of a table by name, with None for cells that are empty at the end."""
    rows = _TABLES[label].items()
    return {name: (*row, *(None,) * (length - len(row))) for name, row in rows}


DATASETS: dict[str, tuple[str, str, str]] = _rows("tab:dataset", 3)
OP_PROB_T: dict[str, tuple[float, ...]] = _rows("tab:op-prob-t", 10)
COMPUTATION_OPE: dict[str, tuple[float, float]] = _rows("tab-computation-ope", 2)
OPXGBOOST: dict[str, tuple[float, ...]] = _rows("tab:opxgboost", 12)
COMUN: dict[str, tuple[int, ...]] = _rows("tab:comun_perform", 12)
COMP: dict[str, tuple[float | None, ...]] = _rows("tab:comp_perform", 12)
UMENG: dict[tuple[float, str], tuple[float, float, int]] = {
    (float(epsilon), name): tuple(row)
    for epsilon, rows in _TABLES["tab:umeng_opxgboost"].items()
    for name, row in rows.items()
}
