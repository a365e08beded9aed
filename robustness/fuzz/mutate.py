"""Spoil a sample: as bytes, as a tree of plain values, or as TOML.

The given random generator determines everything, so that a case can be repeated by its number.
"""

import copy
import json
import math
import tomllib
import zlib
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from opboost.config.toml_edit import toml_value
from opboost.config.toml_text import toml_key

INTEGERS = (
    *(0, 1, 2, 3, 7, 8, 9, 10, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 1000, 4096),
    *(2**15, 2**16 - 1, 2**16, 2**18, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32),
    *(2**53, 2**62, 2**63 - 1, -1, -2, -(2**31), -(2**63)),
)
TEXTS = (
    *("", " ", "a", "é", "日本", "\x00", "\n", "\x1b[31m", "..", "../../x", "/", "nan", "None"),
    *("1e999", "0", "-1", "1.5", "true", "[]", "{}", "'", '"', "\\", "%s", "{0}", "\u202e"),
    *("\ufeff", "x" * 300, "y" * 70_000),
)
PLAIN: tuple[Any, ...] = (
    *(None, True, False, 0.5, -0.0, -1.5, 1e-320, 1e308, math.nan, math.inf, -math.inf),
    *(10**30, -(10**400), 2**63, 2**64, "\ud800"),
    *([], {}, [[]], [None], {"": None}, [0, 0], [1, 2, 3], ["a", "a"], [[1, 2], [3, 4]]),
)
MAX_CASE_BYTES = 2**20
"""Spoilt bytes are cut to this length."""


