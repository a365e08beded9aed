"""An artefact's files: figure.png, figure.svg, data.csv and data.json in a folder of its own."""

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path

from opboost.storage import atomic_files
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.drawing import draw
from opboost_lab.reproduce.finding import Artefact, Finding


def write_finding(artefact: Artefact, finding: Finding, out: Path) -> Path:
    """Write everything that is shown of an artefact, and return its folder."""
    folder = out / artefact.slug
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"label": artefact.label, "title": artefact.title, **asdict(finding)}
    atomic_files.write(
        folder / "data.json", json.dumps(_finite(plain), ensure_ascii=False, indent=1).encode()
    )
    atomic_files.write(folder / "data.csv", _csv(finding).encode())
    if finding.panels:
        draw(finding.panels, folder)
    return folder


def _csv(finding: Finding) -> str:
    """Return every point of every curve, then every cell of every table, as CSV."""
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow(("part", "row", "column", "value", "spread"))
    for panel in finding.panels:
        for curve in panel.curves:
            spread = curve.spread or (0.0,) * len(curve.x)
            for x, y, s in zip(curve.x, curve.y, spread, strict=True):
                out.writerow((panel.title, curve.label, x, y, s))
    for grid in finding.grids:
        for row in grid.rows:
            for name, value in zip(grid.header[1:], row[1:], strict=True):
                out.writerow((grid.title, row[0], name, value, ""))
    return text.getvalue()


def shown(value: Cell, digits: int = 4, wide: bool = False) -> str:
    """Return a cell as printed: with this many decimals, or fewer for large numbers.

    Among figures of very different sizes (``wide``), small ones keep three digits.

    >>> shown(0.91234), shown(1318645), shown(None), shown("as printed"), shown(2.5e-07)
    ('0.9123', '1,318,645', '–', 'as printed', '2.50e-07')
    >>> shown(0.0), shown(0.00021, wide=True), shown(69.0056), shown(241.9227), shown(20456.0)
    ('0', '2.10e-04', '69.006', '241.92', '20,456')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    if not 10 ** (wide - digits) <= abs(value) < 10**7:
        return f"{value:.2e}"
    if value.is_integer() and abs(value) >= 1000:
        return f"{value:,.0f}"
    tens = max(0, math.floor(math.log10(abs(value))))
    return f"{value:,.{max(1, digits - tens)}f}"


def markdown(grid: Grid) -> str:
    """Return a table as Markdown."""
    lines = [" | ".join(grid.header), "|".join(["---"] * len(grid.header))]
    lines += [" | ".join(shown(c, grid.digits, grid.wide) for c in row) for row in grid.rows]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
