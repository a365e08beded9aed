"""``opboost demo``: three parties as real processes, on data that ships with scikit-learn."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout

if TYPE_CHECKING:
    from opboost.demo.mechanism_demo import Stop
    from opboost.demo.three_parties import Demo
    from opboost.grid import Domain

_BARS = " ▁▂▃▄▅▆▇█"


def demo(
    epsilon: Annotated[float, typer.Option(help="Level a cell.")] = 0.64,
    cells: Annotated[int, typer.Option(help="Cells of the grid.")] = 10,
    out: Annotated[Path, typer.Option(help="Where pictures and the report go.")] = Path("demo-out"),
    mechanisms: Annotated[
        bool, typer.Option("--mechanisms", help="Every mechanism on one column instead.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="With --mechanisms: repeatable noise, which protects nothing."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Train one model over three processes: a label party and two feature parties over mTLS.

    \b
    Examples:
      opboost demo
      opboost demo --epsilon 1.28 --cells 20 --out demo-out
      opboost demo --mechanisms --seed 1
    """
    from opboost.grid import Domain
    from opboost.promises import checked_epsilon
    from opboost.runtime.extras import needs_extra

    grid = Domain(1, cells)
    checked_epsilon("epsilon", epsilon)  # refuse bad levels before anything is started
    if mechanisms:
        _tour(epsilon, grid, out, seed, format)
        return
    console = stderr()
    with needs_extra("boost", "`opboost demo`"):
        from opboost.demo.demo_report import write_report
        from opboost.demo.three_parties import demo as run

    with (
        tempfile.TemporaryDirectory(prefix="opboost-demo-") as folder,
        console.status("three parties at work") if console.is_terminal else nullcontext(),
    ):
        found = run(Path(folder), epsilon, cells)
    report = write_report(found, out)
    if format is Format.json:
        print_json(found.as_dict())
    else:
        _print_federation(found)
    console.print(f"Report: {report}")


def _print_federation(found: Demo) -> None:
    organisations = Table(title="Whom they have in common")
    organisations.add_column("known to")
    organisations.add_column("people", justify="right")
    for name, count in found.aligned.people.items():
        organisations.add_row(name, f"{count:,}")
    organisations.add_row("all of them", f"{found.aligned.common:,}")
    organisations.caption = f"by private set intersection, {found.aligned.seconds:.1f} s"
    stdout().print(organisations)
    sent = Table(title=f"What left each laboratory: {found.rows} people, over mutual TLS")
    for title in ("party", "columns", "bytes", "ε a cell", "ε a person"):
        sent.add_column(title, justify="left" if title == "party" else "right")
    for s in found.sent:
        figures = (s.columns, f"{s.bytes:,}", s.per_cell, s.per_person)
        sent.add_row(s.party, *(f"{f:g}" if isinstance(f, float) else str(f) for f in figures))
    sent.caption = (
        f"all together at most ε = {found.per_person:g} about one person; "
        "bytes with every message, certificate and receipt"
    )
    stdout().print(sent)
    scores = Table(title="What it was worth")
    scores.add_column("trained on")
    scores.add_column("AUC on unseen rows", justify="right")
    for way, value in found.auc.items():
        scores.add_row(way, f"{value:.4f}")
    scores.caption = f"three processes, {found.seconds:.1f} s from start to model"
    stdout().print(scores)


def _tour(epsilon: float, grid: Domain, out: Path, seed: int | None, format: Format) -> None:
    from opboost.demo import mechanism_demo
    from opboost.randomness.streams import SeededRng

    console = stderr()
    rng = None if seed is None else SeededRng(seed)
    stops = list(
        track(
            mechanism_demo.tour(epsilon, grid, rng),
            "mechanisms",
            total=len(mechanism_demo.mechanisms(epsilon, grid)),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    picture = out / "mechanisms.svg"
    mechanism_demo.draw(stops, epsilon, grid, picture)
    if format is Format.json:
        print_json([_line(stop) for stop in stops])
    else:
        _print(stops, grid)
    console.print(f"Picture: {picture}")


def _line(stop: Stop) -> dict[str, object]:
    return {
        "mechanism": repr(stop.mechanism),
        "promise": str(stop.guarantee),
        "total": stop.guarantee.total,
        "exact_epsilon": stop.exact_epsilon,
        "mean_error": round(stop.error, 4),
        "kendall": round(stop.order, 4),
    }


def _print(stops: list[Stop], grid: Domain) -> None:
    from opboost.demo.mechanism_demo import column

    raw, name = column()
    table = Table(
        title=f"'{name}' of {len(raw)} rows on {grid.size} cells",
        caption="exact: worst loss a cell, computed; error: mean distance moved; "
        "order: Kendall's tau, 1 is all of it",
    )
    table.add_column("mechanism", no_wrap=True)
    table.add_column("promise")
    table.add_column("in all", justify="right")
    table.add_column("exact", justify="right")
    table.add_column("error", justify="right")
    table.add_column("order", justify="right")
    table.add_column(f"from {grid.L + grid.span // 2}", no_wrap=True)
    for stop in stops:
        table.add_row(
            stop.name,
            stop.guarantee.brief,
            f"{stop.guarantee.total:.2f}",
            f"{stop.exact_epsilon:.3f}",
            f"{stop.error:.2f}",
            f"{stop.order:.2f}",
            _bars(stop),
        )
    stdout().print(table)


def _bars(stop: Stop) -> str:
    top = stop.middle.max()
    return "".join(_BARS[round(p / top * (len(_BARS) - 1))] for p in stop.middle)
