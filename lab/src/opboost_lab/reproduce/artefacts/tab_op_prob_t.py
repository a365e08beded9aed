"""tab:op-prob-t: the theorems' lower bounds on the chance that order is kept, by distance."""

from opboost.grid import Domain
from opboost.mechanisms import AdjMap, ClampMap, GlobalMap, LocalMap, Mechanism, RandomizedResponse
from opboost_lab.reproduce.charts import Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import at_level
from opboost_lab.reproduce.printed import OP_PROB_T
from opboost_lab.reproduce.task import Json, Scope, Task

DOMAIN = Domain(1, 100)
EPSILON = 0.1
THETA = 10
DISTANCES = tuple(range(5, 100, 10))
WORDS = Words("tab:op-prob-t")


def methods() -> dict[str, Mechanism]:
    """Return the rows of the table by their printed names, and Global-map and Clamp-map."""
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
    """Return γ at every distance: as printed, the theorem's bound, and the exact minimum."""
    mechanism = methods()[method]
    kinds = ["exact"] if method == "Clamp-map" else ["bound", "exact"]
    if method in OP_PROB_T:
        kinds.append("as_printed")
    return {k: [mechanism.gamma(t, k) for t in DISTANCES] for k in kinds}  # type: ignore[arg-type]


def _tasks(scope: Scope) -> dict[str, Task]:
    return {m: Task.of(gammas, method=m) for m in methods()}


def same_digits(found: dict[str, Json]) -> int:
    """Return how many of the printed figures ours match in all four digits."""
    return sum(
        round(ours, 4) == printed
        for m, row in OP_PROB_T.items()
        for ours, printed in zip(found[m]["as_printed"], row, strict=True)
    )


def _show(scope: Scope, found: dict[str, Json]) -> Finding:
    cells = sum(len(row) for row in OP_PROB_T.values())
    counts = {"same": same_digits(found), "cells": cells}
    header, level = ("method", *(f"t={t}" for t in DISTANCES)), at_level(DOMAIN, EPSILON)

    def grid(title: str, kind: str) -> Grid:
        return Grid(title, header, tuple((m, *f[kind]) for m, f in found.items() if kind in f))

    return Finding(
        WORDS("summary", **counts),
        said=Said(WORDS("said"), counts["same"], cells),
        short=WORDS("short", **counts),
        headlines=tuple(
            Headline(
                f"γ(45), {m}, {at}",
                OP_PROB_T[m][4],
                round(found[m]["as_printed"][4], 4),
                best=found["Clamp-map"]["exact"][4],
            )
            for m, at in (
                ("GRR ε", f"ε = {EPSILON:g} for any two values"),
                ("Local-map", level),
                ("Adj-map α=1", level),
            )
        ),
        grids=(
            Grid("As printed in the paper", header, tuple((m, *r) for m, r in OP_PROB_T.items())),
            grid("Ours, with the slips of the paper", "as_printed"),
            grid("Lower bounds that hold", "bound"),
            grid("Exact: the minimum over all pairs at the distance", "exact"),
        ),
        notes=noted("tab:op-prob-t"),
    )


ARTEFACT = Artefact.keyed(
    "tab:op-prob-t", "Chance that two values keep their order: bounds", _tasks, _show
)
