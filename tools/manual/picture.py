"""Draw the README's picture of accuracy by record total, from docs/record-budgets.md.

python -m tools.manual.picture
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from opboost.plots import figures
from tools.manual.blocks import DOCS
from tools.manual.record_figures import HEAD, PAGE

TARGET = DOCS / "img" / "accuracy.svg"
_LINES = {
    "plain": ("plain training, no privacy", "#555555", ":"),
    "ours": ("OpBoost, record budget", "#1f4e79", "-"),
    "piecewise": ("Piecewise, even split", "#8faadc", "-"),
    "clamp": ("Clamp-map, even split", "#b7a26a", "-"),
    "paper": ("the paper's Global-map, even split", "#c0504d", "-"),
}


@dataclass(frozen=True)
class Point:
    """One row of the table."""

    data: str
    total: float
    plain: float
    ours: float
    released: float
    piecewise: float
    clamp: float
    paper: float


def table() -> str:
    """Return the rows of the table as the page has them."""
    text = PAGE.read_text()
    begun = text[text.index(HEAD) :]
    return begun[: begun.index("\n\n")]


def points(rows: str) -> list[Point]:
    """Return the rows of the table as values."""
    found = []
    for line in rows.split("\n")[2:]:
        data, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
        found.append(Point(data, *map(float, cells)))
    return found


def digest(rows: str) -> str:
    """Return a digest of the table, which the picture contains."""
    return hashlib.sha256(rows.encode()).hexdigest()


def draw() -> None:
    """Draw one panel per data set, with the record total on the horizontal axis."""
    rows = table()
    found = points(rows)
    names = list(dict.fromkeys(p.data for p in found))
    chart = figures.figure(2, 2, 7.6, 2.9)
    panels = [axes for row in chart.axes for axes in row]
    for axes, name in zip(panels, names, strict=True):
        here = [p for p in found if p.data == name]
        at = range(len(here))
        for key, (label, colour, style) in _LINES.items():
            values = [getattr(p, key) for p in here]
            mark = None if key == "plain" else "o"
            width = 2.4 if key == "ours" else 1.4
            axes.plot(
                at, values, style, color=colour, marker=mark, label=label, linewidth=width,
                markersize=4,
            )  # fmt: skip
        data, _, measure = name.partition(", ")
        axes.set_title(data, fontsize=11)
        axes.set_ylabel(measure)
        axes.set_xticks(at, [f"{p.total:g}" for p in here])
        axes.set_xlabel("record total")
        axes.grid(alpha=0.25)
        axes.margins(x=0.12)
    handles, labels = chart.axes[0][0].get_legend_handles_labels()
    chart.figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figures.save(chart, TARGET, about=digest(rows))


if __name__ == "__main__":
    draw()
