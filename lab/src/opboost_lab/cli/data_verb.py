"""``opboost data``: list, locate and fetch the data sets of the experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stderr, stdout, steps_progress

data = typer.Typer(help="Data sets of the experiments.", no_args_is_help=True)


@data.command("list")
def show(
    verify: Annotated[bool, typer.Option("--verify", help="Compare checksums too.")] = False,
    format: FormatOption = Format.text,
) -> None:
    """List the data sets, and say which are here.

    \b
    Examples:
      opboost data list
      opboost data list --verify --format json
    """
    from opboost_lab.data import sources

    folder = sources.target()
    lines: list[dict[str, Any]] = []
    for s in sources.SOURCES.values():
        about: dict[str, Any] = {"title": s.title, "licence": s.licence}
        about["from"] = [d.url for d in s.downloads] or [s.account]
        for f in s.files:
            path = sources.path_of(folder, f)
            state = "here" if path.is_file() else "account needed" if s.account else "to fetch"
            if verify and state == "here":
                state = "verified" if sources.verified(folder, f) else "ALTERED"
            file = {"name": s.name, "file": path.name, "rows": f.rows, "state": state}
            lines.append(file | about)
    if format is Format.json:
        print_json({"folder": str(folder), "files": lines})
        return
    shown = Table(title=f"Data in {folder}")
    for title in ("name", "file", "rows", "state"):
        shown.add_column(title, justify="right" if title == "rows" else "left", no_wrap=True)
    for line in lines:
        shown.add_row(line["name"], line["file"], f"{line['rows']:,}", line["state"])
    stdout().print(shown)


@data.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names as listed, or all.")],
    file: Annotated[
        Path | None, typer.Option(help="The publisher's file, if you have loaded it yourself.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what is here already.")] = False,
    format: FormatOption = Format.text,
) -> None:
    """Download data sets from their publishers, check them, and keep them as CSV tables.

    They go into the folder that OPBOOST_DATA names, else into your cache folder.

    \b
    Examples:
      opboost data fetch adult casp
      opboost data fetch salaries --file Salaries.csv
    """
    from opboost.errors import ParameterError
    from opboost_lab.data import sources

    everything = names == ["all"]
    wanted = [sources.source(n) for n in (sources.SOURCES if everything else names)]
    if file is not None and len(wanted) != 1:
        raise ParameterError("--file belongs to one data set; name that one alone.")
    folder, got = sources.target(), []
    with steps_progress() as told:
        for s in wanted:
            if not s.missing(folder) and not again:
                stderr().print(f"{s.name} is here already.")
            elif everything and s.account:
                stderr().print(f"{s.name} is left out. {s.account}")
            else:
                got += sources.fetch(s, folder, told, file)
                stderr().print(f"{s.name}: fetched and checked. Licence: {s.licence}.")
    if format is Format.json:
        print_json({"folder": str(folder), "fetched": [str(p) for p in got]})
        return
    for path in got:
        typer.echo(path)


@data.command()
def path(format: FormatOption = Format.text) -> None:
    """Print the folder of the data sets, whether or not it exists.

    \b
    Example:
      opboost data path
    """
    from opboost_lab.data import sources

    if format is Format.json:
        print_json({"folder": str(sources.target())})
        return
    typer.echo(sources.target())
