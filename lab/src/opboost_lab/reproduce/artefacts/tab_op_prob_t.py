"""tab:op-prob-t: the theorems' lower bounds on the chance that order is kept, by distance."""

from __future__ import annotations

from opboost.grid import Domain
from opboost.mechanisms import AdjMap, ClampMap, GlobalMap, LocalMap, Mechanism, RandomizedResponse
from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.methods import at_level
from opboost_lab.reproduce.printed import OP_PROB_T
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

DOMAIN = Domain(1, 100)
EPSILON = 0.1
THETA = 10
DISTANCES = tuple(range(5, 100, 10))


def methods() -> dict[str, Mechanism]:
    """The rows of the table by their printed names, and Global-map and Clamp-map."""
    return {
        "GRR ε": RandomizedResponse(DOMAIN, EPSILON),
        "GRR θε": RandomizedResponse(DOMAIN, THETA * EPSILON),
        "Local-map": LocalMap(DOMAIN, epsilon=EPSILON, theta=THETA),
        **{
            f"Adj-map α={alpha:g}": AdjMap(DOMAIN, EPSILON, theta=THETA, alpha=alpha)
            for alpha in (0.2, 0.5, 1, 2, 5)
        },
        "Global-map": GlobalMap(DOMAIN, EPSILON),
        "Clamp-map": ClampMap(DOMAIN, EPSILON),
    }


def gammas(method: str) -> Json:
    """γ at every distance: as printed, the theorem's bound, and the exact minimum."""
    mechanism = methods()[method]
    kinds = ["exact"] if method == "Clamp-map" else ["bound", "exact"]
    if method in OP_PROB_T:
        kinds.append("as_printed")
    return {k: [mechanism.gamma(t, k) for t in DISTANCES] for k in kinds}  # type: ignore[arg-type]


def _tasks(scope: Scope) -> list[Task]:
    return [Task.of(gammas, method=m) for m in methods()]


def _show(scope: Scope, results: Results) -> Finding:
    found = {m: results[Task.of(gammas, method=m)] for m in methods()}
    same = sum(
        round(ours, 4) == printed
        for m, row in OP_PROB_T.items()
        for ours, printed in zip(found[m]["as_printed"], row, strict=True)
    )
    cells = sum(len(row) for row in OP_PROB_T.values())
    header = ("method", *(f"t={t}" for t in DISTANCES))
    return Finding(
        summary=f"{same} of {cells} printed figures come back to all four digits once the table's "
        "slips are made on purpose; the theorems' own formulas and the exact minimum stand beside.",
        said=Said("the printed figures, to four digits", same, cells),
        short=f"{same} of {cells} figures of the table of order probabilities come back to all "
        "digits.",
        headlines=tuple(
            Headline(
                f"γ(45), {m}, {_level(m)}",
                OP_PROB_T[m][4],
                round(found[m]["as_printed"][4], 4),
                best=found["Clamp-map"]["exact"][4],
            )
            for m in ("GRR ε", "Local-map", "Adj-map α=1")
        ),
        grids=(
            Grid("As printed in the paper", header, tuple((m, *r) for m, r in OP_PROB_T.items())),
            Grid(
                "Ours, with the slips of the paper",
                header,
                tuple((m, *found[m]["as_printed"]) for m in OP_PROB_T),
            ),
            Grid("Lower bounds that hold", header, _rows(found, "bound")),
            Grid(
                "Exact: the minimum over all pairs at the distance", header, _rows(found, "exact")
            ),
        ),
        notes=(
            *noted("tab:op-prob-t"),
            Note(
                f"D is {DOMAIN.L}..{DOMAIN.R}, θ = {THETA}, {at_level(DOMAIN, EPSILON)}. GRR's ε "
                f"is for any two values: {EPSILON:g} here, and θε = {THETA * EPSILON:g}, both far "
                f"below the {EPSILON * DOMAIN.span:g} of the others."
            ),
        ),
    )


def _level(method: str) -> str:
    """GRR's level is for any two values, the others' for a unit of distance."""
    if method.startswith("GRR"):
        return f"ε = {EPSILON:g} for any two values"
    return at_level(DOMAIN, EPSILON)


def _rows(found: dict[str, Json], kind: str) -> tuple[tuple[str | float, ...], ...]:
    return tuple((m, *f[kind]) for m, f in found.items() if kind in f)


ARTEFACT = Artefact(
    "tab:op-prob-t", "Chance that two values keep their order: bounds", _tasks, _show
)
