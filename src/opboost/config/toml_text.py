"""Names and texts in TOML syntax."""

from __future__ import annotations

import re

from opboost.errors import visible

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(name: str) -> str:
    """Return a name as a TOML key, quoted if necessary."""
    return name if _BARE.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as a TOML string, with invisible characters escaped.

    >>> print(toml_text('say "hi"\\n'))
    "say \\"hi\\"\\u000a"
    """
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if visible(character) == character:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
