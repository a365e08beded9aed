"""``opboost predict``: rows through a model, alone or with the parties that hold their columns."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opboost.cli.common import Format, FormatOption, PlaintextOption, print_json, stderr
from opboost.cli.live_view import LiveView
from opboost.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa


def predict(
    model: Annotated[Path, typer.Argument(help="File that opboost train or serve made.")],
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder of them.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV or Parquet; else standard output.")
    ] = None,
    desensitize: Annotated[
        bool, typer.Option(help="Desensitise the private columns before predicting.")
    ] = False,
    with_peers: Annotated[
        bool, typer.Option("--with-peers", help="Feature parties hold the private columns.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="With peers: the label party's TOML file.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="With peers: begin a new run of a job.")
    ] = False,
    insecure_plaintext_on_loopback: PlaintextOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Predict for the rows of a table: CSV to standard output, or a file.

    \b
    Examples:
      opboost predict m.opboost new.csv
      opboost predict m.opboost new.csv --desensitize --out answers.csv
      opboost predict m.opboost new.csv --with-peers -c bank-predict.toml -o answers.csv
    """
    from opboost.files.write_tables import check_new

    if out is not None:
        check_new(out)  # before anybody has worked for it
    if not with_peers:
        if config is not None or again or insecure_plaintext_on_loopback:
            raise ConfigError("-c, --again and plaintext have a meaning with --with-peers only.")
        from opboost.estimators import load
        from opboost.files.train_and_predict import predict as run

        _give(run(load(model), table, desensitize=desensitize), out, format)
        return
    if config is None:
        raise ConfigError("--with-peers needs -c: the file with which the label party serves.")
    if desensitize:
        raise ConfigError("--desensitize is for one machine: peers desensitise their own columns.")
    found, manifest = _with_peers(model, table, config, again, insecure_plaintext_on_loopback)
    _give(found, out, format)
    if out is not None and format is Format.json:
        print_json(manifest)
    if manifest["left_out"]:
        stderr().print(left_out(manifest))


def _with_peers(
    model: Path, table: Path, config: Path, again: bool, plaintext: bool
) -> tuple[pa.Table, dict[str, Any]]:
    from opboost.transport.label.label_server_process import LabelServerProcess

    console = stderr()
    with ExitStack() as stack:
        label_server = stack.enter_context(LabelServerProcess())  # it loads while this process does
        from opboost.config.job_file import load_label
        from opboost.transport.label.run_over_network import predict_with_peers

        found = replace(load_label(config), table=table)
        board = stack.enter_context(LiveView(console))
        return predict_with_peers(
            found,
            model,
            label_server,
            insecure_plaintext=plaintext,
            again=again,
            watch=board.update,
            say=console.print,
            opened=lambda address: board.opened(found.job, address),
        )


def _give(found: pa.Table, out: Path | None, format: Format) -> None:
    """Predictions to a file, or to standard output."""
    if out is not None:
        write_predictions(found, out)
    elif format is Format.json:
        print_json(found.to_pylist())
    else:
        import pyarrow.csv

        pyarrow.csv.write_csv(found, sys.stdout.buffer)


def write_predictions(found: pa.Table, out: Path) -> None:
    """Predictions to a file that appears when it is whole."""
    from opboost.files.write_tables import TableWriter, appearing

    with appearing(out, folder=False) as partial, TableWriter(partial, out.name) as writer:
        writer.write(found)
    stderr().print(f"{found.num_rows:,} rows -> {out}")


def left_out(manifest: dict[str, Any]) -> str:
    """Say of how many rows nothing is predicted."""
    return f"{manifest['left_out']:,} rows are left out: not all parties have them."
