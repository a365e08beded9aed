"""``opboost demo``: three parties as real processes, on 20,000 made-up people."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import (
    Format,
    FormatOption,
    echo,
    print_json,
    record_line,
    stderr,
    stdout,
)
from opboost.errors import ConfigError

if TYPE_CHECKING:
    from opboost.demo.mechanism_demo import Stop
    from opboost.demo.three_parties import Demo, Sent
    from opboost.grid import Domain

_BARS = " ▁▂▃▄▅▆▇█"


class Data(StrEnum):
    """The demo's data."""

    people = "people"
    breast_cancer = "breast-cancer"


def demo(
    record: Annotated[
        float | None,
        typer.Option(
            help="The most revealed about one person by all parties together.  [default: 4]"
        ),
    ] = None,
    data: Annotated[
        Data, typer.Option(help="20,000 made-up people, or a small real table with ε per cell.")
    ] = Data.people,
    epsilon: Annotated[
        float | None, typer.Option(help="With breast-cancer: level per cell.  [default: 0.64]")
    ] = None,
    cells: Annotated[
        int | None, typer.Option(help="With breast-cancer: cells of the grid.  [default: 10]")
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            min=1, max=20, help="How many times to draw noise, to see how the score varies."
        ),
    ] = 3,
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the report.")] = Path(
        "demo-out"
    ),
    write_tables: Annotated[
        Path | None,
        typer.Option(help="Only write the made-up tables (CSV) and declarations (TOML) here."),
    ] = None,
    mechanisms: Annotated[
        bool, typer.Option("--mechanisms", help="Show every mechanism on one column instead.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="With --mechanisms: repeatable noise, which protects nothing."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Train one model across three processes: a label party and two feature parties over mTLS.

    \b
    Examples:
      opboost demo
      opboost demo --record 2 --out demo-out
      opboost demo --write-tables tables
      opboost demo --data breast-cancer --epsilon 1.28 --cells 20
      opboost demo --mechanisms --seed 1
    """
    from opboost.budgets.budget import checked_total
    from opboost.grid import Domain
    from opboost.promises import checked_epsilon
    from opboost.runtime.extras import needs_extra

    by_cell = mechanisms or data is Data.breast_cancer
    for name, value in (("epsilon", epsilon), ("cells", cells)):
        if value is not None and not by_cell:
            raise ConfigError(
                f"--{name} goes with --data breast-cancer or --mechanisms. The made-up people "
                "have a record total: --record 4."
            )
    if record is not None and by_cell:
        raise ConfigError("--record is for the made-up people: leave --data and --mechanisms out.")
    # Refuse bad levels before anything is started.
    total = checked_total(4.0 if record is None else record)
    level, grid = 0.64 if epsilon is None else epsilon, Domain(1, 10 if cells is None else cells)
    checked_epsilon("epsilon", level)
    if mechanisms:
        _tour(level, grid, out, seed, format)
        return
    if write_tables is not None:
        from opboost.demo.made_up_people import write_tables as write

        for path in write(write_tables, total):
            echo(path)
        return
    console = stderr()
    with needs_extra("boost", "`opboost demo`"):
        from opboost.demo.demo_report import write_report
        from opboost.demo.three_parties import breast_cancer, made_up
        from opboost.demo.three_parties import demo as run

    with (
        tempfile.TemporaryDirectory(prefix="opboost-demo-") as folder,
        console.status("three parties at work") if console.is_terminal else nullcontext(),
    ):
        by_record = data is Data.people
        scene = made_up(total) if by_record else breast_cancer(level, grid.size)
        found = run(Path(folder), scene, draws)
    console.print(f"Report: {write_report(found, out)}")
    if format is Format.json:
        print_json(found.as_dict())
    else:
        _print_federation(found)


def _print_federation(found: Demo) -> None:
    organisations = _table("People in common", ("known to", "people"))
    for name, count in found.aligned.people.items():
        organisations.add_row(name, f"{count:,}")
    organisations.add_row("all of them", f"{found.aligned.common:,}")
    organisations.caption = f"by private set intersection, {found.aligned.seconds:.1f} s"
    stdout().print(organisations)
    for sent in found.sent:
        stdout().print(_plan(sent))
    scores = _table("Accuracy", ("trained on", "AUC on unseen rows"))
    for way, value in found.auc.items():
        scores.add_row(way, f"{value:.4f}")
    scores.caption = f"three processes, {found.seconds:.1f} s from start to model"
    stdout().print(scores)
    if found.redrawn:
        drawn = [found.auc["federated"], *found.redrawn]
        echo(
            f"Over {len(drawn)} draws of the noise the federated AUC ranges from {min(drawn):.4f} "
            f"to {max(drawn):.4f}."
        )
    parties = ", ".join(f"{s.party} {s.per_person:g}" for s in found.sent)
    echo(f"{parties}: levels add up over parties.")
    if found.score_line:
        echo(found.score_line)
    echo(record_line(found.per_person))


def _plan(sent: Sent) -> Table:
    titles = ("column", "mechanism", "cells", "level if sent", "sent for")
    table = _table(f"What {sent.party} sends about one person", titles, left=2)
    for c in sent.plan:
        share = c.sent_for
        table.add_row(str(c.name), c.mechanism, str(c.cells), f"{c.level:.4g}", share)
    table.caption = f"{sent.bytes:,} bytes, with every message, certificate and receipt"
    return table


def _table(title: str, columns: Sequence[str], left: int = 1) -> Table:
    table = Table(title=title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right")
    return table


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
        caption="exact: worst loss per cell, computed; error: mean distance moved; "
        "order: Kendall's tau, 1 if all order is kept",
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
