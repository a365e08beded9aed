"""The command line, called in this process."""

from functools import lru_cache

import typer.testing

from opboost import cli
from opboost.errors import OpBoostError, exit_status

# Typer would build all commands again for every call, which takes longer than most commands.
typer.testing._get_command = lru_cache(maxsize=1)(typer.main.get_command)  # type: ignore[attr-defined]


def run(*arguments):
    """Run the command line in this process; return its status, output and messages."""
    result = typer.testing.CliRunner().invoke(cli.app, list(map(str, arguments)))
    if isinstance(result.exception, OpBoostError):
        return exit_status(result.exception), result.stdout, str(result.exception)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
