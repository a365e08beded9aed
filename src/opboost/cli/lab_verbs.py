"""The commands that come with the distribution ``opboost-lab``: reproduce, bench, data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from opboost.errors import ParameterError

GROUP = "opboost.verbs"
"""The entry point group under which a distribution lists the commands that it adds."""

LAB_VERBS = {
    "reproduce": "Reproduce the paper's tables and figures",
    "bench": "Time this library beside its peers",
    "data": "Fetch the data sets of the experiments",
}


class VerbsAndLab(TyperGroup):
    """The commands of the product and those of the lab.

    The lab's commands are looked up only to run one of them or to list all commands, because the
    lookup searches all installed distributions.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None."""
        if cmd_name not in self.commands:
            self._find_lab()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        self._find_lab()
        return super().list_commands(ctx)

    def _find_lab(self) -> None:
        lab = typer.Typer(rich_markup_mode=None)
        _add_lab_verbs(lab)
        self.commands.update(get_group(lab).commands)


def _add_lab_verbs(app: typer.Typer) -> None:
    """Add the lab's commands; in place of missing ones, add some that say how to install them."""
    from importlib.metadata import entry_points  # which also imports a parser of mail headers

    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name, purpose in LAB_VERBS.items():
        if name not in installed:
            words = f"{purpose} (needs opboost-lab)."
            app.command(name, help=words, context_settings=_ANY_ARGUMENTS)(_absent(name))
            continue
        verb = installed[name].load()
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name)(verb)


_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def _absent(name: str) -> Callable[[typer.Context], None]:
    def absent(context: typer.Context) -> None:
        raise ParameterError(
            f"`opboost {name}` comes with the laboratory, which is not installed. "
            "Install it: pip install opboost-lab"
        )

    return absent
