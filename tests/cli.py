"""The command line, called in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from opboost import cli
from opboost.errors import OpBoostError


def run(*arguments):
    """The command line in this process: its output, and its exit status."""
    result = CliRunner().invoke(cli.app, list(map(str, arguments)))
    if isinstance(result.exception, OpBoostError):
        return cli.exit_status(result.exception), "", str(result.exception)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
