"""``opboost predict``: predict rows, on one machine or with the parties that hold their columns."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from opboost.cli.common import (
    DecimalOption,
    EncodingOption,
    Format,
    FormatOption,
    PlaintextOption,
    SeparatorOption,
    TableArgument,
    csv_format,
    print_json,
    record_line,
    stderr,
)
from opboost.cli.live_view import LiveView
from opboost.errors import ConfigError
from opboost.runtime.loading import loading

if TYPE_CHECKING:
    import pyarrow as pa

    from opboost.sources.table_address import TableAddress


class Release(StrEnum):
    """What peers release about the rows to predict."""

    columns = "columns"
    score = "score"


def predict(
    model: Annotated[Path, typer.Argument(help="A model that opboost train or serve wrote.")],
    table: TableArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV or Parquet; default: standard output.")
    ] = None,
    desensitize: Annotated[
        bool, typer.Option(help="Desensitise the private columns before predicting.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column of the table to write beside the predictions, such as an ID."),
    ] = None,
    unknown: Annotated[
        Literal["refuse", "missing"],
        typer.Option(help="How to treat categories that a private column does not declare."),
    ] = "refuse",
    without: Annotated[
        list[str] | None,
        typer.Option(help="A feature party of the model, if it knows nobody in the table."),
    ] = None,
    with_peers: Annotated[
        bool, typer.Option("--with-peers", help="Feature parties hold the private columns.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="With peers: the label party's TOML file.")
    ] = None,
    release: Annotated[
        Release, typer.Option(help="With peers: what they release, columns or a score.")
    ] = Release.columns,
    again: Annotated[
        bool, typer.Option("--again", help="With peers: begin a new run of a job.")
    ] = False,
    insecure_plaintext_on_loopback: PlaintextOption = False,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    format: FormatOption = Format.text,
) -> None:
    """Predict the rows of a table; write CSV to standard output, or a file.

    \b
    Examples:
      opboost predict m.opboost new.csv
      opboost predict m.opboost new.csv --keep customer -o answers.csv
      opboost predict m.opboost new.csv --unknown missing -o answers.csv
      opboost predict m.opboost new.csv --desensitize --out answers.csv
      opboost predict m.opboost new.csv --without shop -o answers.csv
      opboost predict m.opboost new.csv --with-peers -c bank-predict.toml -o answers.csv
      opboost predict m.opboost new.csv --with-peers -c bank-predict.toml --release score
    """
    from opboost.files.write_tables import check_new
    from opboost.sources.table_address import table_address

    source = table_address(table)
    if out is not None:
        check_new(out)  # before any work is done
    if not with_peers:
        asked = config is not None or again or insecure_plaintext_on_loopback
        if asked or release is Release.score:
            raise ConfigError("-c, --release score, --again and plaintext need --with-peers.")
        from opboost.estimators import load
        from opboost.files.train_and_predict import predict as run
        from opboost.files.train_and_predict import score_of

        if without and desensitize:
            raise ConfigError(
                "--without and --desensitize cannot be combined: with --without, the table's own "
                "private columns stay in the clear. Leave one of them out."
            )
        estimator = load(model)
        form = csv_format(separator, encoding, decimal)
        predicted = run(
            estimator,
            source,
            desensitize=desensitize,
            form=form,
            keep=keep or (),
            unknown=_say_unknown if unknown == "missing" else None,
            without=without or (),
        )
        _give(predicted, out, format)
        if (said := score_of(estimator, source, predicted, form)) is not None:
            stderr().print(said)
        stderr().print(
            record_line(estimator.guarantee_.total)
            if desensitize
            else f"{record_line(0.0)} Nothing was released: the rows stay here."
        )
        return
    if config is None:
        raise ConfigError("--with-peers needs -c, the label party's file for this job.")
    if desensitize:
        raise ConfigError("--desensitize is for one machine: peers desensitise their own columns.")
    if keep:
        raise ConfigError("--keep is for one machine: with peers the output has the IDs already.")
    if unknown != "refuse":
        raise ConfigError("--unknown is for one machine: peers check the columns that they hold.")
    if separator or encoding or decimal:
        raise ConfigError(
            f"With peers, the format of CSV files belongs in {config.name}, under [data]."
        )
    found, manifest = _with_peers(
        model, source, config, release, again, insecure_plaintext_on_loopback, without or []
    )
    _give(found, out, format)
    if out is not None and format is Format.json:
        print_json(manifest)
    if "score_line" in manifest:
        stderr().print(manifest["score_line"])
    if manifest["left_out"]:
        stderr().print(left_out(manifest))
    stderr().print(record_line(manifest["total"]))


def _say_unknown(counts: dict[str, int]) -> None:
    """Print how many values of which columns count as missing, never the values."""
    by_column = "".join(f", {name}: {count:,}" for name, count in counts.items())
    total = sum(counts.values())
    noun = "value" if total == 1 else "values"
    stderr().print(f"Unknown categories that count as missing: {total:,} {noun}{by_column}.")


def _with_peers(
    model: Path,
    table: TableAddress,
    config: Path,
    release: Release,
    again: bool,
    plaintext: bool,
    without: list[str],
) -> tuple[pa.Table, dict[str, Any]]:
    from opboost.transport.label.label_server_process import LabelServerProcess

    console = stderr()
    with ExitStack() as stack:
        label_server = stack.enter_context(LabelServerProcess())  # loads in the background
        with loading:
            from opboost.config.job_file import load_label
            from opboost.transport.label.run_over_network import predict_with_peers

        found = replace(load_label(config), table=table)
        board = stack.enter_context(LiveView(console))
        return predict_with_peers(
            found,
            model,
            label_server,
            release=release.value,
            without=without,
            insecure_plaintext=plaintext,
            again=again,
            watch=board.update,
            say=console.print,
            opened=lambda address: board.opened(found.job, address),
        )


def _give(found: pa.Table, out: Path | None, format: Format) -> None:
    """Write predictions to a file, or to standard output."""
    if out is not None:
        write_predictions(found, out)
    elif format is Format.json:
        print_json(found.to_pylist())
    else:
        import pyarrow.csv

        pyarrow.csv.write_csv(found, sys.stdout.buffer)


def write_predictions(found: pa.Table, out: Path) -> None:
    """Write predictions to a file, which appears only once it is complete."""
    from opboost.files.write_tables import TableWriter, appearing

    with appearing(out, folder=False) as partial, TableWriter(partial, out.name) as writer:
        writer.write(found)
    stderr().print(f"{found.num_rows:,} rows -> {out}")


def left_out(manifest: dict[str, Any]) -> str:
    """Return how many rows have no prediction, as a sentence."""
    return f"{manifest['left_out']:,} rows are left out, because not all parties have them."
