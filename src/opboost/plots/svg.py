"""Charts as SVG text: lines, bars and shaded cells; the style sheet sets colours and dashes.

The class of a series selects its colour, dash and marker.  So one picture suits light and dark
pages, and the server sends only text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

WIDTH, HEIGHT = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 14, 48

Shape = Literal["circle", "square", "triangle", "diamond", "cross", "plus", "down", ""]

_SHAPES: dict[str, str] = {
    "circle": "M-3.4,0a3.4,3.4 0 1,0 6.8,0a3.4,3.4 0 1,0 -6.8,0",
    "square": "M-3,-3h6v6h-6z",
    "triangle": "M0,-4L3.8,3H-3.8z",
    "diamond": "M0,-4.2L4.2,0L0,4.2L-4.2,0z",
    "cross": "M-3.2,-3.2L3.2,3.2M-3.2,3.2L3.2,-3.2",
    "plus": "M-4,0H4M0,-4V4",
    "down": "M0,4L3.8,-3H-3.8z",
}


class Markup(str):
    """Text that is already HTML: a template engine that escapes text leaves it unchanged."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the text itself, as template engines ask for it."""
        return self


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order of x, joined by a line; with ``bars``, a bar per point instead."""

    name: str
    points: Sequence[tuple[float, float]]
    look: str
    shape: Shape = ""
    bars: bool = False


@dataclass(frozen=True, slots=True)
class SvgChart:
    """What a chart draws, and the words that a screen reader reads out instead."""

    name: str
    words: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_top: float | None = None
    band: tuple[float, float] | None = None
    rule: float | None = None
    whole_x: bool = True
    width: int = WIDTH
    height: int = HEIGHT

    def table(self, most: int = 24) -> tuple[list[str], list[list[str]]]:
        """Return the chart as a table: its titles, and rows (a selection if there are many)."""
        values = sorted({x for s in self.series for x, _ in s.points})
        step = -(-len(values) // most) if values else 1
        kept = [*values[::step], *([] if (len(values) - 1) % step == 0 else values[-1:])]
        known = [dict(s.points) for s in self.series]
        rows = [[short(x), *(short(k[x]) if x in k else "–" for k in known)] for x in kept]
        return [self.x_label, *(s.name for s in self.series)], rows


def short(value: float) -> str:
    """Return a number for people: four significant digits, thousands separated.

    >>> [short(v) for v in (12345.6, 0.12345, 3, 0, 0.00001234, float("inf"))]
    ['12,346', '0.1235', '3', '0', '1.2e-05', 'no limit']
    """
    if math.isinf(value):
        return "no limit"
    if value == 0 or (float(value).is_integer() and abs(value) < 1e9):
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.4g}"


def draw(chart: SvgChart) -> Markup:
    """Return the chart as SVG."""
    points = [p for s in chart.series for p in s.points]
    if not points:
        return Markup("")
    low_x, high_x = min(p[0] for p in points), max(p[0] for p in points)
    top = chart.y_top or max(p[1] for p in points) or 1.0
    low_y = min(0.0, *(p[1] for p in points))
    ticks_y = _ticks(low_y, top)
    size = chart.width, chart.height
    frame = _Frame(low_x, high_x, low_y, max(top, ticks_y[-1]), chart.x_log, _pad(chart), *size)
    parts = [_opening(chart.name, chart.words, *size)]
    if chart.band is not None:
        a, b = frame.x(chart.band[0] - 0.5), frame.x(chart.band[1] + 0.5)
        height = frame.floor - TOP
        parts.append(
            f'<rect class="band" x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{height}"/>'
        )
    parts += [
        _axis_y(frame, ticks_y),
        _axis_x(frame, chart.whole_x),
        _labels(frame, chart.x_label, chart.y_label),
    ]
    if chart.rule is not None:
        y = frame.y(chart.rule)
        parts.append(
            f'<line class="rule" x1="{LEFT}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
    parts += [_series(frame, s) for s in chart.series if s.points]
    return Markup("".join(parts) + "</svg>")


@dataclass(frozen=True, slots=True)
class SvgBars:
    """Named values as horizontal bars that begin at ``low``; each has a name, value and look."""

    name: str
    words: str
    x_label: str
    bars: Sequence[tuple[str, float, str]]
    low: float
    high: float


def draw_bars(chart: SvgBars) -> Markup:
    """Return the bars as SVG, with each name above its bar and each value at its end."""
    step, left, right = 46, 4, WIDTH - 68
    floor = TOP + step * len(chart.bars)
    scale = (right - left) / (chart.high - chart.low)
    parts = [_opening(chart.name, chart.words, WIDTH, floor + BOTTOM)]
    parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{floor}" y2="{floor}"/>')
    for tick in _ticks(chart.low, chart.high, 5):
        x = left + (tick - chart.low) * scale
        parts.append(
            f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>'
        )
        anchor = "start" if tick <= chart.low else "middle"
        parts.append(f'<text class="tick" x="{x:.1f}" y="{floor + 19}" text-anchor="{anchor}">')
        parts.append(f"{escape(short(round(tick, 10)))}</text>")
    for number, (name, value, look) in enumerate(chart.bars):
        y, width = TOP + step * number, max(0.0, (value - chart.low) * scale)
        parts.append(f'<text class="label" x="{left}" y="{y + 12}">{escape(name)}</text>')
        parts.append(f'<rect class="bar {look}" x="{left}" y="{y + 18}" width="{width:.1f}" ')
        parts.append(f'height="18"/><text class="value" x="{left + width + 6:.1f}" y="{y + 32}">')
        parts.append(f"{value:.3f}</text>")
    parts.append(f'<text class="label" x="{(left + right) / 2:.0f}" y="{floor + 40}" ')
    parts.append(f'text-anchor="middle">{escape(chart.x_label)}</text></svg>')
    return Markup("".join(parts))


@dataclass(frozen=True, slots=True)
class SvgCells:
    """Counts on a square grid, shaded: ``counts[y][x]``, where both axes begin at ``first``."""

    name: str
    words: str
    x_label: str
    y_label: str
    counts: Sequence[Sequence[float]]
    first: int
    look: str
    width: int = WIDTH
    height: int = HEIGHT


def draw_cells(chart: SvgCells) -> Markup:
    """Return the cells as SVG; the largest count has the full colour, and zero has none."""
    last = chart.first + len(chart.counts) - 1
    size = chart.width, chart.height
    frame = _Frame(chart.first, last, chart.first - 0.5, last + 0.5, False, 0.5, *size)
    most = max(max(row) for row in chart.counts) or 1
    wide, high = frame.x(1) - frame.x(0), frame.y(0) - frame.y(1)
    parts = [_opening(chart.name, chart.words, *size)]
    for y, row in enumerate(chart.counts, chart.first):
        for x, count in enumerate(row, chart.first):
            if count:
                parts.append(
                    f'<rect class="bar {chart.look}" x="{frame.x(x) - wide / 2:.1f}" '
                    f'y="{frame.y(y) - high / 2:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                    f'fill-opacity="{count / most:.3f}"/>'
                )
    for tick in _ticks_x(frame, whole=True):
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{frame.y(tick) + 4:.1f}" ')
        parts.append(f'text-anchor="end">{escape(short(tick))}</text>')
    parts += [_axis_x(frame, True), _labels(frame, chart.x_label, chart.y_label), "</svg>"]
    return Markup("".join(parts))


def picture_file(drawn: str, style: str) -> bytes:
    """Return a drawn chart as an SVG file that carries its style sheet."""
    opening, rest = drawn.split(">", 1)
    with_name = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{with_name}><style>{style}</style>{rest}\n".encode()


def _opening(name: str, words: str, width: int, height: int) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" class="chart" focusable="false">'
        f"<title>{escape(name)}</title><desc>{escape(words)}</desc>"
    )


def swatch(look: str, shape: str, bars: bool = False) -> Markup:
    """Return a series' symbol for the legend."""
    if bars:
        inner = f'<rect class="bar {look}" x="4" y="1" width="20" height="12"/>'
    else:
        inner = f'<path class="line {look}" d="M1,7H27"/>'
        inner += _mark(14, 7, look, shape) if shape else ""
    return Markup(
        '<svg viewBox="0 0 28 14" class="swatch" aria-hidden="true" focusable="false">'
        f"{inner}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    low_x: float
    high_x: float
    low_y: float
    high_y: float
    log: bool
    pad: float
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def right(self) -> int:
        """The x at which the axes end on the right."""
        return self.width - RIGHT

    @property
    def floor(self) -> int:
        """The y of the x axis."""
        return self.height - BOTTOM

    def x(self, value: float) -> float:
        low, high = self.low_x - self.pad, self.high_x + self.pad
        if self.log:
            value, low, high = (math.log(v) for v in (value, self.low_x, self.high_x))
        share = (value - low) / (high - low) if high > low else 0.5
        return LEFT + share * (self.right - LEFT)

    def y(self, value: float) -> float:
        share = (value - self.low_y) / (self.high_y - self.low_y)
        return self.floor - share * (self.floor - TOP)


def _pad(chart: SvgChart) -> float:
    """Return the room for half a bar on both sides."""
    return 0.6 if any(s.bars for s in chart.series) else 0.0


def _series(frame: _Frame, series: Series) -> str:
    if series.bars:
        cells = frame.high_x - frame.low_x + 2 * frame.pad
        width = (0.84 if cells < 50 else 1.0) * (frame.right - LEFT) / cells
        zero = frame.y(0)
        return "".join(
            f'<rect class="bar {series.look}" x="{frame.x(x) - width / 2:.1f}" '
            f'y="{frame.y(y):.1f}" width="{width:.1f}" height="{max(0.0, zero - frame.y(y)):.1f}"/>'
            for x, y in series.points
        )
    path = "L".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in series.points)
    out = f'<path class="line {series.look}" d="M{path}"/>'
    if series.shape:
        step = -(-len(series.points) // 16)
        for x, y in series.points[::step]:
            out += _mark(frame.x(x), frame.y(y), series.look, series.shape)
    return out


def _mark(x: float, y: float, look: str, shape: str) -> str:
    place = f'transform="translate({x:.1f} {y:.1f})"'
    return f'<path class="mark {shape} {look}" {place} d="{_SHAPES[shape]}"/>'


def _axis_y(frame: _Frame, ticks: Sequence[float]) -> str:
    out = ""
    for tick in ticks:
        y = frame.y(tick)
        out += f'<line class="grid" x1="{LEFT}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        out += f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
        out += f"{escape(short(round(tick, 10)))}</text>"
    return out


def _axis_x(frame: _Frame, whole: bool) -> str:
    floor = frame.floor
    out = f'<line class="axis" x1="{LEFT}" x2="{frame.right}" y1="{floor}" y2="{floor}"/>'
    for tick in _ticks_x(frame, whole):
        x = frame.x(tick)
        out += f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>'
        out += f'<text class="tick" x="{x:.1f}" y="{floor + 18}" text-anchor="middle">'
        out += f"{escape(short(tick))}</text>"
    return out


def _labels(frame: _Frame, x_label: str, y_label: str) -> str:
    middle = LEFT + (frame.right - LEFT) / 2
    height = TOP + (frame.floor - TOP) / 2
    return (
        f'<text class="label" x="{middle:.0f}" y="{frame.height - 8}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
        f'<text class="label" x="14" y="{height:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {height:.0f})">{escape(y_label)}</text>'
    )


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers from low to high, or a little beyond."""
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)


def _ticks_x(frame: _Frame, whole: bool) -> list[float]:
    low, high = frame.low_x, frame.high_x
    if frame.log:
        marks = [m * 10.0**p for p in range(-9, 10) for m in (1, 2, 5)]
        found = [m for m in marks if low * 0.999 <= m <= high * 1.001]
        return found if len(found) < 9 else found[::2]
    if high == low:
        return [low]
    step = _round_step((high - low) / 7)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
