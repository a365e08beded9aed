"""Attacks on order: what is read out of plain order, of a cipher, and of noise, by ε."""

from __future__ import annotations

import statistics

from opboost.grid import Domain
from opboost_lab.reproduce.finding import (
    Artefact,
    Cell,
    Curve,
    Finding,
    Grid,
    Headline,
    Note,
    Panel,
)
from opboost_lab.reproduce.measures.attacked import (
    BUNDLED,
    OPE,
    PAPERS,
    TARGETS,
    WITHIN,
    big_jump,
    on_method,
    on_order,
    on_two,
)
from opboost_lab.reproduce.methods import Method, at_level, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

COLUMNS = ("age", "hours-per-week", "capital-gain", "age, ten cells")
PAIRS = (("F1", "F2"), ("age", "hours-per-week"))
CLAMP = Method("Clamp-map")
METHODS = (
    Method("Global-map"),
    Method("Adj-map", theta=4, alpha=1),
    Method("Local-map", theta=4),
    CLAMP,
    Method("Piecewise", at="total"),
    Method("GRR", at="total"),
)
ATTACKS = ("gaps", "sorting", "frequency", "multinomial", "posterior")
LOW, HIGH = 0.08, 2.56
"""The levels that the tables show: both are run, quick or not."""
NEAR = WITHIN.index(1)
GAMES = 4_000


def _seeds(scope: Scope) -> int:
    return len(scope.repeats())


def _ordered(scope: Scope, name: str, target: str) -> Task:
    return Task.of(on_order, cost=0.6, name=name, target=target, bundled=scope.bundled,
                   seeds=_seeds(scope))  # fmt: skip


def _noisy(scope: Scope, name: str, method: Method, epsilon: float) -> Task:
    seeds = _seeds(scope)
    return Task.of(on_method, cost=0.05 * (1 + seeds), name=name, method=method.as_json(),
                   epsilon=epsilon, bundled=scope.bundled, seeds=seeds)  # fmt: skip


def _paired(scope: Scope, pair: tuple[str, str], target: Json, epsilon: float) -> Task:
    seeds = _seeds(scope)
    return Task.of(on_two, cost=0.2 * seeds, name=pair[0], other=pair[1], target=target,
                   epsilon=epsilon, bundled=scope.bundled, seeds=seeds)  # fmt: skip


def _jump(scope: Scope, target: Json, epsilon: float) -> Task:
    return Task.of(big_jump, cost=0.3, name="age", target=target, epsilon=epsilon,
                   bundled=scope.bundled, games=GAMES, seed=0)  # fmt: skip


def _tasks(scope: Scope) -> list[Task]:
    tasks = [_ordered(scope, n, t) for n in COLUMNS for t in TARGETS]
    tasks += [_noisy(scope, n, m, e) for n in COLUMNS for m in METHODS for e in scope.epsilons]
    for pair in PAIRS:
        tasks += [_paired(scope, pair, t, 0.0) for t in TARGETS]
        tasks += [_paired(scope, pair, CLAMP.as_json(), e) for e in scope.epsilons]
    tasks += [_jump(scope, t, 0.0) for t in TARGETS]
    tasks += [_jump(scope, m.as_json(), e) for m in METHODS for e in (LOW, HIGH)]
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
        panels=_panels(scope, results, noisy, ordered),
        grids=(
            _orders(scope, ordered),
            _noises(scope, noisy),
            _pairs(scope, results),
            _jumps(scope, results),
        ),
        notes=(*_notes(scope), Note(_alike(scope, noisy))),
    )


