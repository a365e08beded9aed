"""tab:dataset: the data sets, as the paper describes them and as they are."""

from opboost_lab.data import datasets
from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Said, Words, noted
from opboost_lab.reproduce.printed import DATASETS
from opboost_lab.reproduce.task import Json, Scope, Task

WORDS = Words("tab:dataset")


def described(name: str) -> Json:
    """Return rows, numeric and other columns of a set as our experiments use it."""
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


def _tasks(scope: Scope) -> dict[str, Task]:
    return {n: Task.of(described, name=n, cost=3.0) for n in DATASETS}


def _show(scope: Scope, found: dict[str, Json]) -> Finding:
    rows, alike = [], 0
    for name, (instances, features, task) in DATASETS.items():
        ours = found[name]
        train, test = ours["train"], ours["test"]
        printed = 1000 * float(instances.removesuffix("k"))
        alike += any(abs(n / printed - 1) <= 0.02 for n in (train, train + test))
        mine = f"{ours['numeric']}/{ours['others']}"
        rows.append((name, instances, train, test, features, mine, task, ours["task"]))
    return Finding(
        WORDS("summary"),
        said=Said(WORDS("said"), alike, len(DATASETS)),
        grids=(Grid("Data sets", WORDS.header(), tuple(rows)),),
        notes=noted("tab:dataset"),
    )


ARTEFACT = Artefact.keyed("tab:dataset", "Data sets", _tasks, _show, needs=tuple(DATASETS))
