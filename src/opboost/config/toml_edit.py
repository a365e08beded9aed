"""Change keys of a TOML text, and keep every other byte: tables, keys, comments and order."""

from __future__ import annotations

import copy
import datetime
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opboost.config.toml_text import toml_key, toml_text
from opboost.errors import ConfigError

KeyPath = tuple[str, ...]

_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|'
    r"'''.*?'{3,5}(?!')|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """The position of a header, or of a key with its value; ``end`` is after its line."""

    start: int
    end: int
    table: KeyPath
    path: KeyPath
    value: tuple[int, int] | None
    """The position of the value; None for a header."""


def changed(text: str, values: Mapping[KeyPath, Any], source: str = "the file") -> str:
    """Return the text with these keys set; comment out a key or table whose value is None.

    A key that already has the value stays as it was written.

    >>> text = "# ours\\n[budget]\\nrecord = 4  # signed\\nradius = 0.1\\n[tls]\\nkit = 'certs'\\n"
    >>> values = {("budget", "record"): 2.0, ("budget", "radius"): None, ("grid", "upper"): 20}
    >>> print(changed(text, values))
    # ours
    [budget]
    record = 2.0  # signed
    # radius = 0.1
    [tls]
    kit = 'certs'
    <BLANKLINE>
    [grid]
    upper = 20
    <BLANKLINE>
    """
    plain = tomllib.loads(text)
    for path, value in values.items():
        plain = _with(plain, path, value)
        text = _one_changed(text, path, value)
    try:
        kept = _without_empty(tomllib.loads(text)) == _without_empty(plain)
    except ValueError:
        kept = False
    if not kept:
        listed = ", ".join(".".join(path) for path in values)
        raise ConfigError(
            f"{source} is written so that {listed} cannot be changed on its own. Change it by hand."
        )
    return text


def toml_value(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> toml_value({"a b": [1, 2.5, "x"], "on": True})
    '{ "a b" = [1, 2.5, "x"], on = true }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return repr(value)


def _one_changed(text: str, path: KeyPath, value: Any) -> str:
    found = list(_statements(text))
    inside = [s for s in found if s.path[: len(path)] == path]
    holder = next(
        (s for s in found if s.value and len(s.path) < len(path) and path[: len(s.path)] == s.path),
        None,
    )
    if holder is not None and holder.value is not None:  # an inline table
        begin, end = holder.value
        held = tomllib.loads(f"held = {text[begin:end]}")["held"]
        if not isinstance(held, dict):
            return text
        put = _with(held, path[len(holder.path) :], value)
        return text if put == held else text[:begin] + toml_value(put) + text[end:]
    if value is None:
        for statement in reversed(inside):
            lines = text[statement.start : statement.end].splitlines(keepends=True)
            commented = "".join(f"# {line}" for line in lines)
            text = text[: statement.start] + commented + text[statement.end :]
        return text
    if inside:
        (begin, end) = inside[0].value or (0, 0)
        if tomllib.loads(f"held = {text[begin:end]}")["held"] == value:
            return text
        return text[:begin] + toml_value(value) + text[end:]
    return _inserted(text, found, path, toml_value(value))


def _inserted(text: str, found: list[_Statement], path: KeyPath, value: str) -> str:
    """Return the text with a new key: after its table's last key, or in a new table."""
    table, newline = path[:-1], "\r\n" if "\r\n" in text else "\n"
    beside = [
        s
        for s in found
        if s.path[: len(table)] == table
        and (len(s.table) <= len(table) if s.value else s.path == table)
    ]
    if beside:
        last = beside[-1]
        known = last.table if last.value else last.path
        line = f"{_dotted(path[len(known) :])} = {value}{newline}"
        before = text[: last.end]
        return f"{before}{'' if before.endswith(chr(10)) else newline}{line}{text[last.end :]}"
    gap = "" if not text or text.endswith("\n") else newline
    lead = newline if text.strip() else ""
    header = f"[{_dotted(table)}]{newline}" if table else ""
    return f"{text}{gap}{lead}{header}{toml_key(path[-1])} = {value}{newline}"


def _dotted(path: KeyPath) -> str:
    return ".".join(map(toml_key, path))


def _with(plain: dict[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """Return the values with one of them set or removed."""
    made = copy.copy(plain)
    if len(path) > 1:
        inner = made.get(path[0], {})
        if isinstance(inner, dict) or value is not None:
            made[path[0]] = _with(inner if isinstance(inner, dict) else {}, path[1:], value)
    elif value is None:
        made.pop(path[0], None)
    else:
        made[path[0]] = list(value) if isinstance(value, tuple) else value
    return made


def _without_empty(value: Any) -> Any:
    """Return the values without empty tables, such as one whose keys are commented out."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner != {}}


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the headers and keys of a valid TOML text in order."""
    place, table, elements = 0, KeyPath(), 0
    while place < len(text):
        start = place
        place = _skipped(text, place)
        if place >= len(text):
            return
        if text[place] in "\r\n#":
            place = _line_end(text, place)
        elif text[place] == "[":
            many = text.startswith("[[", place)
            table, place = _key(text, place + 1 + many)
            if many:  # each element is a separate table, which no key path names
                elements += 1
                table = (*table, f"[{elements}]")
            place = _line_end(text, place)
            yield _Statement(start, place, table, table, None)
        else:
            key, place = _key(text, place)
            begin = _skipped(text, place + 1)
            end = _value_end(text, begin)
            place = _line_end(text, end)
            yield _Statement(start, place, table, (*table, *key), (begin, end))


def _key(text: str, place: int) -> tuple[KeyPath, int]:
    """Return the parts of a dotted key, and the position after it."""
    parts = []
    while True:
        match = _KEY.match(text, place)
        assert match is not None  # the text is valid TOML
        raw, place = match[1], match.end()
        parts.append(tomllib.loads(f"key = {raw}")["key"] if raw[0] in "\"'" else raw)
        if text[place : place + 1] != ".":
            return tuple(parts), place
        place += 1


def _value_end(text: str, place: int) -> int:
    """Return the position after a value, without trailing blanks."""
    depth = end = 0
    while place < len(text):
        if string := _STRING.match(text, place):
            place = end = string.end()
            continue
        character = text[place]
        if character == "#":
            if not depth:
                break
            place = _line_end(text, place) - 1
        elif character == "\n" and not depth:
            break
        depth += (character in "[{") - (character in "]}")
        place += 1
        if not character.isspace() and character != "#":
            end = place
    return end


def _skipped(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t":
        place += 1
    return place


def _line_end(text: str, place: int) -> int:
    """Return the position after the end of the line."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1
