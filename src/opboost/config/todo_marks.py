"""The TODO marks of ``opboost init``, for facts that only the owner of a table knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opboost.errors import ConfigError

TODO = "TODO"

_WANTED = {
    "bounds": "bounds = [lower, upper], the lowest and highest value that is possible",
    "categories": 'categories = ["...", "..."], every value that is possible',
}


def refuse_todo(plain: dict[str, Any], source: str) -> None:
    """Refuse a file that still has a TODO mark, and name the column.

    >>> refuse_todo({"columns": {"age": {"bounds": "TODO"}}}, "shop.toml")
    Traceback (most recent call last):
    opboost.errors.ConfigError: shop.toml: column 'age' is still a TODO: write bounds = [lower,
    upper], the lowest and highest value that is possible, from what you know and never from the
    rows.
    """
    for name, setting in todo_marks(plain):
        if setting in _WANTED:
            raise ConfigError(
                f"{source}: column {name!r} is still a TODO: write {_WANTED[setting]}, from what "
                "you know and never from the rows."
            )
        raise ConfigError(f"{source}: {name} is still a TODO: fill it in.")


def todo_marks(plain: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the column and setting of each mark; outside columns, the setting and an empty text."""
    columns = plain.get("columns")
    for column, section in columns.items() if isinstance(columns, dict) else ():
        for setting in _WANTED if isinstance(section, dict) else ():
            value = section.get(setting)
            half = setting == "bounds" and isinstance(value, list) and TODO in value
            # A single category is never valid, but a longer list may hold a category of this name.
            if value in (TODO, [TODO]) or half:
                yield column, setting
    for name, section in plain.items():
        for setting, value in section.items() if isinstance(section, dict) else ():
            if value == TODO and name != "columns":
                yield f"[{name}] {setting}", ""
