"""``opboost demo``: a first look at every mechanism, on data that ships with scikit-learn."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from opboost.cli.common import Format, FormatOption, paper, print_json, talk
from opboost.domain import Domain
from opboost.rng import SeededRng

if TYPE_CHECKING:
    from opboost.experiments.first_models import Score
    from opboost.experiments.tour import Stop

_BARS = " ▁▂▃▄▅▆▇█"


def demo(
    epsilon: Annotated[float, typer.Option(help="Level a cell.")] = 0.64,
    cells: Annotated[int, typer.Option(help="Cells of the grid.")] = 10,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("demo-out"),
    seed: Annotated[
        int | None, typer.Option(help="Repeatable noise: protects nothing, for trying only.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Desensitise a bundled column under every mechanism, and train on desensitised columns."""
    from opboost.experiments import first_models
    from opboost.experiments.tour import draw, mechanisms, tour

    console = talk()
    grid = Domain(1, cells)
    steps = tour(epsilon, grid, None if seed is None else SeededRng(seed))
    total = len(mechanisms(epsilon, grid))
    stops = list(
        track(
            steps,
            "mechanisms",
            total=total,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    picture = out / "mechanisms.png"
    draw(stops, epsilon, grid, picture)
    rng = None if seed is None else SeededRng(seed)
    scores = list(first_models.first_models(epsilon, cells, rng))
    first_models.draw(scores, out / "models.png")
    if format is Format.json:
        models = [asdict(score) for score in scores]
        print_json({"mechanisms": [_line(stop) for stop in stops], "models": models})
    else:
        _print(stops, grid)
        _print_models(scores)
    console.print(f"Pictures: {picture}, {out / 'models.png'}")


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
    from opboost.experiments.tour import column

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
    paper().print(table)


def _print_models(scores: list[Score]) -> None:
    table = Table(title="Boosted trees, three private columns beside three own ones")
    for title in ("data", "trained on", "promise", "score", "seconds"):
        table.add_column(title, justify="right" if title in ("score", "seconds") else "left")
    for s in scores:
        figure = f"{s.measure} {s.value:.3f}"
        table.add_row(s.data, s.way, s.promise, figure, f"{s.seconds:.2f}")
    table.caption = "scores on unseen rows; 'without them': the label party's own columns alone"
    paper().print(table)


def _bars(stop: Stop) -> str:
    top = stop.middle.max()
    return "".join(_BARS[round(p / top * (len(_BARS) - 1))] for p in stop.middle)
