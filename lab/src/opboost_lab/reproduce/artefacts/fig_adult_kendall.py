"""fig:adult_kendall: the order that each mechanism keeps among the ages of Adult."""

from __future__ import annotations

from opboost_lab.reproduce.artefacts import kendall_figures as figures
from opboost_lab.reproduce.columns import AGE, AGE_ALIKE
from opboost_lab.reproduce.finding import Artefact, Finding, Note
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

ROWS = 32_561


def _column(scope: Scope) -> figures.Column:
    return figures.Column(AGE_ALIKE if scope.bundled else AGE, ROWS)


def _tasks(scope: Scope) -> list[Task]:
    return figures.tasks(scope, _column(scope))


def _show(scope: Scope, results: Results) -> Finding:
    notes: tuple[Note, ...] = (
        Note("Ages go to cells by the paper's mapping B: cell 1 holds age 17 alone.", 23),
    )
    if scope.bundled:
        notes += (Note("Adult is not here: ages drawn from a gamma law stand in for it."),)
    return figures.show(scope, results, _column(scope), notes)


ARTEFACT = Artefact(
    "fig:adult_kendall", "Order kept among the ages of Adult", _tasks, _show, needs=("Adult",)
)
