"""The choice as TOML, which ``opboost certify`` and all other commands read."""

from __future__ import annotations

from opboost.config.toml_text import toml_key, toml_text
from opboost.explorer.choice import Choice
from opboost.mechanisms import registry


def as_toml(choice: Choice, label: str = "") -> str:
    """Return the text of a configuration file with this choice.

    ``label`` is the column to predict, which the file does not mention.

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
            parts.append(f"[columns.{toml_key(name)}]\nbounds = [{lower!r}, {upper!r}]\n")
    if drop := [name for name in choice.undeclared if name != label]:
        parts.append(f"[table]\ndrop = [{', '.join(map(toml_text, drop))}]\n")
    return "\n".join(parts)


def _parameters(choice: Choice) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in parameters_of(choice).items())


def parameters_of(choice: Choice) -> dict[str, float | int]:
    """Return the parameters of the mechanism that a file must name."""
    values, entry = registry.values_of(choice.mechanism), registry.BY_KIND[choice.kind]
    said = [p.name for p in entry.toml_parameters() if values.get(p.name) not in (None, p.default)]
    return {name: values[name] for name in said}
