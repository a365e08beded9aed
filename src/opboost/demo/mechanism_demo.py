"""A tour of the mechanisms: one bundled column under each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau
from sklearn.datasets import load_breast_cancer

from opboost._typing import FloatArray, IntArray
from opboost.demo.styles import style
from opboost.grid import Domain, NumericMapping
from opboost.mechanisms import Mechanism, registry
from opboost.plots.svg import LEFT, Series, SvgCells, SvgChart, draw_cells, picture_file
from opboost.plots.svg import draw as draw_chart
from opboost.promises import Guarantee, NoGuarantee
from opboost.randomness.streams import Rng, default_rng
from opboost.storage import atomic_files

BOUNDS = (5.0, 30.0)
"""Declared bounds of the column, in millimetres: public knowledge about such measurements."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What one mechanism promises and does, and the column that it releases."""

    name: str
    mechanism: Mechanism
    guarantee: Guarantee
    exact_epsilon: float
    error: float
    order: float
    middle: FloatArray
    released: IntArray


def mechanisms(epsilon: float, grid: Domain) -> dict[str, Mechanism]:
    """Return the mechanisms of the tour, all at one level."""
    found = {}
    for entry in registry.on_grids():
        if not entry.has("epsilon"):
            continue  # Window-map takes a total, not a level per cell
        example = {p.name: p.example for p in entry.toml_parameters()} | {"epsilon": epsilon}
        signs = [f"{s}={example[n]:g}" for n, s in (("theta", "θ"), ("alpha", "α")) if n in example]
        label = " ".join([entry.title.replace("response", "resp."), *signs])
        found[label] = registry.build(entry.kind, grid, **example)
    return found


def column() -> tuple[FloatArray, str]:
    """Return the bundled column and its name: mean radius of 569 cell nuclei."""
    data = load_breast_cancer()
    return np.asarray(data.data[:, 0], dtype=np.float64), str(data.feature_names[0])


def tour(epsilon: float, grid: Domain, rng: Rng | None = None) -> Iterator[Stop]:
    """Desensitise the bundled column under every mechanism, one at a time."""
    raw, _ = column()
    cells = NumericMapping(grid, BOUNDS).to_grid(raw)
    for name, mechanism in mechanisms(epsilon, grid).items():
        released = mechanism.sample(cells, rng)
        yield Stop(
            name,
            mechanism,
            mechanism.guarantee() if default_rng(rng).secure else NoGuarantee("seeded"),
            mechanism.exact_epsilon(),
            float(np.abs(released.astype(int) - cells.astype(int)).mean()),
            float(kendalltau(raw, released).statistic),
            mechanism.pmf(grid.L + grid.span // 2),
            released,
        )


def draw(stops: list[Stop], epsilon: float, grid: Domain, path: Path) -> None:
    """Draw the outputs for one value, and a map of the column's values before and after noise."""
    raw, name = column()
    cells = NumericMapping(grid, BOUNDS).to_grid(raw)
    title = f"{name} on {grid.size} cells, ε = {epsilon:g} per cell"
    rows = -(-len(stops) // _ACROSS)
    parts = [
        f'<svg viewBox="0 0 {_ACROSS * _WIDTH} {_TOP + rows * _HEIGHT}" role="img" class="chart">'
        f"<title>{escape(title)}</title>"
        '<rect class="paper" width="100%" height="100%"/>'
        f'<text class="heading" x="{LEFT}" y="30">{escape(title)}</text>'
    ]
    top = max(float(stop.middle.max()) for stop in stops)
    for number, stop in enumerate(stops):
        down, across = divmod(number, _ACROSS)
        x, y = across * _WIDTH, _TOP + down * _HEIGHT
        parts.append(f'<text class="title" x="{x + LEFT}" y="{y + 18}">{escape(stop.name)}</text>')
        parts.append(f'<text x="{x + LEFT}" y="{y + 36}">mean error {stop.error:.2f} cells</text>')
        parts.append(_placed(draw_chart(_outputs(stop, grid, top)), x, y + 40, _CHART))
        parts.append(_placed(draw_cells(_counts(stop, grid, cells)), x, y + 40 + _CHART, _CELLS))
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write(path, picture_file("".join(parts) + "</svg>", style("charts.css")))


_ACROSS, _TOP, _WIDTH, _CHART, _CELLS = 3, 50, 300, 200, 290
"""Mechanisms per row; then, in SVG units, the heading's height, a panel's width and two heights."""
_HEIGHT = 40 + _CHART + _CELLS + 20


def _outputs(stop: Stop, grid: Domain, top: float) -> SvgChart:
    middle = grid.L + grid.span // 2
    points = [(float(y), float(p)) for y, p in zip(grid.values(), stop.middle, strict=True)]
    return SvgChart(
        f"{stop.name}: outputs for the value {middle}",
        f"The value {middle} is sent as itself with chance {stop.middle[middle - grid.L]:.2f}.",
        "value after",
        f"chance, value {middle}",
        [
            Series("moved", [p for p in points if p[0] != middle], "moved", bars=True),
            Series("kept", [p for p in points if p[0] == middle], "kept", bars=True),
        ],
        y_top=top,
        width=_WIDTH,
        height=_CHART,
    )


def _counts(stop: Stop, grid: Domain, cells: IntArray) -> SvgCells:
    counts = np.zeros((grid.size, grid.size))
    np.add.at(counts, (stop.released - grid.L, cells - grid.L), 1)
    return SvgCells(
        f"{stop.name}: where the column goes",
        f"Kendall's tau between the column before and after is {stop.order:.2f}.",
        "value before",
        "value after",
        counts.tolist(),
        grid.L,
        "kept",
        width=_WIDTH,
        height=_CELLS,
    )


def _placed(drawn: str, x: int, y: int, height: int) -> str:
    """Place a drawn chart in a larger picture."""
    return drawn.replace("<svg ", f'<svg x="{x}" y="{y}" width="{_WIDTH}" height="{height}" ', 1)
