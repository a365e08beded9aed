"""Is a model of desensitised rows ever better than plain?  The paper thinks so; tested in pairs."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

from scipy.stats import t as student

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP, GLOBAL, LOCALS
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.methods import at_level, level_line, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.source import Source, sources
from opboost_lab.reproduce.study import Booster, Line, Study
from opboost_lab.reproduce.task import Results, Task

SETS = ("Adult", "Pen-digits", "Powerplant", "CASP")
QUICK_SETS = ("Adult", "CASP")
LINES = (LOCALS[2], GLOBAL, CLAMP)
LEVELS = (0.64, 1.28, 2.56, 5.12)
QUICK_LEVELS = (1.28, 5.12)
BOOSTERS: dict[Booster, str] = {"xgboost": "80 trees of depth 3", "deep": "300 trees of depth 8"}
DEEP_ROWS = 3000
"""A deep booster learns these rows by heart: if noise can help a booster, it is there."""
DOUBT = 0.05
"""The chance, over all comparisons, of calling one better that is not."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A line against a plain model, seed by seed, as gains in the set's measure."""

    study: Study
    line: Line
    epsilon: float
    against: str
    gains: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean gain; above zero the desensitised model is better."""
        return statistics.fmean(self.gains)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if len(self.gains) < 2:
            return math.inf
        return statistics.stdev(self.gains) / math.sqrt(len(self.gains))

    @property
    def p(self) -> float:
        """The chance of a gain so large if there were none (one-sided paired t-test).

        Gains that are all alike say no more than their sign does.
        """
        if len(self.gains) < 2 or self.error == 0:
            return 0.5 ** len(self.gains) if self.mean > 0 else 1.0
        return float(student.sf(self.mean / self.error, len(self.gains) - 1))


def _studies(scope: Scope, results: Results | None = None) -> list[Study]:
    names = QUICK_SETS if scope.quick else SETS
    return [
        Study(_of(source, booster), scope, booster, results or {})
        for source in sources(names, scope, anew=True)
        for booster in BOOSTERS
    ]


def _of(source: Source, booster: str) -> Source:
    if booster == "deep":
        return replace(source, rows=min(source.rows or DEEP_ROWS, DEEP_ROWS))
    return source


def _levels(scope: Scope) -> tuple[float, ...]:
    return QUICK_LEVELS if scope.quick else LEVELS


def _tasks(scope: Scope) -> list[Task]:
    return [
        task
        for study in _studies(scope)
        for task in (*study.plain_tasks("paper"), *study.tasks(LINES, _levels(scope)))
    ]


def pairs(scope: Scope, results: Results) -> list[Pair]:
    """Every comparison with plain training on raw values, and on the grid."""
    found = []
    for study in _studies(scope, results):
        bases = {"raw": study.plain(False), "grid": study.plain(True)}
        for line in LINES:
            for e in _levels(scope):
                values = study.values(line, e)
                for against, base in bases.items():
                    gains = tuple(
                        study.source.better * (v - b) for v, b in zip(values, base, strict=True)
                    )
                    found.append(Pair(study, line, e, against, gains))
    return found


def surely(found: list[Pair]) -> list[Pair]:
    """The pairs that are better beyond doubt, by Holm's step-down over all of them."""
    ordered = sorted(found, key=lambda pair: pair.p)
    for i, pair in enumerate(ordered):
        if pair.p > DOUBT / (len(ordered) - i):
            return ordered[:i]
    return ordered


def _show(scope: Scope, results: Results) -> Finding:
    found = pairs(scope, results)
    sure = surely(found)
    better = [p for p in found if p.mean > 0]
    studies = _studies(scope, results)
    panels = tuple(_panel(study, found, scope) for study in studies)
    rows: list[tuple[Cell, ...]] = [
        (
            f"{_name(p.study)}, {p.line.label}, {at_level(GRID, p.epsilon)}",
            p.against,
            p.mean,
            p.error if math.isfinite(p.error) else None,
            f"{sum(g > 0 for g in p.gains)} of {len(p.gains)}",
            p.p,
            "yes" if p in sure else "no",
        )
        for p in sorted(found, key=lambda pair: pair.p)
    ]
    return Finding(
        _words(found, better, sure),
        _headlines(studies, sure),
        panels,
        (
            Grid(
                "Desensitised against plain, the surest first",
                ("model", "plain", "mean gain", "its error", "seeds won", "p", "sure"),
                tuple(rows),
            ),
        ),
        (
            *dict.fromkeys(n for s in studies for n in s.source.notes()),
            *noted("regularisation"),
            Note(level_line(GRID)),
        ),
        said=Said(
            "desensitised rows can make a better model than raw ones",
            sum(p.against == "raw" for p in sure),
            sum(p.against == "raw" for p in found),
        ),
    )  # fmt: skip


def _words(found: list[Pair], better: list[Pair], sure: list[Pair]) -> str:
    raw = [p for p in found if p.against == "raw"]
    sure_raw = [p for p in sure if p.against == "raw"]
    shallow = [p for p in sure_raw if p.study.booster == "xgboost"]
    text = (
        f"The paper thinks that noise may regularise. Of {len(raw)} paired comparisons with plain "
        f"training on raw values, {sum(p.against == 'raw' for p in better)} have a mean above "
        f"plain and {len(sure_raw)} surely so ({len(shallow)} with the paper's trees, "
        f"{len(sure_raw) - len(shallow)} with deep ones that learn few rows by heart)"
    )
    best = max(raw, key=lambda p: p.mean / abs(p.error) if p.error else 0.0)
    gain = f"; the most hopeful is {_name(best.study)}, {best.line.label}, ε = {best.epsilon:g}: "
    return f"{text}{gain}{best.mean:+.4g} {best.study.source.measure} (error {best.error:.2g})."


def _headlines(studies: list[Study], sure: list[Pair]) -> tuple[Headline, ...]:
    heads = [Headline("comparisons in which noise is surely better than plain", None, len(sure))]
    for study in studies:
        if study.source.name == "Adult" and not study.source.stand_in and not heads[1:]:
            values = study.values(LOCALS[2], 1.28)
            both = zip(values, study.plain(False), strict=True)
            share = statistics.fmean(v / b for v, b in both)
            heads.append(
                Headline(
                    f"Adult, XGBoost, Local-map θ=2, {at_level(GRID, 1.28)}: AUC over plain",
                    1.0003,
                    share,
                )
            )
    return tuple(heads)


def _name(study: Study) -> str:
    return f"{study.source.title}, {BOOSTERS[study.booster]}"


def _panel(study: Study, found: list[Pair], scope: Scope) -> Panel:
    levels = _levels(scope)
    curves = []
    for line in LINES:
        mine = [p for p in found if p.study == study and p.line == line and p.against == "raw"]
        curves.append(
            Curve(
                line.label,
                levels,
                tuple(p.mean for p in mine),
                tuple(p.error if math.isfinite(p.error) else 0.0 for p in mine),
                line.method.kind,
            )
        )
    curves.append(Curve("plain, raw", levels, (0.0,) * len(levels), (), "plain"))
    return Panel(
        _name(study), unit_axis(GRID), f"gain in {study.source.measure}", tuple(curves), logx=True
    )


ARTEFACT = Artefact("regularisation", "Better than plain?", _tasks, _show, SETS, learning=True)
