"""The command line: one file a verb, nothing but arguments, calls and printing.

Exit status: 0 done, 1 failed, 2 usage, 3 privacy refused, 4 peer or TLS, 5 data does not fit.
"""

from __future__ import annotations

import sys

import typer

from opboost.cli import demo
from opboost.errors import DataError, OpBoostError, ParameterError, PrivacyError

app = typer.Typer(
    name="opboost",
    help="Vertical federated gradient boosting by order-preserving desensitization.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)


@app.callback()
def opboost() -> None:
    """Vertical federated gradient boosting by order-preserving desensitization."""


def main() -> None:
    """Run the command line and turn an error into a sentence and an exit status."""
    try:
        app()
    except OpBoostError as error:
        typer.echo(f"opboost: {error}", err=True)
        sys.exit(exit_status(error))


def exit_status(error: OpBoostError) -> int:
    """The exit status of an error."""
    if isinstance(error, ParameterError):
        return 2
    if isinstance(error, PrivacyError):
        return 3
    return 5 if isinstance(error, DataError) else 1
