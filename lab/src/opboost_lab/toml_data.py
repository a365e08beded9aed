"""Read the TOML files that are stored next to the code."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def toml_data(package: str, name: str) -> dict[str, Any]:
    """Return the content of ``name.toml`` in a package."""
    file = resources.files(package).joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
