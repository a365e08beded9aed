"""The verbs that come with the distribution ``opboost-lab``: reproduce, bench, data."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

import typer

from opboost.errors import ParameterError

GROUP = "opboost.verbs"
"""The entry point group in which a distribution lists the verbs that it adds."""

LAB_VERBS = {
    "reproduce": "Reproduce the paper's tables and figures",
    "bench": "Time this library beside its peers",
    "data": "Fetch the data sets of the experiments",
}


def add_lab_verbs(app: typer.Typer) -> None:
    """Add the lab's verbs, or in their place commands that say how to install them."""
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
