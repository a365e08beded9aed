"""Importances as bars: one per column, in the colour of its party, and one per party."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opboost.plots.figures import figure, save

MAX_COLUMNS = 25
"""The most columns that are drawn; if there are more, the title says how many."""

_COLOURS = ("#1f4e79", "#b8562a", "#4d6b1f", "#7a4b8c", "#2f7f7a", "#8a6d1d", "#8c2f4b", "#5b6770")


def draw_importances(
    columns: Mapping[str, float],
    held_by: Mapping[str, str],
    parties: Mapping[str, float],
    path: Path,
) -> None:
    """Draw columns in order of importance, with the parties, if there are any, beside them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_importances({"pay": 0.8, "age": 0.2}, {}, {}, Path(folder) / "worth.svg")
    ...     (Path(folder) / "worth.svg").read_text().count("<svg")
    1
    """
    shown = list(columns.items())[:MAX_COLUMNS]
    colours = {party: _COLOURS[k % len(_COLOURS)] for k, party in enumerate(parties)}
    height = max(2.4, 0.28 * len(shown) + 1.0)
    chart = figure(
        rows=1, columns=2 if parties else 1, width=9.0 if parties else 6.0, height=height
    )
    axes = chart.axes[0]
    by_column = [colours.get(held_by.get(name, ""), _COLOURS[0]) for name, _ in shown]
    _bars(axes[0], dict(shown), by_column)
    more = "" if len(shown) == len(columns) else f" (the first {len(shown)} of {len(columns)})"
    axes[0].set_title(f"by column{more}", fontsize=9, loc="left")
    if parties:
        _bars(axes[1], parties, list(colours.values()))
        axes[1].set_title("by party", fontsize=9, loc="left")
    save(chart, path)


def _bars(axis: Any, shares: Mapping[str, float], colours: list[str]) -> None:
    places = range(len(shares))
    bars = axis.barh(places, list(shares.values()), color=colours)
    axis.bar_label(bars, fmt="%.3f", fontsize=8, padding=3)
    axis.set_yticks(places, [name if len(name) <= 40 else f"{name[:39]}…" for name in shares])
    axis.tick_params(labelsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.set_xlim(left=0)
    axis.set_xlabel("share of the gain of all splits", fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
