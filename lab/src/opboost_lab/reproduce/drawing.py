"""Draw panels that are readable in print and without distinguishing colours."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from opboost.plots.figures import Figure, figure, save
from opboost_lab.reproduce.charts import Curve, Kind, Panel

PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00",
    "#332288", "#882255",
)  # fmt: skip
"""Okabe and Ito's colours and two of Paul Tol's, distinguishable with any colour vision."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: dict[Kind, str] = {"paper": "-", "ours": "-", "ldp": ":", "plain": "--"}
PLAIN_DASHES = ("--", "-.", (0, (1, 1.5)))
"""Baselines are grey; their dashes tell them apart."""
WIDTHS: dict[Kind, float] = {"paper": 1.3, "ours": 2.6, "ldp": 1.3, "plain": 1.3}
COLUMNS = 2
MANY = 10
"""The legend of more curves has smaller type."""
CROWDED = 6
"""The labels of more ticks are slanted."""
SMALL, NEAR = 10, 100
"""Up to these ratios of its ends, a logarithmic axis has many, or a few, labels between powers."""
LONG = 40
"""A curve of more points has only a few markers, at different points for each curve."""


def draw(panels: tuple[Panel, ...], folder: Path) -> None:
    """Write ``figure.png`` and ``figure.svg``."""
    for kind in ("png", "svg"):
        save(_chart(panels), folder / f"figure.{kind}")


def _chart(panels: tuple[Panel, ...]) -> Figure:
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    chart = figure(rows, columns, 6.4 * columns, 4.7)
    chart.figure.get_layout_engine().set(h_pad=0.12)
    axes = [a for row in chart.axes for a in row]
    looks = _looks(panels)
    for panel, axis in zip(panels, axes, strict=False):
        for place, curve in enumerate(panel.curves):
            _line(axis, curve, looks[curve.label], place / len(panel.curves))
        if panel.logx:
            axis.set_xscale("log", base=2 if _doubling(panel) else 10)
            if _doubling(panel):
                ticks = sorted({x for c in panel.curves for x in c.x})
                slant = 30 if len(ticks) > CROWDED else 0
                names = [f"{t:,.0f}" if t >= 1000 else f"{t:g}" for t in ticks]
                axis.set_xticks(ticks, names, fontsize=8 if slant else 9, rotation=slant)
                axis.minorticks_off()
        if panel.logy:
            axis.set_yscale("log")
            _name_between(axis)
        axis.set_title(panel.title, fontsize=11)
        axis.set_xlabel(panel.x)
        axis.set_ylabel(panel.y)
        axis.grid(alpha=0.25, linewidth=0.6)
    for axis in axes[len(panels) :]:
        axis.remove()
    named: dict[str, Any] = {}
    for axis in axes[: len(panels)]:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    chart.figure.legend(
        named.values(),
        named,
        loc="outside lower center",
        ncols=_evenly(len(named), 4 if columns > 1 else 2),
        fontsize=8 if len(named) > MANY else 9,
        frameon=False,
    )
    return chart


def _name_between(axis: Any) -> None:
    """Label an axis of few powers of ten with plain numbers, also between the powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_ylim()
    if low <= 0 or high / low > NEAR:
        return
    steps = (1, 2, 5) if high / low > SMALL else (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9)
    ticks = axis.yaxis
    ticks.set_major_locator(LogLocator(subs=steps))
    ticks.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.6g}"))
    ticks.set_minor_locator(NullLocator())


def _evenly(entries: int, most: int) -> int:
    """Return the number of columns that makes the rows of a legend about equally long.

    >>> _evenly(5, 4), _evenly(8, 4), _evenly(1, 4)
    (3, 4, 1)
    """
    rows = -(-entries // most)
    return -(-entries // max(rows, 1)) or 1


def _doubling(panel: Panel) -> bool:
    xs = sorted({x for c in panel.curves for x in c.x})
    return len(xs) > 1 and all(abs(b / a - round(b / a)) < 1e-9 for a, b in pairwise(xs) if a)


def _looks(panels: tuple[Panel, ...]) -> dict[str, dict[str, object]]:
    """Return colour, marker and dashes by label: the same in every panel, no two alike."""
    kinds = {c.label: c.kind for p in panels for c in p.curves}
    noisy = [label for label, kind in kinds.items() if kind != "plain"]
    plain = [label for label, kind in kinds.items() if kind == "plain"]
    looks: dict[str, dict[str, object]] = {
        label: {
            "color": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[(i + i // len(PALETTE)) % len(MARKERS)],
            "linestyle": DASHES[kinds[label]],
        }
        for i, label in enumerate(noisy)
    }
    for i, label in enumerate(plain):
        dashes = PLAIN_DASHES[i % len(PLAIN_DASHES)]
        looks[label] = {"color": "#444444", "marker": None, "linestyle": dashes}
    return looks


def _line(axis: Any, curve: Curve, look: dict[str, object], place: float) -> None:
    """Draw a curve; its ``place`` in the panel, from 0 to 1, shifts a long curve's markers."""
    if len(curve.x) > LONG:
        step = len(curve.x) // 6
        look = look | {"markevery": (int(place * step), step)}
    axis.errorbar(
        curve.x,
        curve.y,
        yerr=curve.spread if any(curve.spread) else None,
        label=curve.label,
        markersize=4.5,
        linewidth=WIDTHS[curve.kind],
        capsize=2,
        elinewidth=0.8,
        **look,
    )
