"""Attacks on order: what is read out of plain order, of a cipher, and of noise, by ε."""

from __future__ import annotations

import statistics

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, noted
from opboost_lab.reproduce.measures.attacked import (
    BUNDLED,
    OPE,
    PAPERS,
    TARGETS,
    WITHIN,
    on_method,
    on_order,
)
from opboost_lab.reproduce.methods import Method, at_level, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

COLUMNS = ("age", "hours-per-week", "capital-gain", "age, ten cells")
CLAMP = Method("Clamp-map")
METHODS = (
    Method("Global-map"),
    Method("Adj-map", theta=4, alpha=1),
    Method("Local-map", theta=4),
    CLAMP,
    Method("Piecewise", at="total"),
    Method("GRR", at="total"),
)
ATTACKS = ("sorting", "posterior")
LOW, HIGH = 0.08, 2.56
"""The levels that the tables show: both are run, quick or not."""
NEAR = WITHIN.index(1)


def _seeds(scope: Scope) -> int:
    return len(scope.repeats())


def _ordered(scope: Scope, name: str, target: str) -> Task:
    return Task.of(on_order, cost=0.6, name=name, target=target, bundled=scope.bundled,
                   seeds=_seeds(scope))  # fmt: skip


def _noisy(scope: Scope, name: str, method: Method, epsilon: float) -> Task:
    seeds = _seeds(scope)
    return Task.of(on_method, cost=0.05 * (1 + seeds), name=name, method=method.as_json(),
                   epsilon=epsilon, bundled=scope.bundled, seeds=seeds)  # fmt: skip


def _tasks(scope: Scope) -> list[Task]:
    tasks = [_ordered(scope, n, t) for n in COLUMNS for t in TARGETS]
    tasks += [_noisy(scope, n, m, e) for n in COLUMNS for m in METHODS for e in scope.epsilons]
    return tasks


def _show(scope: Scope, results: Results) -> Finding:
    noisy = {
        (n, m, e): results[_noisy(scope, n, m, e)]
        for n in COLUMNS for m in METHODS for e in scope.epsilons
    }  # fmt: skip
    ordered = {(n, t): results[_ordered(scope, n, t)] for n in COLUMNS for t in TARGETS}
    age = ordered["age", OPE]
    low, high = noisy["age", CLAMP, LOW], noisy["age", CLAMP, HIGH]
    return Finding(
        summary=f"Within ±1 cell of {_title(scope, 'age')}, order-preserving encryption gives "
        f"{_best(age)[1]:.0%} of the values away and guessing from the distribution alone "
        f"{_mean(age, 'prior alone'):.0%}; of Clamp-map no attack gets more than "
        f"{_mean(low, 'best possible'):.0%} at {at_level(_grid_of('age'), LOW)}, but "
        f"{_mean(high, 'best possible'):.0%} at {HIGH:g}: noise protects as far as ε is small.",
        short=f"Attackers get {_best(age)[1]:.0%} of ages within one cell from order-preserving "
        f"encryption; of Clamp-map {_mean(low, 'best possible'):.0%} at ε = {LOW:g} and "
        f"{_mean(high, 'best possible'):.0%} at {HIGH:g}.",
        headlines=tuple(
            Headline(
                f"{_title(scope, 'age')} recovered within ±1, ε = {e:g} "
                f"({low['total'] * e / LOW:.0f} in all)",
                None,
                _mean(noisy["age", METHODS[0], e], "best possible"),
                best=_mean(noisy["age", CLAMP, e], "best possible"),
                better="lower",
            )
            for e in (LOW, HIGH)
        ),
        panels=_panels(scope, noisy, ordered),
        grids=(_orders(scope, ordered), _noises(scope, noisy)),
        notes=_notes(scope),
    )


def _grid_of(name: str) -> Domain:
    """The cells of a column, or of what stands in for it."""
    return Domain(0, PAPERS[name][2] - 1)


