"""Decide who may request scores: clients with the key or, without one, programs on this machine."""

from __future__ import annotations

import hmac
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

from opboost.errors import ConfigError
from opboost.scoring.refusals import NO_KEY, NOT_FROM_HERE, RequestRefused

KEY_VARIABLE = "OPBOOST_SCORE_KEY"
MIN_KEY_CHARACTERS = 16

OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""The paths that are answered without a key: an orchestrator's probes send none."""


def read_key(file: Path | None) -> bytes | None:
    """Return the key from a file or from the environment; None if neither has one."""
    from_environment = os.environ.get(KEY_VARIABLE)
    if file is not None and from_environment is not None:
        raise ConfigError(f"The key comes from --key-file or from {KEY_VARIABLE}, not from both.")
    if file is None and from_environment is None:
        return None
    source = KEY_VARIABLE if file is None else str(file)
    try:
        key = (from_environment if file is None else file.read_text(encoding="utf-8")) or ""
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"The key in {source} cannot be read: {words}.") from None
    key = key.strip()
    if len(key) < MIN_KEY_CHARACTERS or not all("!" <= c <= "~" for c in key):
        raise ConfigError(
            f"The key in {source} needs {MIN_KEY_CHARACTERS} or more printable ASCII characters "
            "without spaces. Make one with: openssl rand -hex 32"
        )
    return key.encode()


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_listening(host: str, key: bytes | None, *, open_to_all: bool) -> None:
    """Refuse to listen beyond this machine without a key, unless ``open_to_all`` allows that."""
    if key is None and not is_loopback(host) and not open_to_all:
        raise ConfigError(
            f"Without a key, anybody who reaches {host} could score rows. Give --key-file or set "
            f"{KEY_VARIABLE}; if a proxy in front of the server checks who asks, add "
            "--insecure-without-key."
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The rule that decides which requests are answered.

    With ``local``, the server has no key and listens on loopback.  Then a request must name this
    machine as its host: a web page could otherwise reach the server through a domain name of its
    own that resolves to this machine (DNS rebinding).
    """

    key: bytes | None
    local: bool

    def check(self, path: str, headers: Headers) -> None:
        """Refuse a request that is not allowed; compare keys in constant time."""
        if self.key is None:
            if self.local and not is_loopback(_host(headers.get("host", ""))):
                raise RequestRefused(
                    NOT_FROM_HERE, "This server answers only as 127.0.0.1 or localhost."
                )
            return
        if path in OPEN_PATHS:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self.key)
        if scheme.lower() != "bearer" or not right:
            raise RequestRefused(
                NO_KEY, "The key is missing or wrong. Send it as Authorization: Bearer KEY."
            )


def _host(header: str) -> str:
    """Return the host of a ``Host`` header, without its port.

    >>> _host("127.0.0.1:8080"), _host("[::1]:8080"), _host("localhost")
    ('127.0.0.1', '::1', 'localhost')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
