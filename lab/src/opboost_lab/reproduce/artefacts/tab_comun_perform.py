"""tab:comun_perform: the bytes that each party sends."""

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, Words, noted
from opboost_lab.reproduce.measures.cost_tables import COLUMNS, ROWS, STAND_INS
from opboost_lab.reproduce.measures.traffic import networked, traffic
from opboost_lab.reproduce.methods import Method, at_level, level_notes
from opboost_lab.reproduce.printed import COMUN
from opboost_lab.reproduce.task import Json, Scope, Task

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
Found = dict[tuple[str, ...], Json]
WORDS = Words("tab:comun_perform")


def printed(party: str, booster: str, name: str, method: str) -> int | None:
    """Return what the paper prints for a party, booster, data set and method."""
    if method not in COMUN:
        return None
    place = 6 * (party == "b") + 3 * (booster == "XGBoost") + SETS.index(name)
    return COMUN[method][place]


def _tasks(scope: Scope) -> dict[tuple[str, ...], Task]:
    """Return jobs in memory by set, booster and method, and jobs over a network by set.

    A quick run leaves out one setting of Adj-map and most of GBDT.
    """
    shared: Json = {"epsilon": EPSILON, "bundled": scope.bundled}
    tasks: dict[tuple[str, ...], Task] = {}
    for n in SETS:
        for b, booster in BOOSTERS.items():
            for m, method in METHODS.items():
                chosen = b == "XGBoost" and m != "Adj-map α=10"
                if chosen or not scope.quick or (n, m) == ("Adult", "Clamp-map"):
                    job: Json = {"name": n, "booster": booster, "method": method.as_json()}
                    tasks[n, b, m] = Task.of(traffic, cost=SECONDS[n], **job, **shared)
    over_tls = SETS[:1] if scope.quick else SETS
    return tasks | {
        (n,): Task.of(networked, alone=True, cost=5.0, name=n, **shared) for n in over_tls
    }


def _show(scope: Scope, results: Found) -> Finding:
    found = {key: result for key, result in results.items() if len(key) > 1}
    by_xgboost = {(n, m): f for (n, b, m), f in found.items() if b == "XGBoost"}
    clamp = {n: by_xgboost[n, "Clamp-map"]["b"] for n in SETS}
    paper = {n: printed("b", "XGBoost", n, "Global-map") or 1 for n in SETS}
    shares = [
        sum(by_xgboost[n, m]["b"] for n in SETS)
        / sum(printed("b", "XGBoost", n, m) or 0 for n in SETS)
        for m in COMUN
        if ("Adult", m) in by_xgboost
    ]
    above = ", ".join(
        f"{n} under {m}"
        for (n, m), f in by_xgboost.items()
        if f["b"] > (printed("b", "XGBoost", n, m) or paper[n]) / 8
    )
    figures = {"low": min(shares), "high": max(shares)}
    figures["clamp"] = max(clamp[n] / paper[n] for n in SETS)
    in_paper = [key for key in found if key[2] in COMUN]
    held = sum(found[key]["b"] <= (printed("b", *_of(key)) or 0) for key in in_paper)

    def headline(party: str, name: str) -> Headline:
        what = f"bytes of Party {party.upper()}, {name}, XGBoost, Global-map"
        return Headline(
            f"{what}, {at_level(GRID, EPSILON)}",
            printed(party, "XGBoost", name, "Global-map"),
            by_xgboost[name, "Global-map"][party],
            best=by_xgboost[name, "Clamp-map"][party],
        )

    sockets = tuple(
        (name, f["b"], f["b"] / clamp[name], f["a"])
        for (name, *job), f in results.items()
        if not job
    )
    return Finding(
        WORDS(
            "summary",
            above=f"Above an eighth: {above}." if above else "No method is above an eighth.",
            **figures,
        ),
        said=Said(WORDS("said"), held, len(in_paper)),
        short=WORDS("short", **figures),
        headlines=(*(headline("b", n) for n in SETS), headline("a", "CASP")),
        grids=(
            _grid("b", found),
            _grid("a", found),
            Grid(WORDS("sockets"), WORDS.header("header_sockets"), sockets, 2),
        ),
        notes=(*stand_ins(scope, shapes=True), *noted("tab:comun_perform"), *level_notes(GRID)),
    )


def _of(key: tuple[str, ...]) -> tuple[str, str, str]:
    """Return booster, set and method of a job."""
    name, booster, method = key
    return booster, name, method


def _grid(party: str, found: Found) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for key, f in found.items():
        paper = printed(party, *_of(key))
        more: tuple[Cell, ...] = (f["cuts"],)
        if party == "b":
            more = round(f["entropy"]), f["b"] / f["entropy"], f["b"] * 8 / f["values"]
        ratio = f[party] / paper if paper else None
        rows.append((", ".join(key), paper, f[party], ratio, *more))
    header = (*WORDS.header(), *WORDS.header(f"header_{party}"))
    return Grid(f"{WORDS(party)}; θ = 4, {at_level(GRID, EPSILON)}", header, tuple(rows), 3)


def stand_ins(scope: Scope, *, shapes: bool = False) -> list[Note]:
    """Return a note on the stand-ins for the paper's tables in this run, if there are any."""
    if not scope.bundled:
        return []
    named = ", ".join(f"{s} for {n}" for n, s in STAND_INS.items())
    text = f"Bundled rows replace the paper's ({named}), repeated to the paper's sizes"
    shape = ", ".join(f"{n} {ROWS[n]:,} × {COLUMNS[n]}" for n in SETS)
    return [Note(f"{text}: {shape}." if shapes else f"{text}.")]


ARTEFACT = Artefact.keyed(
    "tab:comun_perform", "Bytes that each party sends", _tasks, _show, needs=SETS
)
