"""``opboost train``: train a boosted model on one machine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    TableArgument,
    echo,
    echo_promise,
    print_json,
    record_line,
    stderr,
    warn_of_total,
)
from opboost.errors import DataError

if TYPE_CHECKING:
    from opboost.boosting.booster import Booster


def train(
    table: TableArgument,
    label: Annotated[str, typer.Option(help="The column to predict.")],
    config: ConfigOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    task: Annotated[
        Literal["auto", "classify", "regress"], typer.Option(help="The kind of label.")
    ] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
    continue_from: Annotated[
        Path | None,
        typer.Option("--continue", help="A model of the same columns to add trees to."),
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """Desensitise the private columns, train, and save the model.

    \b
    Examples:
      opboost train people.csv --label paid_back -c b.toml -o m.opboost
      opboost train houses.parquet --label price --task regress -c b.toml -o m.opboost
      opboost train new.csv --label paid_back -c b.toml --continue m.opboost -o m2.opboost
    """
    from opboost.config import load
    from opboost.estimators import load as load_model
    from opboost.files.train_and_predict import train as run
    from opboost.sources.table_address import table_address

    source = table_address(table)

    if out.exists() and not force:
        raise DataError(
            f"{out} exists already", hint="Give another name, or --force to replace it."
        )
    if not out.parent.is_dir():
        raise DataError(f"The folder {out.parent} does not exist", hint="Make it first.")
    console = stderr()
    plan = load(config)
    warn_of_total(plan.total)
    with ExitStack() as stack:
        booster: str | Booster = plan.booster.kind
        if plan.booster.engine != "local":
            from opboost.scale.cluster_booster import connected_booster

            booster = stack.enter_context(connected_booster(plan.booster))
        if console.is_terminal:
            stack.enter_context(console.status("training"))
        earlier = None if continue_from is None else load_model(continue_from)
        estimator = run(source, plan, label, task, earlier, booster=booster)
        estimator.save(out)
    importance = dict(
        zip(map(str, estimator.feature_names_in_), estimator.feature_importances_, strict=True)
    )
    score, total = estimator.held_out_score_, estimator.guarantee_.total
    if format is Format.json:
        print_json(
            {
                "model": str(out),
                "guarantee": str(estimator.guarantee_),
                "total": total,
                "score": None if score is None else score.to_dict(),
                "score_line": None if score is None else score.line(total=total),
                "importance": {k: float(v) for k, v in importance.items()},
            }
        )
    else:
        echo_promise(estimator.guarantee_)
        best = sorted(importance.items(), key=lambda item: -item[1])[:5]
        echo("most important: " + ", ".join(f"{name} {worth:.2f}" for name, worth in best))
    console.print(f"-> {out}")
    if format is Format.text:
        if score is not None:
            echo(score.line(total=total))
        echo(record_line(total))
