"""The README's picture of accuracy against ε, from the table of figures in docs/denoising.md.

python -m tools.manual.picture
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from opboost.plots import figures
from tools.manual.blocks import DOCS

TARGET = DOCS / "img" / "accuracy.svg"
CELLS = 10
_HEAD = "| data | ε | plain, on the grid | Global-map as it came |"
_LINES = {
    "plain": ("plain, on the same grid", "#555555", ":"),
    "paper": ("the paper's Global-map", "#c0504d", "-"),
    "clamp": ("Clamp-map, the same promise", "#8faadc", "-"),
    "ours": ("Clamp-map, denoised (the default)", "#1f4e79", "-"),
}


@dataclass(frozen=True)
class Point:
    """One row of the table."""

    data: str
    epsilon: float
    plain: float
    paper: float
    clamp: float
    ours: float


def table() -> str:
    """The rows of the table as they stand in the page."""
    text = (DOCS / "denoising.md").read_text()
    begun = text[text.index(_HEAD) :]
    return begun[: begun.index("\n\n")]


def points(rows: str) -> list[Point]:
    """The figures; of a cell with a range, its first number."""
    found = []
    for line in rows.split("\n")[2:]:
        data, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        numbers = [float(re.match(r"[\d.]+", cell).group()) for cell in cells[:5]]  # type: ignore[union-attr]
        found.append(Point(data, *numbers))
    return found


def digest(rows: str) -> str:
    """What ties the picture to the table."""
    return hashlib.sha256(rows.encode()).hexdigest()


def draw() -> None:
    """A panel a data set: ε a cell below, ε from end to end of a column above."""
    rows = table()
    found = points(rows)
    names = list(dict.fromkeys(p.data for p in found))
    chart = figures.figure(1, len(names), 12, 3.6)
    for axes, name in zip(chart.axes[0], names, strict=True):
        here = [p for p in found if p.data == name]
        at = range(len(here))
        for key, (label, colour, style) in _LINES.items():
            values = [getattr(p, key) for p in here]
            mark = None if key == "plain" else "o"
            axes.plot(at, values, style, color=colour, marker=mark, label=label)
        axes.set_title(name, fontsize=11)
        axes.set_xticks(at, [f"{p.epsilon:g}" for p in here])
        axes.set_xlabel("ε a cell")
        total = axes.secondary_xaxis("top")
        total.set_xticks(at, [f"{p.epsilon * (CELLS - 1):.2f}" for p in here], fontsize=8)
        total.set_xlabel("ε a column, in all", fontsize=8)
        axes.grid(alpha=0.25)
        axes.margins(x=0.12)
    handles, labels = chart.axes[0][0].get_legend_handles_labels()
    chart.figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figures.save(chart, TARGET, about=digest(rows))


if __name__ == "__main__":
    draw()
