"""Tables of data that stand beside the code, in TOML."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def toml_data(package: str, name: str) -> dict[str, Any]:
    """The file ``name.toml`` of a package."""
    file = resources.files(package).joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
