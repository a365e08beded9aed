"""tab:comun_perform: the bytes that each party sends."""

from __future__ import annotations

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.cost_tables import COLUMNS, ROWS, STAND_INS
from opboost_lab.reproduce.measures.traffic import networked, traffic
from opboost_lab.reproduce.methods import Method, at_level, level_line
from opboost_lab.reproduce.printed import COMUN
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

EPSILON = 0.08
SETS = tuple(ROWS)
BOOSTERS = {"GBDT": "hist-gbdt", "XGBoost": "xgboost"}
METHODS = {
    "Local-map": Method("Local-map", theta=4),
    "Global-map": Method("Global-map"),
    "Adj-map α=0.4": Method("Adj-map", theta=4, alpha=0.4),
    "Adj-map α=10": Method("Adj-map", theta=4, alpha=10),
    "Piecewise": Method("Piecewise"),
    "Clamp-map": Method("Clamp-map"),
}
"""By the names that the table prints; Clamp-map is ours."""
SECONDS = {"Adult": 3.0, "Pen-digits": 8.0, "CASP": 2.0}


def printed(party: str, booster: str, name: str, method: str) -> int | None:
    """What the paper prints for a party, booster, data set and method."""
    if method not in COMUN:
        return None
    place = 6 * (party == "b") + 3 * (booster == "XGBoost") + SETS.index(name)
    return COMUN[method][place]


def _task(scope: Scope, name: str, booster: str, method: str) -> Task:
    return Task.of(
        traffic,
        cost=SECONDS[name],
        name=name,
        booster=BOOSTERS[booster],
        method=METHODS[method].as_json(),
        epsilon=EPSILON,
        bundled=scope.bundled,
    )


def _socket(scope: Scope, name: str) -> Task:
    return Task.of(networked, alone=True, cost=5.0, name=name, epsilon=EPSILON,
                   bundled=scope.bundled)  # fmt: skip


def _cells(scope: Scope) -> list[tuple[str, str, str]]:
    """All of them; a quick run leaves one setting of Adj-map and most of GBDT out."""
    return [
        (name, booster, method)
        for name in SETS
        for booster in BOOSTERS
        for method in METHODS
        if not scope.quick
        or (booster == "XGBoost" and method != "Adj-map α=10")
        or (name == "Adult" and method == "Clamp-map")
    ]


def _networked(scope: Scope) -> tuple[str, ...]:
    return SETS[:1] if scope.quick else SETS


def _tasks(scope: Scope) -> list[Task]:
    jobs = [_task(scope, *cell) for cell in _cells(scope)]
    return [*jobs, *(_socket(scope, n) for n in _networked(scope))]


def _show(scope: Scope, results: Results) -> Finding:
    found = {cell: results[_task(scope, *cell)] for cell in _cells(scope)}
    shares = _shares(found)
    clamp = {n: found[n, "XGBoost", "Clamp-map"]["b"] for n in SETS}
    paper = {n: printed("b", "XGBoost", n, "Global-map") or 1 for n in SETS}
    above = [
        f"{n} under {m}"
        for (n, b, m), f in found.items()
        if b == "XGBoost" and f["b"] > (printed("b", b, n, m) or paper[n]) / 8
    ]
    return Finding(
        summary=f"Party B sends {min(shares.values()):.3f} to {max(shares.values()):.3f} of the "
        f"paper's bytes, by method, all three sets together; Clamp-map at most "
        f"{max(clamp[n] / paper[n] for n in SETS):.3f} of what is printed for Global-map. "
        + (f"Above an eighth: {', '.join(above)}." if above else "Each is below an eighth."),
        said=Said(
            "Party B sends what is printed, or less",
            sum(
                f["b"] <= (printed("b", b, n, m) or 0)
                for (n, b, m), f in found.items()
                if m in COMUN
            ),
            sum(m in COMUN for _, _, m in found),
        ),
        short=f"Party B sends {min(shares.values()):.2f} to {max(shares.values()):.2f} of the "
        "bytes that the paper prints.",
        headlines=(
            *(
                Headline(
                    f"bytes of Party B, {n}, XGBoost, Global-map, {at_level(GRID, EPSILON)}",
                    printed("b", "XGBoost", n, "Global-map"),
                    found[n, "XGBoost", "Global-map"]["b"],
                    best=clamp[n],
                    better="lower",
                )
                for n in SETS
            ),
            Headline(
                f"bytes of Party A, CASP, XGBoost, Global-map, {at_level(GRID, EPSILON)}",
                printed("a", "XGBoost", "CASP", "Global-map"),
                found["CASP", "XGBoost", "Global-map"]["a"],
                best=found["CASP", "XGBoost", "Clamp-map"]["a"],
                better="lower",
            ),
        ),
        grids=(_grid("b", found), _grid("a", found), _sockets(scope, results, clamp)),
        notes=_notes(scope),
    )


def _shares(found: dict[tuple[str, str, str], Json]) -> dict[str, float]:
    """Bytes of Party B over the paper's, all sets together, by method."""
    return {
        m: sum(found[n, "XGBoost", m]["b"] for n in SETS)
        / sum(printed("b", "XGBoost", n, m) or 0 for n in SETS)
        for m in COMUN
        if ("Adult", "XGBoost", m) in found
    }


def _grid(party: str, found: dict[tuple[str, str, str], Json]) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for (name, booster, method), f in found.items():
        paper = printed(party, booster, name, method)
        more: tuple[Cell, ...] = (
            (round(f["entropy"]), f["b"] / f["entropy"], f["b"] * 8 / f["values"])
            if party == "b"
            else (f["cuts"],)
        )
        ratio = f[party] / paper if paper else None
        rows.append((f"{name}, {booster}, {method}", paper, f[party], ratio, *more))
    last = ("entropy of the codes, B", "ours / entropy", "bits a value")
    header = ("set, booster, method", "paper, B", "ours, B", "ours / paper")
    title = "Party B sends: columns and split values" if party == "b" else (
        "Party A sends: welcome, split query, farewell"
    )  # fmt: skip
    title += f"; θ = 4, {at_level(GRID, EPSILON)}"
    return Grid(title, header + (last if party == "b" else ("cuts asked for",)), tuple(rows), 3)


def _sockets(scope: Scope, results: Results, clamp: dict[str, int]) -> Grid:
    rows = []
    for name in _networked(scope):
        f = results[_socket(scope, name)]
        rows.append((name, f["b"], f["b"] / clamp[name], f["a"]))
    return Grid(
        "The same with mutual TLS, receipts and all, counted on the socket (Clamp-map, XGBoost)",
        ("set", "up from Party B, B", "× in memory", "down from Party A, B"),
        tuple(rows),
        2,
    )


def _notes(scope: Scope) -> tuple[Note, ...]:
    stand_ins = ", ".join(f"{s} for {n}" for n, s in STAND_INS.items())
    shape = ", ".join(f"{n} {ROWS[n]:,} × {COLUMNS[n]}" for n in SETS)
    own = (
        (Note(f"Bundled rows stand in ({stand_ins}), repeated to the paper's sizes: {shape}."),)
        if scope.bundled
        else ()
    )
    return (
        *own,
        *noted("tab:comun_perform"),
        Note(level_line(GRID)),
    )


ARTEFACT = Artefact("tab:comun_perform", "Bytes that each party sends", _tasks, _show, needs=SETS)
