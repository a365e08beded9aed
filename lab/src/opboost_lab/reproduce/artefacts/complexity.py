"""complexity: the theorems on overhead beside measured seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.growth import EPSILON, exponent, releasing, sending, training
from opboost_lab.reproduce.methods import at_level
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task


@dataclass(frozen=True, slots=True)
class Line:
    """One figure over one size, all other sizes fixed, and the power that a theorem gives it."""

    what: str
    over: str
    figure: str
    unit: str
    power: float | None
    sizes: tuple[int, ...]
    tasks: tuple[Task, ...]

    def measured(self, results: Results) -> tuple[float, ...]:
        """The figure at every size."""
        return tuple(float(results[t][self.figure]) for t in self.tasks)


def _lines(scope: Scope) -> tuple[Line, ...]:
    quick = scope.quick
    repeats = 3 if quick else 7
    rows = _powers(17, 20) if quick else _powers(17, 22)
    few = _powers(15, 18) if quick else _powers(15, 20)
    sent = _powers(12, 15) if quick else _powers(12, 17)
    columns = _powers(0, 3) if quick else _powers(0, 5)
    trees = (20, 80, 320) if quick else (20, 40, 80, 160, 320)
    layers = (1, 2, 3, 4) if quick else (1, 2, 3, 4, 5, 6, 7)
    size, base = 2**15, {"columns": 10, "trees": 20, "layers": 3}

    def drawn(n: int, r: int) -> Task:
        return Task.of(releasing, alone=True, cost=0.1, rows=n, columns=r, repeats=repeats)

    def trained(n: int, **other: int) -> Task:
        cost = 0.05 * repeats * n / size
        settings: dict[str, Json] = {"rows": n, **base, **other, "repeats": repeats}
        return Task.of(training, alone=True, cost=cost, **settings)

    def bytes_(n: int, **other: int) -> Task:
        settings: dict[str, Json] = {"rows": n, **base, **other}
        return Task.of(sending, cost=1.0, **settings)

    nodes = tuple(2**level - 1 for level in layers)
    return (
        Line("feature party: draws", "rows N", "seconds", "s", 1.0, rows,
             tuple(drawn(n, 1) for n in rows)),
        Line("feature party: draws", "columns r", "seconds", "s", 1.0, columns,
             tuple(drawn(2**18, r) for r in columns)),
        Line("label party: training", "rows N", "seconds", "s", 1.0, few,
             tuple(trained(n) for n in few)),
        Line("label party: training", "trees T", "seconds", "s", 1.0, trees,
             tuple(trained(size, trees=t) for t in trees)),
        Line("label party: training", "layers L", "seconds", "s", None, layers,
             tuple(trained(size, layers=level) for level in layers)),
        Line("label party: replacing cuts", "trees T", "replacing", "s", 1.0, trees,
             tuple(trained(size, trees=t) for t in trees)),
        Line("label party: replacing cuts", "nodes a tree 2^L−1", "replacing", "s", 1.0, nodes,
             tuple(trained(size, layers=level) for level in layers)),
        Line("traffic: codes", "rows N", "codes", "B", 1.0, sent,
             tuple(bytes_(n) for n in sent)),
        Line("traffic: codes", "columns r", "codes", "B", 1.0, columns,
             tuple(bytes_(2**13, columns=r) for r in columns)),
        Line("traffic: codes and log N, as in the paper", "rows N", "paper codes", "B", 1.0, sent,
             tuple(bytes_(n) for n in sent)),
        Line("traffic: split query", "trees T", "a", "B", 1.0, trees,
             tuple(bytes_(2**13, trees=t) for t in trees)),
        Line("traffic: split query", "nodes a tree 2^L−1", "a", "B", 1.0, nodes,
             tuple(bytes_(2**13, layers=level) for level in layers)),
    )  # fmt: skip


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(2**e for e in range(first, last + 1))


def _tasks(scope: Scope) -> list[Task]:
    return list(dict.fromkeys(t for line in _lines(scope) for t in line.tasks))


def _show(scope: Scope, results: Results) -> Finding:
    lines = _lines(scope)
    powers = {line: exponent(line.sizes, line.measured(results)) for line in lines}
    draws = next(p for line, p in powers.items() if line.what.startswith("feature"))
    fit = next(p for line, p in powers.items() if line.what == "label party: training")
    codes = next(p for line, p in powers.items() if line.what == "traffic: codes")
    query = next(p for line, p in powers.items() if line.what == "traffic: split query")
    rows: list[tuple[Cell, ...]] = []
    for line in lines:
        figures = line.measured(results)
        rows.append(
            (f"{line.what}, over {line.over}", f"{line.sizes[0]:,} to {line.sizes[-1]:,}",
             figures[0], figures[-1], line.unit, line.power, powers[line])
        )  # fmt: skip
    return Finding(
        summary=f"Draws grow with N to the power {draws:.2f}, training {fit:.2f}, code bytes "
        f"{codes:.2f} (the theorems: 1, 1, 1 times log N); the split query grows with T to the "
        f"power {query:.2f} only, for a cut is asked for once however many trees use it.",
        said=Said(
            "overheads grow with N to the power 1 (within 0.15)",
            sum(abs(power - 1) <= 0.15 for power in (draws, fit, codes)),
            3,
        ),
        headlines=tuple(
            Headline(f"power of N: {what}", 1.0, round(power, 3))
            for what, power in (("draws", draws), ("training", fit), ("bytes of codes", codes))
        ),
        panels=(
            _panel("Seconds over rows", "s", [lines[0], lines[2]], results),
            _panel("Bytes over rows, ten columns", "B", [lines[7], lines[9]], results),
        ),
        grids=(
            Grid(
                "Growth: the power by which each figure rises",
                ("figure, over", "sizes", "at the least", "at the most", "unit",
                 "theorem", "measured"),
                tuple(rows),
            ),
            _counted(lines[7], results),
        ),
        notes=(
            Note(f"Clamp-map on {GRID.L}..{GRID.R}, {at_level(GRID, EPSILON)}; XGBoost."),
            *noted("complexity"),
        ),
    )  # fmt: skip


def _panel(title: str, unit: str, lines: list[Line], results: Results) -> Panel:
    curves = []
    for line in lines:
        sizes, figures = tuple(map(float, line.sizes)), line.measured(results)
        curves.append(Curve(line.what, sizes, figures, (), "ours"))
        straight = tuple(figures[-1] * s / sizes[-1] for s in sizes)
        if line.figure != "paper codes":
            curves.append(Curve(f"{line.what}, in proportion", sizes, straight, (), "ldp"))
    return Panel(title, "rows N", unit, tuple(curves), logx=True, logy=True)


def _counted(line: Line, results: Results) -> Grid:
    found: list[tuple[int, Json]] = [
        (n, results[t]) for n, t in zip(line.sizes, line.tasks, strict=True)
    ]
    return Grid(
        "Bytes of ten columns by rows: sent, and counted out",
        ("rows", "codes, sent", "⌈log₂ cells⌉ bits", "log₂ N bits (paper)", "sent / paper",
         "query and answer at most", "query, sent", "cuts"),
        tuple(
            (n, f["codes"], f["theory codes"], f["paper codes"], f["codes"] / f["paper codes"],
             f["theory query"], f["a"], f["cuts"])
            for n, f in found
        ),
        3,
        "The query at most: every inner node of every tree by itself, as the theorem counts.",
    )  # fmt: skip


ARTEFACT = Artefact("complexity", "The theorems on overhead, measured", _tasks, _show)