def _alike(scope: Scope, noisy: dict[tuple[str, Method, float], Json]) -> str:
    """How far the attacks on Clamp-map lie apart."""
    apart = []
    for e in scope.epsilons:
        shares = [_mean(noisy["age", CLAMP, e], a) for a in ATTACKS]
        apart.append(max(shares) - min(shares))
    return (
        f"The {len(ATTACKS)} attacks on Clamp-map differ by at most {max(apart):.3f} at any level: "
        "where their lines lie on each other, noise and not the method is what stops them."
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
    results: Results,
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
    by_attack = tuple(
        Curve.of(f"attack: {a}", {e: noisy["age", CLAMP, e][a][NEAR] for e in levels})
        for a in ATTACKS
    )
    made.append(
        Panel(
            f"Clamp-map by attack, {_title(scope, 'age')}, within ±1",
            unit_axis(_grid_of("age")),
            "share recovered",
            by_attack,
            logx=True,
        )
    )
    two = {e: results[_paired(scope, PAIRS[0], CLAMP.as_json(), e)] for e in levels}
    made.append(
        Panel(
            f"Clamp-map, {_title(scope, 'F1')} beside {_title(scope, 'F2')}, within ±1",
            unit_axis(_grid_of("F1")),
            "share recovered",
            (
                Curve.of("read alone", {e: two[e]["alone"][NEAR] for e in levels}),
                Curve.of("read with the other", {e: two[e]["both"][NEAR] for e in levels}, "ours"),
            ),
            logx=True,
        )
    )
    return tuple(made)


def _orders(scope: Scope, ordered: dict[tuple[str, str], Json]) -> Grid:
    rows: list[tuple[Cell, ...]] = [
        (f"{_title(scope, n)}, {t}, ±{WITHIN[k]}",
         *(_mean(f, a, k) for a in ("prior alone", *ATTACKS[:-1], "best possible")))
        for (n, t), f in ordered.items()
        for k in range(len(WITHIN))
    ]  # fmt: skip
    return Grid(
        "Order and order-preserving encryption: share of values recovered",
        ("release, within", "prior alone", *ATTACKS[:-1], "exact distribution known"),
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


def _pairs(scope: Scope, results: Results) -> Grid:
    rows = []
    for pair in PAIRS:
        cases: list[tuple[str, Json, float]] = [(t, t, 0.0) for t in TARGETS]
        cells = _grid_of(pair[0])
        cases += [(f"Clamp-map, {at_level(cells, e)}", CLAMP.as_json(), e) for e in (LOW, HIGH)]
        for label, target, e in cases:
            f = results[_paired(scope, pair, target, e)]
            name = f"{_title(scope, pair[0])} with {_title(scope, pair[1])}, {label}"
            rows.append((name, f["correlation"], _mean(f, "alone"), _mean(f, "both")))
    return Grid(
        "Two columns of the same people: share of the first recovered within ±1",
        ("columns, release", "correlation", "read alone", "read with the other"),
        tuple(rows),
        3,
    )


def _jumps(scope: Scope, results: Results) -> Grid:
    span = _grid_of("age").span
    rows: list[tuple[Cell, ...]] = [
        (t, None, None, results[_jump(scope, t, 0.0)]["won"]) for t in TARGETS
    ]
    rows += [
        (m.label, e, e * span, results[_jump(scope, m.as_json(), e)]["won"])
        for m in METHODS
        for e in (LOW, HIGH)
    ]
    return Grid(
        f"Big jump, {_title(scope, 'age')}: how often distances tell which three values were sent",
        ("release", "ε a unit", "end to end", "games won"),
        tuple(rows),
        3,
        f"{GAMES:,} games; 0.5 is chance. Values far apart are told apart whatever noise keeps "
        "order.",
    )


def _notes(scope: Scope) -> tuple[Note, ...]:
    cells = ", ".join(f"{n} {PAPERS[n][2]}" for n in COLUMNS)
    data = (
        "Columns of the breast cancer set stand in for the paper's; 284 known rows make a weak "
        "attacker."
        if scope.bundled
        else f"Adult (cells: {cells}; ages and hours one a unit) and CASP (F1, F2 on 50)."
    )
    return (
        Note(data + " The attacker knows one half of the rows in full; the other is attacked."),
        Note(
            "Plain order and the cipher tell the same: who knows the distribution reads the values "
            "off their ranks. Its gaps alone, without any distribution, tell little of a column."
        ),
        Note(
            "Local-map gives the run of four cells away at any ε: its promise is inside a run only."
        ),
        Note(
            "Methods of local differential privacy stand at the total, ε times the span; there "
            "they hide less than dLDP does from near values, and more from far ones.", 25
        ),
        Note(
            "At one nominal ε more is read out of Clamp-map than out of Global-map, whose exact "
            "level is lower: it hides more and keeps less.",
            2,
        ),
        Note(
            "capital-gain shows why the guess without a release stands beside: most people have "
            "none, so most are guessed under any protection."
        ),
        Note(
            "After Naveed, Kamara and Wright (CCS 2015: sorting, frequency), Boldyreva et al. "
            "(EUROCRYPT 2009, CRYPTO 2011: big jump), Durak, DuBuisson and Cash (CCS 2016: two "
            "columns), Bindschaedler et al. (PVLDB 2018: multinomial) and Grubbs et al. (S&P 2017: "
            "matchings that do not cross); own code, in the plainest form of each idea."
        ),
    )  # fmt: skip


ARTEFACT = Artefact(
    "attacks", "Attacks on order, ciphers and noise", _tasks, _show, needs=("Adult", "CASP")
)