def _title(scope: Scope, name: str) -> str:
    if not scope.bundled:
        return name
    words, cells = BUNDLED[name]
    return f"{words} ({cells} cells)"


def _mean(found: Json, attack: str, k: int = NEAR) -> float:
    return statistics.fmean(found[attack][k])


def _best(found: Json, k: int = NEAR) -> tuple[str, float]:
    """The attack that got most, and how much."""
    return max(((a, _mean(found, a, k)) for a in ATTACKS if a in found), key=lambda t: t[1])


def _panels(
    scope: Scope,
    noisy: dict[tuple[str, Method, float], Json],
    ordered: dict[tuple[str, str], Json],
) -> tuple[Panel, ...]:
    levels = scope.epsilons

    def flat(label: str, share: float, kind: str) -> Curve:
        return Curve(label, (levels[0], levels[-1]), (share, share), (), kind)  # type: ignore[arg-type]

    made = []
    for name, k in (("age", NEAR), ("age, ten cells", 0)):
        curves = [
            Curve(m.label, levels, tuple(_mean(noisy[name, m, e], "best possible", k)
                                         for e in levels), (), m.kind)
            for m in METHODS
        ]  # fmt: skip
        curves.append(flat("OPE, best attack", _best(ordered[name, OPE], k)[1], "ldp"))
        curves.append(flat("guess from the distribution alone",
                           _mean(ordered[name, OPE], "prior alone", k), "plain"))  # fmt: skip
        made.append(
            Panel(
                f"Best possible attack, {_title(scope, name)}, within ±{WITHIN[k]}",
                unit_axis(_grid_of(name)),
                "share recovered",
                tuple(curves),
                logx=True,
            )
        )
    return tuple(made)


def _orders(scope: Scope, ordered: dict[tuple[str, str], Json]) -> Grid:
    rows: list[tuple[Cell, ...]] = [
        (f"{_title(scope, n)}, {t}, ±{WITHIN[k]}",
         *(_mean(f, a, k) for a in ("prior alone", "sorting", "best possible")))
        for (n, t), f in ordered.items()
        for k in range(len(WITHIN))
    ]  # fmt: skip
    return Grid(
        "Order and order-preserving encryption: share of values recovered",
        ("release, within", "prior alone", "sorting", "exact distribution known"),
        tuple(rows),
        3,
    )


def _noises(scope: Scope, noisy: dict[tuple[str, Method, float], Json]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for name in COLUMNS:
        for method in METHODS:
            for e in (LOW, HIGH):
                f = noisy[name, method, e]
                attack, share = _best(f)
                shares = [_mean(f, "best possible", k) for k in range(len(WITHIN))]
                rows.append(
                    (f"{_title(scope, name)}, {method.label}, ε = {e:g}", f["total"],
                     _mean(f, "prior alone"), attack, share, *shares)
                )  # fmt: skip
    return Grid(
        "Noise: share of values recovered",
        (
            "release", "total ε", "prior alone, ±1", "best attack, ±1", "its share",
            *(f"best possible, ±{k}" for k in WITHIN),
        ),
        tuple(rows),
        3,
        "Best possible: Bayes' rule with the true distribution and the public channel, exact; no "
        "attack on single rows does better.",
    )  # fmt: skip


def _notes(scope: Scope) -> tuple[Note, ...]:
    cells = ", ".join(f"{n} {PAPERS[n][2]}" for n in COLUMNS)
    data = (
        "Columns of the breast cancer set stand in for the paper's; 284 known rows make a weak "
        "attacker."
        if scope.bundled
        else f"Adult (cells: {cells}; ages and hours one a unit)."
    )
    return (
        Note(data + " The attacker knows one half of the rows in full; the other is attacked."),
        *noted("attacks"),
    )  # fmt: skip


ARTEFACT = Artefact(
    "attacks", "Attacks on order, ciphers and noise", _tasks, _show, needs=("Adult",)
)
