"""complexity: the theorems on overhead, compared with measured seconds and bytes."""

from dataclasses import dataclass

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, Words, noted
from opboost_lab.reproduce.measures.growth import EPSILON, exponent, releasing, sending, training
from opboost_lab.reproduce.methods import at_level
from opboost_lab.reproduce.task import Json, Results, Scope, Task

WORDS = Words("complexity")


@dataclass(frozen=True, slots=True)
class Line:
    """How a figure grows with one size, the others fixed, and the power that a theorem states."""

    what: str
    over: str
    figure: str
    unit: str
    power: float | None
    measured: dict[int, Task]
    """The task for each size."""

    def figures(self, results: Results) -> tuple[float, ...]:
        """Return the figure at every size."""
        return tuple(float(results[t][self.figure]) for t in self.measured.values())


def _lines(scope: Scope) -> tuple[Line, ...]:
    quick = scope.quick
    repeats = 3 if quick else 7
    layers = range(1, 5 if quick else 8)
    size, base = 2**15, {"columns": 10, "trees": 20, "layers": 3}

    def drawn(n: int, r: int) -> Task:
        return Task.of(releasing, alone=True, cost=0.1, rows=n, columns=r, repeats=repeats)

    def trained(n: int, **other: int) -> Task:
        settings: dict[str, Json] = {"rows": n, **base, **other, "repeats": repeats}
        return Task.of(training, alone=True, cost=0.05 * repeats * n / size, **settings)

    def bytes_(n: int, **other: int) -> Task:
        settings: dict[str, Json] = {"rows": n, **base, **other}
        return Task.of(sending, cost=1.0, **settings)

    columns, trees = _powers(0, 3 if quick else 5), tuple(20 * k for k in _powers(0, 4))
    by_columns = {r: drawn(2**18, r) for r in columns}
    sent_columns = {r: bytes_(2**13, columns=r) for r in columns}
    rows = {n: bytes_(n) for n in _powers(12, 15 if quick else 17)}
    by_trees = {t: trained(size, trees=t) for t in trees[:: 2 if quick else 1]}
    by_nodes = {2**level - 1: trained(size, layers=level) for level in layers}
    by_layers = dict(zip(layers, by_nodes.values(), strict=True))
    sent_trees = {t: bytes_(2**13, trees=t) for t in by_trees}
    sent_nodes = {2**level - 1: bytes_(2**13, layers=level) for level in layers}
    by_rows = {n: drawn(n, 1) for n in _powers(17, 20 if quick else 22)}
    few = {n: trained(n) for n in _powers(15, 18 if quick else 20)}
    draws, fit = "feature party: drawing noise", "label party: training"
    cuts = "label party: replacing split points"
    codes, query, nodes = "traffic: codes", "traffic: split query", "nodes per tree 2^L−1"
    return (
        Line(draws, "rows N", "seconds", "s", 1.0, by_rows),
        Line(draws, "columns r", "seconds", "s", 1.0, by_columns),
        Line(fit, "rows N", "seconds", "s", 1.0, few),
        Line(fit, "trees T", "seconds", "s", 1.0, by_trees),
        Line(fit, "layers L", "seconds", "s", None, by_layers),
        Line(cuts, "trees T", "replacing", "s", 1.0, by_trees),
        Line(cuts, nodes, "replacing", "s", 1.0, by_nodes),
        Line(codes, "rows N", "codes", "B", 1.0, rows),
        Line(codes, "columns r", "codes", "B", 1.0, sent_columns),
        Line(f"{codes} at log N bits, as in the paper", "rows N", "paper codes", "B", 1.0, rows),
        Line(query, "trees T", "a", "B", 1.0, sent_trees),
        Line(query, nodes, "a", "B", 1.0, sent_nodes),
    )


def _powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(2**e for e in range(first, last + 1))


def _tasks(scope: Scope) -> list[Task]:
    return list(dict.fromkeys(t for line in _lines(scope) for t in line.measured.values()))


def _show(scope: Scope, results: Results) -> Finding:
    lines = _lines(scope)
    powers = [exponent(list(line.measured), line.figures(results)) for line in lines]
    growth = {"drawing noise": powers[0], "training": powers[2], "bytes of codes": powers[7]}
    rows: list[tuple[Cell, ...]] = []
    for line, power in zip(lines, powers, strict=True):
        first, *_, last = line.measured
        ends = line.figures(results)[:: len(line.measured) - 1]
        sizes = f"{first:,} to {last:,}"
        rows.append((f"{line.what}, over {line.over}", sizes, *ends, line.unit, line.power, power))
    draws, fit, codes = growth.values()
    level = at_level(GRID, EPSILON)
    return Finding(
        WORDS("summary", draws=draws, fit=fit, codes=codes, query=powers[10]),
        said=Said(WORDS("said"), sum(abs(power - 1) <= 0.15 for power in growth.values()), 3),
        headlines=tuple(
            Headline(f"power of N: {what}", 1.0, round(power, 3)) for what, power in growth.items()
        ),
        panels=(
            _panel("Seconds over rows", "s", [lines[0], lines[2]], results),
            _panel("Bytes over rows, ten columns", "B", [lines[7], lines[9]], results),
        ),
        grids=(
            Grid(WORDS("grown"), WORDS.header("header_grown"), tuple(rows)),
            _counted(lines[7], results),
        ),
        notes=(Note(f"Clamp-map on {GRID.L}..{GRID.R}, {level}; XGBoost."), *noted("complexity")),
    )


def _panel(title: str, unit: str, lines: list[Line], results: Results) -> Panel:
    curves = []
    for line in lines:
        sizes, figures = tuple(map(float, line.measured)), line.figures(results)
        curves.append(Curve(line.what, sizes, figures, (), "ours"))
        straight = tuple(figures[-1] * s / sizes[-1] for s in sizes)
        if line.figure != "paper codes":
            curves.append(Curve(f"{line.what}, in proportion", sizes, straight, (), "ldp"))
    return Panel(title, "rows N", unit, tuple(curves), logx=True, logy=True)


def _counted(line: Line, results: Results) -> Grid:
    rows = []
    for n, task in line.measured.items():
        f = results[task]
        ratio = f["codes"] / f["paper codes"]
        counted = f["codes"], f["theory codes"], f["paper codes"], ratio
        rows.append((n, *counted, f["theory query"], f["a"], f["cuts"]))
    header, note = WORDS.header("header_counted"), WORDS("note_counted")
    return Grid(WORDS("counted"), header, tuple(rows), 3, note)


ARTEFACT = Artefact("complexity", "Overhead compared with the theorems", _tasks, _show)
