"""The paper's table of γ, the bound and the exact values: docs/errata.md (Order and splits)."""

import re
from functools import partial

import opboost as op
from claims.claim import NOISE, ROOT, Page

ERRATA = ROOT / "docs" / "errata.md"
KINDS = {"printed": "as_printed", "bound": "bound", "exact": "exact"}


def stated() -> dict[str, list[float]]:
    """Return the rows of the table, as the page states them."""
    text = ERRATA.read_text()
    lines = {row: re.findall(rf"\| {row} \|.*", text)[0] for row in KINDS}
    return {row: [float(v) for v in re.findall(r"\.\d{4}", line)] for row, line in lines.items()}


def gamma(distance: int, kind: str) -> float:
    m = op.AdjMap(op.Domain(1, 100), 0.1, theta=10, alpha=1.0)
    return m.gamma(distance, kind)


HERE = Page("docs/errata.md, Order and splits")
COVERS = (*NOISE, "opboost.theory")
CLAIMS = [
    HERE.equals(
        f"γ({t}) of Adj-map, α=1, {row}", value, partial(gamma, t, KINDS[row]), within=0.00005
    )
    for row, values in stated().items()
    for t, value in zip(range(5, 100, 10), values, strict=True)
]
