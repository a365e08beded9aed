"""fig:rq_uniform: range queries on synthetic values."""

from __future__ import annotations

from opboost_lab.reproduce.artefacts import range_figures as figures
from opboost_lab.reproduce.columns import NORMAL, UNIFORM
from opboost_lab.reproduce.finding import Artefact, Finding, Note
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

ROWS = 100_000


def _columns(scope: Scope) -> list[figures.Column]:
    names = [UNIFORM] if scope.quick else [UNIFORM, NORMAL]
    return [figures.Column(n, ROWS) for n in names]


def _tasks(scope: Scope) -> list[Task]:
    return figures.tasks(scope, _columns(scope))


def _show(scope: Scope, results: Results) -> Finding:
    notes = (
        Note(
            f"The authors' set was not released; these are {ROWS:,} values drawn evenly from "
            "1..1024, and, in a full run, from a normal law about the middle."
        ),
        Note("A uniform column is nearly its own blur, so counts of noisy values err little."),
    )
    return figures.show(scope, results, _columns(scope), notes)


ARTEFACT = Artefact("fig:rq_uniform", "Range queries on synthetic values", _tasks, _show)
