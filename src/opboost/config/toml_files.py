"""Read TOML files, and explain what is wrong with them."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opboost.config.sections import Section, SpellingSection
from opboost.errors import ConfigError, in_words, shown


def read(path: Path) -> str:
    """Return the text of a configuration file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path.name} is not UTF-8 text. Save it as UTF-8.") from None
    except ValueError:  # a path with a zero byte in it
        raise ConfigError(f"{str(path)!r} cannot be the path of a file. Correct it.") from None


def read_weights(path: Path) -> dict[str, float]:
    """Return the weights of columns in a JSON file: ``{"age": 1.0, "pay": 0.125}``."""
    try:
        plain = json.loads(read(path))
    except (ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict) or not all(
        isinstance(w, int | float) and not isinstance(w, bool) for w in plain.values()
    ):
        raise ConfigError(
            f"{path.name} does not hold weights of columns. Write JSON with a number per column: "
            '{"age": 1.0, "pay": 0.125}.'
        )
    return plain


def toml(text: str, source: str) -> dict[str, Any]:
    """Return the file's plain values."""
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source} is not TOML: {in_words(error)}.") from None
    if _has_nul(plain):
        raise ConfigError(f"{source} contains a NUL character, which no name or path can have.")
    return plain


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


_BRANCHES = ("function-", "list[", "tuple[", "literal[")
"""How pydantic names the alternatives that it tried for a value; no setting has these names."""

_RULE = "Input should be "
"""How pydantic's messages begin."""


def first_problem(
    error: ValidationError,
    source: str,
    whole: type[Section],
    sections: Mapping[str, type[Section]],
) -> str:
    """Return a helpful message about the first problem in a file."""
    problem, *others = error.errors()
    parts = [shown(p, 60) for p in problem["loc"] if not str(p).startswith(_BRANCHES)]
    place = "".join(f"[{parts[0]}]" if i == 0 else f".{p}" for i, p in enumerate(parts))
    if problem["type"] == "extra_forbidden":
        holders = [sections[p] for p in parts[:-1] if p in sections]
        known = list((holders[-1] if holders else whole).model_fields)
        near = difflib.get_close_matches(parts[-1], known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known settings: {', '.join(known)}."
        if parts[0] == "align" and parts[-1] in SpellingSection.model_fields:
            hint = "Write it into the job file, which all parties have."
        return f"{source}: {'.'.join(parts)} is not a setting. {hint}"
    message = problem["msg"].removeprefix("Value error, ")
    if str(problem["loc"][-1]).startswith("literal["):  # other kinds of value are allowed too
        kinds = [e["msg"] for e in others if e["loc"][:-1] == problem["loc"][:-1]]
        message = " or ".join([message, *(k.removeprefix(_RULE).split(",")[0] for k in kinds)])
    value = problem["input"]
    got = "" if isinstance(value, dict) else f"; got {shown(repr(value), 100)}"
    return f"{source}: {'.'.join(parts) or place}: {message}{got}."
