"""tab:dataset: the data sets, as described and as they are."""

from __future__ import annotations

from opboost_lab.data import datasets
from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Note, Said
from opboost_lab.reproduce.printed import DATASETS
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task


def described(name: str) -> Json:
    """Rows, numeric and other columns of a set as our experiments use it."""
    data = (datasets.ALL | datasets.STAND_INS)[name]()
    columns = [c for c in data.train.column_names if c != data.label]
    numeric = len(data.bounds)
    return {
        "train": data.train.num_rows,
        "test": data.test.num_rows,
        "numeric": numeric,
        "others": len(columns) - numeric,
        "task": data.task,
    }


def _tasks(scope: Scope) -> list[Task]:
    return [Task.of(described, name=n, cost=3.0) for n in DATASETS]


def _show(scope: Scope, results: Results) -> Finding:
    rows, alike = [], 0
    for name, (instances, features, task) in DATASETS.items():
        ours = results[Task.of(described, name=name)]
        printed = 1000 * float(instances.removesuffix("k"))
        whole = (ours["train"], ours["train"] + ours["test"])
        alike += any(abs(n / printed - 1) <= 0.02 for n in whole)
        mine = f"{ours['numeric']}/{ours['others']}"
        rows.append(
            (name, instances, ours["train"], ours["test"], features, mine, task, ours["task"])
        )
    header = (
        "set", "rows (paper)", "train", "test", "num./enum. (paper)", "num./enum.", "task (paper)",
        "task",
    )  # fmt: skip
    return Finding(
        summary="Four sets are the paper's; the industrial one was never released, and flights of "
        "2013 stand in for it.",
        said=Said("the sets have as many rows as printed", alike, len(DATASETS)),
        grids=(Grid("Data sets", header, tuple(rows)),),
        notes=(
            Note("Adult has five numeric columns at Party B: the paper's own traffic says so.", 16),
        ),
    )


ARTEFACT = Artefact("tab:dataset", "Data sets", _tasks, _show, needs=tuple(DATASETS))
