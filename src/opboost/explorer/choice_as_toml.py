"""The choice as TOML: what ``opboost certify`` and all other verbs read."""

from __future__ import annotations

import json
import re

from opboost.explorer.choice import Choice
from opboost.mechanisms import registry

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(choice: Choice, label: str = "") -> str:
    """The file that says what was chosen.

    ``label`` is the column to be learnt, about which the file says nothing.

    >>> from opboost.config.columns_file import parse
    >>> from opboost.explorer.choice import Form, chosen
    >>> choice, _ = chosen(Form.of({"kind": "adj-map"}, [("a \\"b\\"", "0", "1.5"), ("c", "", "")]))
    >>> print(text := as_toml(choice))
    [grid]
    lower = 1
    upper = 10
    <BLANKLINE>
    [mechanism]
    kind = "adj-map"
    epsilon = 0.64
    theta = 2
    alpha = 1.0
    <BLANKLINE>
    [columns."a \\"b\\""]
    bounds = [0.0, 1.5]
    <BLANKLINE>
    [table]
    drop = ["c"]
    <BLANKLINE>
    >>> parse(text, "b.toml").private[0].mechanism == choice.mechanism
    True
    """
    grid = choice.mechanism.domain
    parts = [
        f"[grid]\nlower = {grid.L}\nupper = {grid.R}\n",
        f'[mechanism]\nkind = "{choice.kind}"\n{_parameters(choice)}',
    ]
    for name, mapping in choice.mappings.items():
        if name != label:
            lower, upper = mapping.bounds
            parts.append(f"[columns.{_key(name)}]\nbounds = [{lower!r}, {upper!r}]\n")
    if drop := [name for name in choice.undeclared if name != label]:
        parts.append(f"[table]\ndrop = [{', '.join(map(_text, drop))}]\n")
    return "\n".join(parts)


def _parameters(choice: Choice) -> str:
    values = registry.values_of(choice.mechanism)
    names = [p.name for p in registry.BY_KIND[choice.kind].toml_parameters() if p.name in values]
    return "".join(f"{name} = {values[name]!r}\n" for name in names)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
