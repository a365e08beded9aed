"""Test in pairs whether models of desensitised rows beat plain ones, as the paper suggests."""

import math
import statistics
from dataclasses import dataclass, replace

from scipy.stats import t as student

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP, GLOBAL, LOCALS
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import at_level, unit_axis
from opboost_lab.reproduce.source import sources
from opboost_lab.reproduce.study import ON_GRID, RAW, Booster, Line, Study, notes_on
from opboost_lab.reproduce.task import Results, Scope, Task

SETS = ("Adult", "Pen-digits", "Powerplant", "CASP")
QUICK_SETS = ("Adult", "CASP")
LINES = (LOCALS[2], GLOBAL, CLAMP)
LEVELS = (0.64, 1.28, 2.56, 5.12)
QUICK_LEVELS = (1.28, 5.12)
BOOSTERS: dict[Booster, str] = {"xgboost": "80 trees of depth 3", "deep": "300 trees of depth 8"}
WORDS = Words("regularisation")
DEEP_ROWS = 3000
"""A deep booster memorises this many rows: if noise can help any booster, then this one."""
DOUBT = 0.05
"""The chance, over all comparisons, of wrongly calling a model better."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The gains of a line over a plain model in the set's measure, one per seed."""

    study: Study
    line: Line
    epsilon: float
    against: str
    gains: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean gain; above zero, the desensitised model is better."""
        return statistics.fmean(self.gains)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if len(self.gains) < 2:
            return math.inf
        return statistics.stdev(self.gains) / math.sqrt(len(self.gains))

    @property
    def p(self) -> float:
        """The p-value of a one-sided paired t-test; of equal gains, only the sign counts."""
        if len(self.gains) < 2 or self.error == 0:
            return 0.5 ** len(self.gains) if self.mean > 0 else 1.0
        return float(student.sf(self.mean / self.error, len(self.gains) - 1))


def _studies(scope: Scope, results: Results | None = None) -> list[Study]:
    found = []
    for source in sources(QUICK_SETS if scope.quick else SETS, scope, anew=True):
        few = replace(source, rows=min(source.rows or DEEP_ROWS, DEEP_ROWS))
        found.append(Study(source, scope, "xgboost", results or {}))
        found.append(Study(few, scope, "deep", results or {}))
    return found


def _levels(scope: Scope) -> tuple[float, ...]:
    return QUICK_LEVELS if scope.quick else LEVELS


def _tasks(scope: Scope) -> list[Task]:
    lines, levels = (RAW, ON_GRID, *LINES), _levels(scope)
    return [task for study in _studies(scope) for task in study.tasks(lines, levels)]


def pairs(scope: Scope, results: Results) -> list[Pair]:
    """Return every comparison with plain training on raw values, and on the grid."""
    found = []
    for study in _studies(scope, results):
        bases = {"raw": study.values(RAW), "grid": study.values(ON_GRID)}
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
    """Return the pairs that are significantly better, by Holm's step-down over all of them."""
    ordered = sorted(found, key=lambda pair: pair.p)
    for i, pair in enumerate(ordered):
        if pair.p > DOUBT / (len(ordered) - i):
            return ordered[:i]
    return ordered


def _show(scope: Scope, results: Results) -> Finding:
    found, chosen = pairs(scope, results), _studies(scope, results)
    sure = surely(found)
    raw, sure_raw = ([p for p in some if p.against == "raw"] for some in (found, sure))
    rows: list[tuple[Cell, ...]] = []
    for p in sorted(found, key=lambda pair: pair.p):
        name = f"{_name(p.study)}, {p.line.label}, {at_level(GRID, p.epsilon)}"
        error, won = p.error if math.isfinite(p.error) else None, sum(g > 0 for g in p.gains)
        won_of, clear = f"{won} of {len(p.gains)}", "yes" if p in sure else "no"
        rows.append((name, p.against, p.mean, error, won_of, p.p, clear))
    best = max(raw, key=lambda p: p.mean / abs(p.error) if p.error else 0.0)
    shallow = sum(p.study.booster == "xgboost" for p in sure_raw)
    return Finding(
        WORDS(
            "summary",
            raw=len(raw),
            above=sum(p.mean > 0 for p in raw),
            sure=len(sure_raw),
            shallow=shallow,
            deep=len(sure_raw) - shallow,
            name=_name(best.study),
            line=best.line.label,
            epsilon=best.epsilon,
            gain=best.mean,
            measure=best.study.source.measure,
            error=best.error,
        ),
        _headlines(chosen, sure),
        tuple(_panel(study, raw, scope) for study in chosen),
        (Grid(WORDS("table"), WORDS.header(), tuple(rows)),),
        notes_on(chosen, noted("regularisation")),
        said=Said(WORDS("said"), len(sure_raw), len(raw)),
    )


def _headlines(chosen: list[Study], sure: list[Pair]) -> tuple[Headline, ...]:
    heads = [Headline(WORDS("headline"), None, len(sure))]
    for study in chosen:
        if study.source.name == "Adult" and not study.source.stand_in and not heads[1:]:
            both = zip(study.values(LOCALS[2], 1.28), study.values(RAW), strict=True)
            what = f"Adult, XGBoost, Local-map θ=2, {at_level(GRID, 1.28)}: AUC over plain"
            heads.append(Headline(what, 1.0003, statistics.fmean(v / b for v, b in both)))
    return tuple(heads)


def _name(study: Study) -> str:
    return f"{study.source.title}, {BOOSTERS[study.booster]}"


def _panel(study: Study, raw: list[Pair], scope: Scope) -> Panel:
    levels = _levels(scope)
    curves = []
    for line in LINES:
        mine = [p for p in raw if p.study == study and p.line == line]
        errors = tuple(p.error if math.isfinite(p.error) else 0.0 for p in mine)
        means = tuple(p.mean for p in mine)
        curves.append(Curve(line.label, levels, means, errors, line.method.kind))
    curves.append(Curve.level("plain, raw", levels, 0.0))
    gain = f"gain in {study.source.measure}"
    return Panel(_name(study), unit_axis(GRID), gain, tuple(curves), logx=True)


ARTEFACT = Artefact("regularisation", "Noise as regularisation", _tasks, _show, SETS, learning=True)
