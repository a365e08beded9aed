"""tab-computation-ope: desensitising compared with order-preserving encryption."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.speed_of_release import desensitising, encrypting
from opboost_lab.reproduce.methods import Method, adj_maps, at_level
from opboost_lab.reproduce.printed import COMPUTATION_OPE
from opboost_lab.reproduce.task import Json, Scope, Task

COUNT = 100_000
DOMAIN = Domain(1, 100)
EPSILONS = (0.08, 1.28)
GLOBAL, CLAMP = Method("Global-map"), Method("Clamp-map")
METHODS = (
    GLOBAL,
    Method("Local-map", theta=4),
    Method("Local-map", theta=10),
    *adj_maps((4, 10), (0.4, 1, 10)),
    CLAMP,
)
ROW_BY_ROW = "pyope, every row"
ONCE = "pyope, distinct values once"
WORDS = Words("tab-computation-ope")


def _tasks(scope: Scope) -> dict[object, Task]:
    quick = scope.quick
    timed: Json = {"alone": True, "count": COUNT}
    cipher: Json = {**timed, "sample": 300 if quick else 5_000}
    noise: Json = {**timed, "cost": 1.0, "repeats": 5 if quick else 50}
    return {
        ROW_BY_ROW: Task.of(encrypting, cost=0.5 if quick else 5.0, memo=False, **cipher),
        ONCE: Task.of(encrypting, cost=0.5, memo=True, **cipher),
        **{
            (m, e): Task.of(desensitising, method=m.as_json(), epsilon=e, **noise)
            for m in METHODS
            for e in EPSILONS
        },
    }


def _show(scope: Scope, found: dict[object, Json]) -> Finding:
    slow, once = (found[cipher]["seconds"] for cipher in (ROW_BY_ROW, ONCE))
    seconds = {(m, e): found[m, e]["seconds"] for m in METHODS for e in EPSILONS}
    first = min(slow / found[key]["first"] for key in seconds)
    times, against = ([cipher / s for s in seconds.values()] for cipher in (slow, once))
    of_paper = COMPUTATION_OPE["OPE"][0]
    paper = [of_paper / s for row, r in COMPUTATION_OPE.items() if row != "OPE" for s in r]
    least, low = min(times), min(paper)

    def row(name: str, key: object, printed: float | None) -> tuple[Cell, ...]:
        took = found[key]["seconds"]
        ratio = took / printed if printed else None
        return name, printed, took, ratio, found[key].get("first"), slow / took, once / took

    rows = [row(ROW_BY_ROW, ROW_BY_ROW, of_paper), row(ONCE, ONCE, None)]
    for method in METHODS:
        printed = COMPUTATION_OPE.get(method.label, (None, None))
        rows += [
            row(f"{method.label}, {at_level(DOMAIN, e)}", (method, e), known)
            for e, known in zip(EPSILONS, printed, strict=True)
        ]
    of_global = COMPUTATION_OPE["Global-map"][0], seconds[GLOBAL, 0.08], seconds[CLAMP, 0.08]
    return Finding(
        WORDS(
            "summary",
            least=least,
            low=low,
            high=max(paper),
            slowest=min(against),
            fastest=max(against),
        ),
        said=Said(WORDS("said", low=low), sum(t >= low for t in times), len(times)),
        short=WORDS("short", least=least),
        headlines=(
            Headline("100,000 values encrypted, every row, s", of_paper, slow),
            Headline(f"100,000 values, Global-map, {at_level(DOMAIN, 0.08)}, s", *of_global),
            Headline("times as fast as pyope, slowest method", low, least),
        ),
        grids=(
            Grid(
                "100,000 uniform values of 1..100, processor time in seconds",
                WORDS.header(),
                tuple(rows),
                wide=True,
                note=WORDS("note", timed=found[ROW_BY_ROW]["timed"], first=first),
            ),
        ),
        notes=noted("tab-computation-ope"),
    )


ARTEFACT = Artefact.keyed(
    "tab-computation-ope", "Desensitising compared with order-preserving encryption", _tasks, _show
)
