"""The table of ``opboost bench peers``, and the page around it, in Markdown."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from importlib import resources

import jinja2

from opboost.errors import DataError
from opboost_lab.bench.federated_peers import EXTRAPOLATED_FROM, PEERS, Ran

FEW = f"from {EXTRAPOLATED_FROM[1] - EXTRAPOLATED_FROM[0]} trees"
COMPARED = PEERS[:8]
"""What the page's first lines speak of: plain XGBoost, OpBoost and DP-EBM."""


def table(results: Sequence[Ran]) -> str:
    """A row for each system, and below it a sentence for each that failed."""
    names = list(dict.fromkeys(name for ran in results for name in ran.auc))
    scores = [f"AUC, {name}" for name in names]
    titles = ["system", "training time", "× plain", "over loopback", *scores, "protects"]
    lines = [[*titles, "you must trust"], ["---", *["--:"] * (3 + len(names)), "---", "---"]]
    for ran in results:
        found = [*figures(ran), *(score(ran, name) for name in names)]
        lines.append([ran.peer.name, *found, ran.peer.protects, ran.peer.trust])
    failed = [f"- {ran.peer.name} FAILED: {ran.problem}." for ran in results if ran.problem]
    if any(ran.version and not ran.apart for ran in results):
        failed.insert(0, "- \\* all that the machine's loopback carried meanwhile")
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + [""] + failed).strip()


def figures(ran: Ran) -> list[str]:
    """Time, ratio and bytes, marked where they are extrapolated or were measured elsewhere."""
    other = ran.peer.elsewhere
    if not ran.problem:
        mark = f" ({FEW})" if ran.peer.run == "extrapolated" else ""
        size = size_of(ran.bytes) + (mark if ran.bytes else "")
        shared = "" if ran.apart or ran.bytes is None else " \\*"
        return [time_of(ran.seconds) + mark, ratio_of(ran.ratio) + mark, size + shared]
    if other is None:
        return ["FAILED", "–", "–"]
    mark = f" (elsewhere, {FEW})" if other.extrapolated else " (elsewhere)"
    size = "–" if other.bytes is None else size_of(other.bytes) + mark
    return [f"FAILED; {time_of(other.seconds)}{mark}", ratio_of(other.ratio) + mark, size]


def page(results: Sequence[Ran], title: str) -> str:
    """The results page: the answer, the table, how to read it, versions."""
    found = {ran.peer.name: ran for ran in results if not ran.problem}
    missing = [peer.name for peer in COMPARED if peer.name not in found]
    if missing:
        raise DataError(
            f"The page compares systems of which some failed: {', '.join(missing)}",
            hint="Read the reasons in the table, and run it again.",
        )
    encrypting = [ran for ran in found.values() if ran.peer.encrypts]
    versions = {f"{ran.peer.name.split(',')[0]} {ran.version}" for ran in found.values()}
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = resources.files(__package__).joinpath("peers.md.jinja").read_text("utf-8")
    return environment.from_string(text).render(
        compared=[found[peer.name] for peer in COMPARED],
        fastest=min(encrypting, key=lambda ran: ran.seconds, default=None),
        versions=sorted({*versions, f"Python {platform.python_version()}"}),
        table=table(results),
        title=title,
        cores=os.cpu_count(),
        score=score,
        size_of=size_of,
        time_of=time_of,
        ratio_of=ratio_of,
    )


def score(ran: Ran, name: str) -> str:
    """The mean of the repeats on a table, with their standard deviation if there are several."""
    values = ran.auc.get(name)
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    few = f" ({EXTRAPOLATED_FROM[1]} trees)" if ran.peer.run == "extrapolated" else ""
    return f"{statistics.mean(values):.3f}{spread}{few}"


def time_of(seconds: float) -> str:
    """Seconds, with decimals while they matter."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def size_of(count: int | None) -> str:
    """Bytes, in the unit that fits."""
    if not count:
        return "–" if count is None else "none"
    unit, size = next((u for u in (("GB", 1e9), ("MB", 1e6)) if count >= u[1]), ("kB", 1e3))
    return f"{count / size:.{0 if unit == 'kB' else 1}f} {unit}"


def ratio_of(value: float | None) -> str:
    """A ratio, to two digits or as a whole number."""
    return "–" if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"
