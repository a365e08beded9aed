"""What the commands share: options, output formats, messages and progress bars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from opboost.errors import unseen, visible

if TYPE_CHECKING:
    from opboost.config.csv_format import CsvFormat
    from opboost.sources.table_address import TableAddress


class Format(StrEnum):
    """The output format."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="text or json.")]
NewLedgerOption = Annotated[
    bool,
    typer.Option("--new-ledger", help="Begin an empty ledger even if its key exists."),
]
TableArgument = Annotated[
    str, typer.Argument(help="CSV or Parquet file, a folder of them, or a URI (docs: sources).")
]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The TOML file.")]
PlaintextOption = Annotated[
    bool, typer.Option(help="No TLS, and names are not verified: only for trials on this machine.")
]


SeparatorOption = Annotated[
    str | None, typer.Option(help="CSV: the field separator, such as ';' or tab.")
]
EncodingOption = Annotated[
    str | None, typer.Option(help="CSV: the encoding of the text, such as cp1252 or utf-16.")
]
DecimalOption = Annotated[
    str | None, typer.Option(help="CSV: the decimal mark of numbers, '.' or ','.")
]


def csv_format(
    separator: str | None, encoding: str | None, decimal: str | None, form: CsvFormat | None = None
) -> CsvFormat:
    """Return the format of CSV files: from the options, or else from the configuration."""
    from opboost.config.csv_format import CsvFormat

    form = form or CsvFormat()
    return CsvFormat(
        separator or form.separator, encoding or form.encoding, decimal or form.decimal
    )


class _Plain(Console):
    """A console that prints text literally: no markup, no emoji codes, no control characters."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Render a text literally, with invisible characters spelt out."""
        return super().render_str(visible(text, keep="\n"), **settings)


def stderr() -> Console:
    """Return the console for messages, standard error: standard output is for data only."""
    return _Plain(stderr=True, soft_wrap=True)


def stdout() -> Console:
    """Return the console for tables, standard output, which prints brackets literally."""
    return _Plain()


def echo(text: object) -> None:
    """Print lines of data to standard output, with invisible characters spelt out."""
    typer.echo(visible(text, keep="\n"))


def record_line(total: float) -> str:
    """Return a command's last line after a release: the most revealed about one person.

    >>> record_line(4.0)
    "One person's record: at most 4."
    """
    if not math.isfinite(total):
        return "One person's record: nothing is promised."
    return f"One person's record: at most {total:.6g}."


def check_release(config: Path, table: TableAddress | None = None) -> None:
    """Refuse a file as ``opboost join`` would, with the same message and exit status."""
    from opboost.transport.feature.release_checks import check_file

    for absent in check_file(config, table):
        stderr().print(f"Not checked, because it is not there: {absent}.")


def warn_of_total(total: float) -> None:
    """Print a warning to standard error if a record total hides next to nothing."""
    from opboost.promises import large_total_warning

    if (warning := large_total_warning(total)) is not None:
        stderr().print(warning)


def echo_promise(promise: object) -> None:
    """Print a promise column by column, without the total, which is the command's last line."""
    lines = str(promise).split("\n")
    echo("\n".join(line for line in lines if not line.startswith("one person's record: ")))


def print_json(value: Any) -> None:
    """Print a value to standard output as JSON, with infinities as null."""
    typer.echo(as_json(value))


def as_json(value: Any) -> str:
    """Return a value as indented JSON, with infinities as null.

    >>> print(as_json({"total": math.inf}))
    {
      "total": null
    }
    """
    return json_text(_finite(value), indent=2)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON with characters unescaped, except for invisible ones.

    >>> print(json_text({"größe": "\\u202e"}))
    {"größe": "\\u202e"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if not unseen(text.replace("\n", "")):
        return text
    return "".join(json.dumps(c)[1:-1] if c != "\n" and unseen(c) else c for c in text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


@contextmanager
def bytes_progress(title: str, total: int) -> Iterator[Any]:
    """Show a progress bar; yield a function that takes the number of bytes done.

    ``total`` is 0 if it is not known.  Nothing is shown without a terminal.
    """
    console = stderr()
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(title, total=total or None)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def steps_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar per kind of work; yield a function that takes the kind, steps done and total."""
    console = stderr()
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    tasks: dict[str, TaskID] = {}

    def progress(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=done, total=total)

    with bar:
        yield progress