def spoilt(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return the bytes with one to four changes."""
    changed = bytearray(data)
    for _ in range(1 + int(rng.random() ** 2 * 4)):
        _change(rng, changed, others)
    return bytes(changed[:MAX_CASE_BYTES])


def _change(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    size = len(data)
    way = rng.randrange(12)
    if not size or way == 0:
        place = rng.randrange(size + 1)
        data[place:place] = rng.randbytes(1 + rng.randrange(16))
        return
    place = rng.randrange(size)
    span = min(size - place, 1 + int(rng.random() ** 3 * size))
    if way <= 2:
        data[place] ^= 1 << rng.randrange(8)
    elif way == 3:
        data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x2C, rng.randrange(256)))
    elif way <= 6:
        width = rng.choice((1, 2, 4, 4, 8, 8))
        place -= place % min(width, 4)
        number = rng.choice(INTEGERS) + rng.randrange(-1, 2)
        order = "little" if rng.random() < 0.8 else "big"
        data[place : place + width] = (number & (2 ** (8 * width) - 1)).to_bytes(width, order)
    elif way == 7:
        del data[place : size if rng.random() < 0.5 else place + span]
    elif way == 8:
        data[place : place + span] = bytes(span) if rng.random() < 0.5 else b"\xff" * span
    elif way == 9:
        data[place:place] = data[place : place + span]
    elif way == 10 and others:
        other = rng.choice(others)
        begin = rng.randrange(len(other) + 1)
        data[place : place + span] = other[begin : begin + 1 + rng.randrange(size)]
    else:
        target = rng.randrange(size)
        width = min(span, 64)
        data[target : target + width], data[place : place + width] = (
            data[place : place + width],
            data[target : target + width],
        )


def number(rng: Random) -> int:
    """Return an integer at or near a limit."""
    return rng.choice(INTEGERS) + (0 if rng.random() < 0.7 else rng.randrange(-2, 3))


def text(rng: Random) -> str:
    """Return a text that a decoder might not expect."""
    if rng.random() < 0.8:
        return rng.choice(TEXTS[:-1]) if rng.random() < 0.98 else TEXTS[-1]
    return "".join(map(chr, (rng.randrange(1, 0xD000) for _ in range(rng.randrange(20)))))


def plain(rng: Random) -> Any:
    """Return any plain value."""
    way = rng.random()
    if way < 0.35:
        return number(rng)
    if way < 0.6:
        return text(rng)
    return copy.deepcopy(rng.choice(PLAIN))


def spoilt_tree(rng: Random, tree: Any) -> Any:
    """Return a copy of nested lists and dicts with one to three changes."""
    whole = [copy.deepcopy(tree)]
    for _ in range(1 + int(rng.random() ** 2 * 3)):
        _change_tree(rng, whole)
    return whole[0]


def _change_tree(rng: Random, whole: list[Any]) -> None:
    holder, key = _place(rng, whole)
    way = rng.randrange(10)
    value = holder[key]
    if way <= 2:
        holder[key] = plain(rng)
    elif way <= 5:
        holder[key] = _near(rng, value)
    elif way == 6 and holder is not whole:
        del holder[key]
    elif way == 7:
        other, place = _place(rng, whole)
        holder[key] = copy.deepcopy(other[place])
    elif way == 8 and isinstance(value, dict):
        value[text(rng)] = plain(rng)
    elif way == 8 and isinstance(value, list):
        value.insert(rng.randrange(len(value) + 1), plain(rng))
    elif way == 9 and isinstance(holder, dict):
        holder[text(rng) or "k"] = holder.pop(key)
    else:
        for _ in range(rng.choice((1, 1, 2, 40))):
            value = [value] if rng.random() < 0.5 else {"a": value}
        holder[key] = value


def _place(rng: Random, whole: list[Any]) -> tuple[Any, Any]:
    holder: Any = whole
    key: Any = 0
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.9:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    return holder, key


def _near(rng: Random, value: Any) -> Any:
    """Return a changed value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        fraction = value / 3 if abs(value) < 2**99 else 0.5
        near = (value + 1, value - 1, -value, value * 2, fraction, value + 10**30)
        return rng.choice((number(rng), *near))
    if isinstance(value, float):
        return rng.choice((number(rng), value * -1, value * 1e300, value + 1e-9, math.nan))
    if isinstance(value, bytes):
        return spoilt_packed(rng, value)[:100_000]
    if isinstance(value, str) and value[:1] == "{" and rng.random() < 0.8:
        return spoilt_json(rng, value.encode(errors="replace")).decode(errors="replace")
    if isinstance(value, str):
        spelt = list(value)
        place = rng.randrange(len(spelt) + 1)
        spelt[place : place + rng.randrange(2)] = text(rng)[:8]
        return rng.choice((text(rng), "".join(spelt), value.upper(), value + value, value[:-1]))
    if isinstance(value, list):
        return rng.choice((value[::-1], value + value, value[:1], value[1:], value * 20))
    return plain(rng)


def spoilt_json(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return changed JSON, which in most cases is still well-formed."""
    way = rng.random()
    if way < 0.2:
        return spoilt(rng, data, others)
    if way < 0.22:
        depth = rng.choice((10, 1000, 100_000))
        return rng.choice(
            (b"[" * depth, b'{"a":' * depth, b"9" * min(depth, 9000), b"[" * depth + b"]" * depth)
        )
    try:
        return json.dumps(spoilt_tree(rng, json.loads(data))).encode()
    except (ValueError, RecursionError):
        return spoilt(rng, data, others)


def spoilt_packed(rng: Random, data: bytes) -> bytes:
    """Change packed JSON before it is packed, and everything else as bytes."""
    with suppress(zlib.error):
        if data[:1] == b"\x78" and rng.random() < 0.9:
            bomb = rng.random() < 0.02
            return zlib.compress(bytes(2**24) if bomb else spoilt_json(rng, zlib.decompress(data)))
    return spoilt(rng, data)


def spoilt_by_kind(rng: Random, data: bytes) -> bytes:
    """Change JSON as JSON, and everything else as bytes."""
    return (spoilt_json if data[:1] in (b"{", b"[") else spoilt)(rng, data)


def to_toml(tree: dict[str, Any]) -> str:
    """Return a dict as TOML, without what TOML cannot express."""
    lines = []
    for key, value in sorted(_in_toml(tree).items(), key=lambda item: isinstance(item[1], dict)):
        section = isinstance(value, dict)
        lines += [f"[{toml_key(key)}]"] * section
        pairs = value if section else {key: value}
        lines += [f"{toml_key(name)} = {toml_value(one)}" for name, one in pairs.items()]
    return "\n".join(lines) + "\n"


def _in_toml(value: Any) -> Any:
    """Return a value without what TOML cannot express."""
    if isinstance(value, dict):
        return {key: _in_toml(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_in_toml(one) for one in value if one is not None]
    return value.replace("\ud800", "?") if isinstance(value, str) else value


TOML_TOKENS = (
    *("1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "0x7fffffffffffffff", "1_000"),
    *("inf", "nan", "[", "]", "{}", "[[columns]]", "[a.b.c]", "'''", '"""', "#", "=", "."),
    *("\r\n", "\t", '"\\u0000"'),
)


def spoilt_toml(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return changed TOML, which in most cases is still well-formed."""
    way = rng.random()
    if way < 0.6:
        changed = spoilt_tree(rng, tomllib.loads(data.decode()))
        if isinstance(changed, dict):
            return to_toml(changed).encode("utf-8", "replace")
    if way < 0.75:
        lines = data.splitlines()
        place = rng.randrange(len(lines))
        key = lines[place].partition(b"=")[0]
        token = rng.choice(TOML_TOKENS).encode()
        lines[place] = rng.choice((key + b"= " + token, token, lines[place] + token, b""))
        if rng.random() < 0.3:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        return b"\n".join(lines)
    if way < 0.77:
        depth = rng.choice((10, 1000, 4000))
        odd = (b"[" * depth, b"9" * min(depth, 9000), b"{a=" * depth, b"[" * depth + b"]" * depth)
        return data + b"\n" + b"[x]\ny = " + rng.choice(odd)
    return spoilt(rng, data, others)
