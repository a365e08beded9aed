"""fig:rq_salaries: range queries on the salaries of San Francisco."""

from __future__ import annotations

from opboost_lab.data import datasets
from opboost_lab.reproduce.artefacts import range_figures as figures
from opboost_lab.reproduce.columns import SALARIES, SALARIES_ALIKE
from opboost_lab.reproduce.finding import Artefact, Finding, Note
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

ROWS = 148_654


def _made_up(scope: Scope) -> bool:
    """Salaries need an account, so they may be missing where all else is here."""
    return scope.bundled or (scope.quick and not datasets.has("sf_salaries_noname"))


def _columns(scope: Scope) -> list[figures.Column]:
    return [figures.Column(SALARIES_ALIKE if _made_up(scope) else SALARIES, ROWS)]


def _tasks(scope: Scope) -> list[Task]:
    return figures.tasks(scope, _columns(scope))


def _show(scope: Scope, results: Results) -> Finding:
    notes: tuple[Note, ...] = (
        Note(
            "The paper does not say which column it takes, nor how it is mapped. Here: TotalPay, "
            "between the declared bounds 0 and 567,595.43, by the paper's mapping B on 1..1024.",
            23,
        ),
    )
    if _made_up(scope):
        notes += (
            Note("Salaries are not here: two log-normal humps of made-up pay stand in for them."),
        )
    return figures.show(scope, results, _columns(scope), notes)


ARTEFACT = Artefact(
    "fig:rq_salaries", "Range queries on salaries", _tasks, _show, needs=("Salaries",)
)
