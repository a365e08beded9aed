"""tab-computation-ope: desensitising beside order-preserving encryption."""

from __future__ import annotations

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, noted
from opboost_lab.reproduce.measures.speed_of_release import desensitising, encrypting
from opboost_lab.reproduce.methods import Method, adj_maps, at_level
from opboost_lab.reproduce.printed import COMPUTATION_OPE
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

COUNT = 100_000
DOMAIN = Domain(1, 100)
EPSILONS = (0.08, 1.28)
CLAMP = Method("Clamp-map")
METHODS = (
    Method("Global-map"),
    Method("Local-map", theta=4),
    Method("Local-map", theta=10),
    *adj_maps((4, 10), (0.4, 1, 10)),
    CLAMP,
)
ROW_BY_ROW = "pyope, every row"
ONCE = "pyope, distinct values once"


def _cipher(scope: Scope, memo: bool) -> Task:
    sample = 300 if scope.quick else 5_000
    cost = 0.5 if memo or scope.quick else 5.0
    return Task.of(encrypting, alone=True, cost=cost, count=COUNT, sample=sample, memo=memo)


def _noise(scope: Scope, method: Method, epsilon: float) -> Task:
    repeats = 5 if scope.quick else 50
    return Task.of(
        desensitising,
        alone=True,
        cost=1.0,
        method=method.as_json(),
        epsilon=epsilon,
        count=COUNT,
        repeats=repeats,
    )


def _tasks(scope: Scope) -> list[Task]:
    noise = [_noise(scope, m, e) for m in METHODS for e in EPSILONS]
    return [_cipher(scope, False), _cipher(scope, True), *noise]


def _show(scope: Scope, results: Results) -> Finding:
    slow, once = results[_cipher(scope, False)], results[_cipher(scope, True)]
    found = {(m, e): results[_noise(scope, m, e)] for m in METHODS for e in EPSILONS}
    least = min(slow["seconds"] / f["seconds"] for f in found.values())
    first = min(slow["seconds"] / f["first"] for f in found.values())
    paper = [COMPUTATION_OPE["OPE"][0] / s for k, r in COMPUTATION_OPE.items() if k != "OPE"
             for s in r]  # fmt: skip
    rows = [
        _row(ROW_BY_ROW, COMPUTATION_OPE["OPE"][0], slow, slow, once),
        _row(ONCE, None, once, slow, once),
    ]
    for method in METHODS:
        printed = COMPUTATION_OPE.get(method.label)
        rows += [
            _row(
                f"{method.label}, {at_level(DOMAIN, e)}",
                printed and printed[i],
                found[method, e],
                slow,
                once,
            )
            for i, e in enumerate(EPSILONS)
        ]
    header = (
        "method", "paper, s", "ours, s", "ours / paper", "first column, s",
        "× pyope every row", "× pyope once",
    )  # fmt: skip
    return Finding(
        summary=f"Desensitising is at least {least:,.0f} times as fast as encrypting every row "
        f"(the paper: {min(paper):.0f} to {max(paper):.0f} times); against a cipher that encrypts "
        f"each of the 100 values once, {_against(found, once)}.",
        said=Said(
            f"desensitising is {min(paper):.0f} times as fast as encrypting, at least",
            sum(slow["seconds"] / f["seconds"] >= min(paper) for f in found.values()),
            len(found),
        ),
        short=f"Desensitising takes 1/{least:,.0f} of the time of order-preserving encryption, row "
        "by row (pyope).",
        headlines=(
            Headline(
                "100,000 values encrypted, every row, s",
                COMPUTATION_OPE["OPE"][0],
                slow["seconds"],
                better="lower",
            ),
            Headline(
                f"100,000 values, Global-map, {at_level(DOMAIN, 0.08)}, s",
                COMPUTATION_OPE["Global-map"][0],
                found[METHODS[0], 0.08]["seconds"],
                best=found[CLAMP, 0.08]["seconds"],
                better="lower",
            ),
            Headline("slowest method: times as fast as pyope", min(paper), least, better="higher"),
        ),
        grids=(
            Grid(
                "100,000 uniform values of 1..100, seconds of the processor",
                header,
                tuple(rows),
                digits=4,
                wide=True,
                note=f"pyope every row: {slow['timed']:,} values were timed and scaled up. First "
                "column: the exact table of the law is built too, once for all columns of a grid "
                f"and level; even so the slowest is {first:,.0f} times as fast as pyope.",
            ),
        ),
        notes=(*noted("tab-computation-ope"),),
    )


def _row(name: str, printed: float | None, found: Json, slow: Json, once: Json) -> tuple[Cell, ...]:
    seconds = found["seconds"]
    return (
        name,
        printed,
        seconds,
        seconds / printed if printed else None,
        found.get("first"),
        slow["seconds"] / seconds,
        once["seconds"] / seconds,
    )


def _against(found: dict[tuple[Method, float], Json], once: Json) -> str:
    times = [once["seconds"] / f["seconds"] for f in found.values()]
    return f"it is {min(times):.1f} to {max(times):.1f} times as fast"


ARTEFACT = Artefact(
    "tab-computation-ope", "Desensitising beside order-preserving encryption", _tasks, _show
)
