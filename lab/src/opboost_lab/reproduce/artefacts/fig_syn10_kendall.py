"""fig:syn10_kendall: the order that each mechanism keeps among 10,000 uniform values."""

from __future__ import annotations

from opboost_lab.reproduce.artefacts import kendall_figures as figures
from opboost_lab.reproduce.columns import UNIFORM
from opboost_lab.reproduce.finding import Artefact, Finding, Note
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

COLUMN = figures.Column(UNIFORM, 10_000)


def _tasks(scope: Scope) -> list[Task]:
    return figures.tasks(scope, COLUMN)


def _show(scope: Scope, results: Results) -> Finding:
    note = Note("The authors' values were not released; these are drawn evenly from 1..10.")
    return figures.show(scope, results, COLUMN, (note,))


ARTEFACT = Artefact("fig:syn10_kendall", "Order kept among 10,000 uniform values", _tasks, _show)
