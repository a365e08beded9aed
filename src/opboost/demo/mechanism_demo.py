"""A first look: one bundled column under every mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau
from sklearn.datasets import load_breast_cancer

from opboost._typing import FloatArray, IntArray
from opboost.grid import Domain, NumericMapping
from opboost.mechanisms import Mechanism, registry
from opboost.plots.figures import figure, save
from opboost.promises import Guarantee, NoGuarantee
from opboost.randomness.streams import Rng, default_rng

BOUNDS = (5.0, 30.0)
"""Declared bounds of the column, in millimetres: public knowledge about such measurements."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What one mechanism promises, does, and leaves of the column."""

    name: str
    mechanism: Mechanism
    guarantee: Guarantee
    exact_epsilon: float
    error: float
    order: float
    middle: FloatArray
    released: IntArray


def mechanisms(epsilon: float, grid: Domain) -> dict[str, Mechanism]:
    """The mechanisms of the tour, all at one level."""
    found = {}
    for entry in registry.on_grids():
        example = {p.name: p.example for p in entry.toml_parameters()} | {"epsilon": epsilon}
        signs = [f"{s}={example[n]:g}" for n, s in (("theta", "θ"), ("alpha", "α")) if n in example]
        label = " ".join([entry.title.replace("response", "resp."), *signs])
        found[label] = registry.build(entry.kind, grid, **example)
    return found


def column() -> tuple[FloatArray, str]:
    """The bundled column and its name: mean radius of 569 cell nuclei."""
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
    """A picture: what comes out for one value, and where the whole column goes."""
    raw, name = column()
    cells = NumericMapping(grid, BOUNDS).to_grid(raw)
    chart = figure(2, len(stops), width=2.3 * len(stops), height=2.7, sharey="row")
    middle = grid.L + grid.span // 2
    for j, stop in enumerate(stops):
        top, bottom = chart.axes[0][j], chart.axes[1][j]
        colours = ["#1f4e79" if y == middle else "#9dc3e6" for y in grid.values()]
        top.bar(grid.values(), stop.middle, color=colours, width=0.9)
        top.set_title(f"{stop.name}\nmean error {stop.error:.2f}", fontsize=10)
        counts = np.zeros((grid.size, grid.size))
        np.add.at(counts, (stop.released - grid.L, cells - grid.L), 1)
        bottom.imshow(counts, origin="lower", cmap="Blues", extent=_extent(grid), aspect="equal")
        bottom.set_xlabel("value before")
        for axis in (top, bottom):
            axis.set_xticks(grid.values()[:: max(1, grid.size // 5)])
    chart.axes[0][0].set_ylabel(f"chance of each output\nfor the value {middle}")
    chart.axes[1][0].set_ylabel("value after")
    chart.figure.suptitle(f"{name} on {grid.size} cells, ε = {epsilon:g} a cell", fontsize=12)
    save(chart, path)


def _extent(grid: Domain) -> tuple[float, float, float, float]:
    return (grid.L - 0.5, grid.R + 0.5, grid.L - 0.5, grid.R + 0.5)
