"""The table of ``opboost bench peers``, and the page around it, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from importlib import resources

import jinja2

from opboost.errors import DataError
from opboost_lab.bench.federated_peers import (
    ALONE,
    DP_EBM,
    EXTRAPOLATED_FROM,
    OPBOOST,
    PEERS,
    PLAIN,
    Ran,
)
from opboost_lab.bench.peer_results import Results

FEW = f"from {EXTRAPOLATED_FROM[1] - EXTRAPOLATED_FROM[0]} trees"
NOT_REACHED = "the run was stopped before it"
COMPARED = (PLAIN, ALONE, OPBOOST, DP_EBM)
"""The systems that the page's first lines compare, the last two at the same epsilon."""


def table(results: Sequence[Ran]) -> str:
    """Return a row for each system, and below the rows a sentence for each that failed."""
    names = list(dict.fromkeys(name for ran in results for name in ran.auc))
    scores = [f"AUC, {name}" for name in names]
    titles = ["system", "training time", "× plain", "plain then", "over loopback", *scores]
    right = ["--:"] * (len(titles) - 1)
    lines = [[*titles, "basis", "protects", "you must trust"], ["---", *right, *["---"] * 3]]
    for ran in results:
        found = [*figures(ran), *(score(ran, name) for name in names), basis(ran)]
        lines.append([ran.peer.name, *found, ran.peer.protects, ran.peer.trust])
    notes = [
        f"- **{r.peer.name}** was not measured here: {r.problem}." for r in results if r.problem
    ]
    if any(ran.version and not ran.apart for ran in results):
        notes.insert(0, "- \\* all that the machine's loopback carried meanwhile")
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + [""] + notes).strip()


def figures(ran: Ran) -> list[str]:
    """Return the time, its ratio to plain XGBoost, plain XGBoost's own time, and the bytes."""
    other = ran.peer.elsewhere
    if not ran.problem:
        shared = "" if ran.apart or ran.bytes is None else " \\*"
        plain = time_of(ran.plain) if ran.plain else "–"
        return [time_of(ran.seconds), ratio_of(ran.ratio), plain, size_of(ran.bytes) + shared]
    if other is None:
        return ["–"] * 4
    return [time_of(other.seconds), ratio_of(other.ratio), "–", size_of(other.bytes)]


def basis(ran: Ran) -> str:
    """Return how the figures of a row were obtained."""
    other = ran.peer.elsewhere
    if not ran.problem:
        return {"extrapolated": FEW, "once": "measured once"}.get(ran.peer.run, "measured")
    if other is None:
        return "none"
    return f"measured elsewhere{f', {FEW}' if other.extrapolated else ''}"


def page(results: Results) -> str:
    """Return the results page, which also lists systems without a result."""
    known = {ran.peer.name: ran for ran in results.ran}
    listed = [known.get(peer.name, Ran(peer, problem=NOT_REACHED)) for peer in PEERS]
    found = {ran.peer.name: ran for ran in listed if not ran.problem}
    missing = [peer.name for peer in COMPARED if peer.name not in found]
    if missing:
        raise DataError(
            f"The page compares systems of which some failed: {', '.join(missing)}",
            hint="Read the reasons in the table, and run it again.",
        )
    others = [ran.peer for ran in listed if ran.peer.encrypts]
    elsewhere = {peer.elsewhere.ratio: peer for peer in others if peer.elsewhere}
    encrypting = [ran for ran in found.values() if ran.peer.encrypts and ran.ratio]
    versions = {f"{ran.peer.name.split(',')[0]} {ran.version}" for ran in found.values()}
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = resources.files(__package__).joinpath("peers.md.jinja").read_text("utf-8")
    return environment.from_string(text).render(
        compared=[found[peer.name] for peer in COMPARED],
        encrypting=sorted(encrypting, key=lambda ran: ran.ratio or 0),
        elsewhere=elsewhere[min(elsewhere)] if elsewhere else None,
        versions=sorted(versions),
        table=table(listed),
        results=results,
        score=score,
        size_of=size_of,
        time_of=time_of,
        ratio_of=ratio_of,
    )


def score(ran: Ran, name: str) -> str:
    """Return the mean of the repeats on a table, with the standard deviation if they differ."""
    values = ran.auc.get(name)
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):.3f}" if len(set(values)) > 1 else ""
    few = f" ({EXTRAPOLATED_FROM[1]} trees)" if ran.peer.run == "extrapolated" else ""
    return f"{statistics.mean(values):.3f}{spread}{few}"


def time_of(seconds: float) -> str:
    """Return seconds, with decimals below ten."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def size_of(count: int | None) -> str:
    """Return bytes in a suitable unit."""
    if not count:
        return "–" if count is None else "none"
    unit, size = next((u for u in (("GB", 1e9), ("MB", 1e6)) if count >= u[1]), ("kB", 1e3))
    return f"{count / size:.{0 if unit == 'kB' else 1}f} {unit}"


def ratio_of(value: float | None) -> str:
    """Return a ratio to two digits."""
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"
