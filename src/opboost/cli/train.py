"""``opboost train``: a boosted model on one machine."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from opboost.cli.common import ConfigOption, Format, FormatOption, echo, print_json, stderr


def train(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder of them.")],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to make.")],
    task: Annotated[
        Literal["auto", "classify", "regress"], typer.Option(help="What the label is.")
    ] = "auto",
    format: FormatOption = Format.text,
) -> None:
    """Desensitise the private columns, train, and save the model with what it needs.

    \b
    Examples:
      opboost train people.csv --label paid_back -c b.toml -o m.opboost
      opboost train houses.parquet --label price --task regress -c b.toml -o m.opboost
    """
    from opboost.config import load
    from opboost.files.train_and_predict import train as run

    console = stderr()
    plan = load(config)
    with console.status("training") if console.is_terminal else nullcontext():
        estimator = run(table, plan, label, task)
        estimator.save(out)
    importance = dict(
        zip(map(str, estimator.feature_names_in_), estimator.feature_importances_, strict=True)
    )
    if format is Format.json:
        print_json(
            {
                "model": str(out),
                "guarantee": str(estimator.guarantee_),
                "total": estimator.guarantee_.total,
                "importance": {k: float(v) for k, v in importance.items()},
            }
        )
    else:
        echo(str(estimator.guarantee_))
        best = sorted(importance.items(), key=lambda item: -item[1])[:5]
        echo("worth most: " + ", ".join(f"{name} {worth:.2f}" for name, worth in best))
    console.print(f"-> {out}")
