"""``opboost tutorial``: write the tutorial's files, for an installation by pip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opboost.cli.common import Format, FormatOption, echo, print_json, stderr


def tutorial(
    folder: Annotated[Path, typer.Argument(help="A folder that is empty or does not exist yet.")],
    format: FormatOption = Format.text,
) -> None:
    """Write the tutorial's files: tables of a bank and a shop, their TOML files, and the steps.

    \b
    Examples:
      opboost tutorial credit
    """
    from opboost.demo.tutorial_files import write_tutorial

    written = write_tutorial(folder)
    if format is Format.json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        echo(path)
    stderr().print(f"Next: cd {folder}, and follow README.md there.")
