"""Messages of drivers, without credentials."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from pathlib import Path

from opboost.errors import in_words

SECRET_VARIABLES = (
    "PGPASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
)
"""Environment variables whose values never appear in a message."""

WITHHELD = "the driver's own message holds a credential and is not shown"

_ASSIGNED = re.compile(r"(?i)(password|passwd|secret\w*|token)\s*[=:]\s*\S")
_USERINFO = re.compile(r"//[^/@\s]*:[^/@\s]*@")
_SERVER_SAID = re.compile(r"(?:ERROR|FATAL):\s+(.*)")


def driver_words(error: BaseException) -> str:
    """Return a driver's message, or a notice if the message contains a credential.

    Of a long message, only the server's part is kept, because drivers repeat the whole query.

    >>> driver_words(OSError("prepare: ERROR:  relation \\"a\\" does not exist\\nLINE 1: SELECT"))
    'relation "a" does not exist'
    >>> driver_words(OSError("cannot open postgresql://me:geheim@host/shop"))
    "the driver's own message holds a credential and is not shown"
    """
    text = str(error)
    if _ASSIGNED.search(text) or _USERINFO.search(text):
        return WITHHELD
    if any(secret in text for secret in _secrets()):
        return WITHHELD
    said = _SERVER_SAID.search(text)
    return in_words(Exception(said[1])) if said else in_words(error)


def _secrets() -> Iterator[str]:
    """Yield every credential that a driver may find, in the environment or in its usual files."""
    yield from filter(None, map(os.environ.get, SECRET_VARIABLES))
    for line in _lines(os.environ.get("PGPASSFILE") or "~/.pgpass"):
        fields = re.split(r"(?<!\\):", line.strip(), maxsplit=4)
        if len(fields) == 5 and not line.startswith("#"):
            yield re.sub(r"\\(.)", r"\1", fields[4])
    profiles = configparser.RawConfigParser(strict=False)
    try:
        place = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
        profiles.read_string("\n".join(_lines(place)))
    except configparser.Error:
        return
    for name in profiles.sections():
        yield from filter(None, (value for _, value in profiles.items(name)))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).expanduser().read_text("utf-8", errors="replace").splitlines()
    except (OSError, RuntimeError):
        return []
