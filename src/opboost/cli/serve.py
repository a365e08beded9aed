"""``opboost serve``: run the label party."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    PlaintextOption,
    echo,
    echo_promise,
    print_json,
    record_line,
    stderr,
    stdout,
)
from opboost.cli.live_view import LiveView, table_of
from opboost.errors import ConfigError
from opboost.runtime.loading import loading
from opboost.runtime.optional_packages import load_pyarrow_alone, load_xgboost_alone


def serve(
    config: ConfigOption,
    status: Annotated[bool, typer.Option("--status", help="Show the state of the job.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Begin a new run of a job that is finished.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(help="Serve Prometheus metrics on host:port.")
    ] = None,
    insecure_plaintext_on_loopback: PlaintextOption = False,
    format: FormatOption = Format.text,
) -> None:
    """Wait for the feature parties, train, request the split values, and write the model.

    \b
    Examples:
      opboost serve -c bank.toml
      opboost serve -c bank.toml --status
      opboost serve -c bank.toml --again --metrics 127.0.0.1:9100
    """
    if status:
        _show(_status(config), format)
        return
    from opboost.transport.label.label_server_process import LabelServerProcess

    console = stderr()
    with ExitStack() as stack:
        label_server = stack.enter_context(LabelServerProcess())  # loads in the background
        with loading:
            load_pyarrow_alone()
            from opboost.config.job_file import load_label
            from opboost.transport.label.run_over_network import serve as run

        found = load_label(config)
        if found.booster.kind == "xgboost" and found.booster.engine == "local":
            with loading:
                load_xgboost_alone()
        if metrics is not None:
            from opboost.transport.label.job_metrics import serving_metrics

            stack.enter_context(serving_metrics(metrics, found.state))
        board = stack.enter_context(LiveView(console))
        manifest = run(
            found,
            label_server,
            insecure_plaintext=insecure_plaintext_on_loopback,
            again=again,
            watch=board.update,
            say=console.print,
            opened=lambda address: board.opened(found.job, address),
        )
    if format is Format.json:
        print_json(manifest)
        return
    if not board.drawn:
        console.print(
            f"Job {manifest['job']} finished at {manifest['finished']}; this is its manifest. "
            "Start a new run with --again."
        )
    echo_promise(manifest["guarantee"])
    for name, party in manifest["parties"].items():
        echo(f"{name}: {party['columns']} columns, {party['bytes']:,} bytes")
    console.print(f"-> {found.model} ({manifest['seconds']:.1f} s)")
    if "score_line" in manifest:
        echo(manifest["score_line"])
    if "total" in manifest:  # jobs of version 0.1 did not record it
        echo(record_line(manifest["total"]))


def _status(config: Path) -> dict[str, Any]:
    from opboost.config.job_file import load_label
    from opboost.transport.label.job_folder import jobs, status

    state = load_label(config).state
    known = jobs(state)
    if not known:
        raise ConfigError(f"No job has begun in {state} yet.")
    return status(known[-1])


def _show(where: dict[str, Any], format: Format) -> None:
    if format is Format.json:
        print_json(where)
    else:
        stdout().print(table_of(where))
