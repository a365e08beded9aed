"""The models of one data set and booster: their tasks, and their scores once they are run."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from opboost_lab.accuracy import GRID
from opboost_lab.record_totals import Way
from opboost_lab.reproduce.charts import Curve
from opboost_lab.reproduce.finding import Note
from opboost_lab.reproduce.measures.learning import at_record_total, learned, unprotected
from opboost_lab.reproduce.methods import Method, level_notes
from opboost_lab.reproduce.source import Source, sources
from opboost_lab.reproduce.task import Json, Results, Scope, Task

Booster = Literal["hist-gbdt", "stumps", "xgboost", "deep"]
Mapping = Literal["paper", "cells"]

SECONDS = {
    "Adult": (1.4, 0.2, 7.0, 1.5),
    "Pen-digits": (0.5, 0.3, 8.0, 2.0),
    "Powerplant": (0.04, 0.03, 0.6, 0.4),
    "CASP": (0.3, 0.06, 1.3, 1.1),
    "Industrial": (15.0, 0.5, 70.0, 6.0),
}
"""Seconds of a GBDT model on all rows and on those of a quick run, without and with denoising."""
SPEED = {"hist-gbdt": 1.0, "stumps": 0.7, "xgboost": 0.5, "deep": 4.0}


@dataclass(frozen=True, slots=True)
class Line:
    """A method and the mapping to the grid: the paper's (docs/errata.md, 23), or equal cells.

    FederBoost has its own cells, at the rows' quantiles, and uses ``"cells"``.
    """

    method: Method
    mapping: Mapping = "paper"

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        quantiles = self.method.family == "FederBoost"
        return self.method.label + (
            ", equal cells" if self.mapping == "cells" and not quantiles else ""
        )


@dataclass(frozen=True, slots=True)
class Plain:
    """Training without noise: on raw values, or on the cells of a mapping."""

    mapping: Mapping | None = None

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        cells = ", equal cells" if self.mapping == "cells" else ""
        return f"plain, on the grid{cells}" if self.mapping else "plain, raw"


RAW, ON_GRID, ON_CELLS = Plain(), Plain("paper"), Plain("cells")
BEST = Line(Method("Clamp-map", denoise=True), "cells")
"""What we would use: Clamp-map on equal cells, denoised if that helps."""


@dataclass(frozen=True, slots=True)
class Study:
    """The models of one source and booster, and their results once they exist."""

    source: Source
    scope: Scope
    booster: Booster = "xgboost"
    results: Results = field(default_factory=dict, compare=False, repr=False)

    @property
    def seeds(self) -> range:
        """The seeds of every line; they set split and noise, so that lines are paired.

        A quick run on several classes has only one.
        """
        if self.scope.quick and self.scope.seeds is None and self.source.kind == "multiclass":
            return range(1)
        return self.scope.repeats()

    def repeated(self) -> str:
        """Return the number of seeds in words."""
        count = len(self.seeds)
        return f"{count} seed{'s' if count > 1 else ''}"

    def task(self, line: Line | Plain, epsilon: float, seed: int, split: Json = None) -> Task:
        """Return the task of a model on noisy rows, or on clean rows, which have no level."""
        about: Json = {"source": self.source.as_json(), "seed": seed, "booster": self.booster}
        if isinstance(line, Plain):
            about |= {"on_grid": line.mapping is not None, "mapping": line.mapping or "paper"}
            return Task.of(unprotected, cost=self._cost(False), **about)
        about |= {"method": line.method.as_json(), "mapping": line.mapping, "epsilon": epsilon}
        about |= {} if split is None else {"split": split}
        return Task.of(learned, cost=self._cost(line.method.denoise), **about)

    def tasks(
        self, lines: Iterable[Line | Plain], epsilons: Sequence[float], split: Json = None
    ) -> list[Task]:
        """Return the tasks of all models of some lines, each once."""
        cases = product(lines, epsilons, self.seeds)
        return list(dict.fromkeys(self.task(line, e, s, split) for line, e, s in cases))

    def record_task(self, way: Way, total: float, seed: int) -> Task:
        """Return the task of a model of rows whose whole record costs ``total``."""
        return Task.of(
            at_record_total,
            cost=self._cost(way == "record"),
            source=self.source.as_json(),
            total=total,
            way=way,
            seed=seed,
            booster=self.booster,
        )

    def scores(self, tasks: Iterable[Task], measure: str = "") -> list[float]:
        """Return the scores of some models, by the source's measure or another one."""
        return [self.results[t]["scores"][measure or self.source.measure] for t in tasks]

    def values(
        self, line: Line | Plain, epsilon: float = 0.0, measure: str = "", split: Json = None
    ) -> list[float]:
        """Return a line's scores at one level, one per seed."""
        return self.scores((self.task(line, epsilon, s, split) for s in self.seeds), measure)

    def mean(
        self, line: Line | Plain, epsilon: float = 0.0, measure: str = "", split: Json = None
    ) -> float:
        """Return a line's mean score at one level."""
        return statistics.fmean(self.values(line, epsilon, measure, split))

    def curve(
        self, line: Line | Plain, epsilons: Sequence[float], measure: str = "", label: str = ""
    ) -> Curve:
        """Return the curve of a line by ε; without noise, the curve is level."""
        if isinstance(line, Plain):
            return Curve.level(line.label, epsilons, self.mean(line, measure=measure))
        points = {e: self.values(line, e, measure) for e in epsilons}
        return Curve.of(label or line.label, points, line.method.kind)

    def _cost(self, denoise: bool) -> float:
        seconds = SECONDS.get(self.source.name, (0.5, 0.2, 3.0, 2.0))
        return SPEED[self.booster] * seconds[2 * denoise + bool(self.source.rows)]


def studies(
    sets: tuple[str, ...], scope: Scope, booster: Booster, results: Results | None = None
) -> list[Study]:
    """Return the studies of some sets with one booster."""
    return [Study(source, scope, booster, results or {}) for source in sources(sets, scope)]


def notes_on(chosen: Iterable[Study], notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes on the rows of studies, on the artefact, and on levels."""
    on_rows = dict.fromkeys(note for study in chosen for note in study.source.notes())
    return (*on_rows, *notes, *level_notes(GRID))


def level_heads(epsilons: Sequence[float]) -> tuple[str, ...]:
    """Return column heads: ε per cell, and end to end."""
    return tuple(f"ε={e:g} (total {e * GRID.span:g})" for e in epsilons)
