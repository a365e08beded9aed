"""``opboost explore``: local web pages for planning a record total and watching a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opboost.cli.common import Format, FormatOption, print_json, stderr
from opboost.errors import ConfigError


def explore(
    table: Annotated[
        str | None, typer.Argument(help="A file to try models on; the page lists its columns.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="TOML file with [columns]: plan these columns."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="TOML file with [ledger]: show the remaining budget."),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(help="A job's folder, or the label party's state folder: watch the job."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 picks a free one.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    format: FormatOption = Format.text,
) -> None:
    """Open a local page: state a record total and see its plan, or choose a mechanism by ε.

    It serves only this machine, under an address that contains a random token.

    \b
    Examples:
      opboost explore
      opboost explore -c b.toml
      opboost explore people.csv --ledger shop.toml
      opboost explore --job state --no-open
    """
    from opboost.runtime.extras import needs_extra
    from opboost.sources.source_uri import is_uri

    with needs_extra("explore", "`opboost explore`"):
        from opboost.explorer.server import Site, serve

    if table is not None and is_uri(table):
        raise ConfigError("`opboost explore` tries mechanisms on a file. Export rows to CSV first.")
    console = stderr()

    def opened(address: str) -> None:
        if format is Format.json:
            print_json({"address": address})
        else:
            typer.echo(address)
            console.print("Only this machine can open this page. Press Ctrl-C to stop.")
        if open_browser and console.is_terminal:
            import webbrowser

            webbrowser.open(address)

    serve(Site.of(Path(table) if table else None, ledger, job, config), port=port, opened=opened)
