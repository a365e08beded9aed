"""The command line: one file per command, which parses arguments, calls the library and prints.

Exit status: 0 done, 1 failed, 2 usage, 3 refused for privacy, 4 peer or TLS, 5 data does not fit.
"""

from __future__ import annotations

import errno
import sys
import traceback
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from opboost import __version__
from opboost.cli.audit import audit
from opboost.cli.bundle import bundle
from opboost.cli.card import card
from opboost.cli.certify import certify
from opboost.cli.certs import certs
from opboost.cli.common import json_text
from opboost.cli.demo import demo
from opboost.cli.describe import describe
from opboost.cli.desensitize import desensitize
from opboost.cli.doctor import doctor
from opboost.cli.explore import explore
from opboost.cli.init import init
from opboost.cli.join import join
from opboost.cli.lab_verbs import VerbsAndLab
from opboost.cli.ledger import ledger
from opboost.cli.ledger_change import abort, forget, renew
from opboost.cli.ledger_migrate import migrate
from opboost.cli.plan import plan
from opboost.cli.predict import predict
from opboost.cli.score import score
from opboost.cli.serve import serve
from opboost.cli.signals import exit_on_signals
from opboost.cli.train import train
from opboost.cli.tutorial import tutorial
from opboost.errors import DataError, OpBoostError, PlatformWarning, exit_status, shown

app = typer.Typer(
    name="opboost",
    cls=VerbsAndLab,
    help="Vertical federated gradient boosting by order-preserving desensitization.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_verbs = (
    demo, tutorial, explore, init, describe, plan, desensitize, certify, audit, train, predict,
    score, card, serve, join, doctor,
)  # fmt: skip
for verb in _verbs:
    app.command()(verb)
ledger.command()(renew)
ledger.command()(abort)
ledger.command()(forget)
app.add_typer(bundle, name="bundle")
app.add_typer(certs, name="certs")
app.add_typer(ledger, name="ledger")
ledger.command()(migrate)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"opboost {__version__}")
        raise typer.Exit


@app.callback()
def opboost(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Vertical federated gradient boosting by order-preserving desensitization."""


_UsageError: Any = typer.BadParameter.__mro__[2]
"""click's ``ClickException``, for a wrong option or argument; newer versions of typer bundle it."""


def main() -> None:
    """Run the command line; turn an error into a sentence and an exit status."""
    exit_on_signals()
    warnings.showwarning = _show_warning
    try:
        if _wants_json():
            sys.exit(app(standalone_mode=False))
        app()
    except _UsageError as error:
        _tell(usage_words(error), error.exit_code)
    except OpBoostError as error:
        _tell(words_of(error, at_terminal=sys.stderr.isatty()), exit_status(error))
    except OSError as error:
        _tell(system_words(error), 1)
    except Exception as error:
        if _wants_json():
            _tell(_defect(error), 1, trace=_frames(error))
        if sys.stderr.isatty():
            raise
        typer.echo("".join([*_frames(error), f"opboost: {_defect(error)}"]), err=True)
        sys.exit(1)


_show_other_warning = warnings.showwarning


def _show_warning(
    message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    """Show a ``PlatformWarning`` as one sentence, and any other warning as Python does."""
    if issubclass(category, PlatformWarning):
        typer.echo(f"opboost: {message}", err=True)
    else:
        _show_other_warning(message, category, *where, **more)


def _tell(words: str, status: int, **more: object) -> NoReturn:
    """Print the error to standard error, as JSON under ``--format json``, and exit."""
    report = {"error": words, "status": status, **more}
    typer.echo(json_text(report) if _wants_json() else f"opboost: {words}", err=True)
    sys.exit(status)


def _wants_json() -> bool:
    words = sys.argv[1:]
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def usage_words(error: Any) -> str:
    """Return which option or argument is wrong, and where the right ones are listed."""
    context = getattr(error, "ctx", None)
    verb = "opboost" if context is None else context.command_path
    return shown(f"{error.format_message()} See: {verb} --help")


def words_of(error: OpBoostError, *, at_terminal: bool) -> str:
    """Return the text of an error; only a terminal may show a value of the user's own table."""
    if isinstance(error, DataError) and not at_terminal:
        return error.logged
    return str(error)


def _frames(error: Exception) -> list[str]:
    """Return the stack frames of an unexpected error."""
    return traceback.format_tb(error.__traceback__)


def _defect(error: Exception) -> str:
    """Name an unexpected error without its message, which may hold values of a table."""
    return (
        f"{type(error).__name__}, a defect of OpBoost. Its message may hold values of your table, "
        "so only a terminal shows it."
    )


def system_words(error: OSError) -> str:
    """Return what the system refused; if the disk is full, also what to do."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return str(error)
    place = Path(str(error.filename)).parent if error.filename else "a folder of this party"
    return (
        f"The disk is full ({error.strerror or error}): nothing more can be written to {place}. "
        "Free some space and run the same command again; finished work is kept."
    )
