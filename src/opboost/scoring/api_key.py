"""Who may ask: a key from a file or the environment, and on loopback without one this machine."""

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
"""What is answered without a key: an orchestrator's probes send none."""


def read_key(file: Path | None) -> bytes | None:
    """The key of a file or of the environment; None where neither has one."""
    told = os.environ.get(KEY_VARIABLE)
    if file is not None and told is not None:
        raise ConfigError(f"The key comes from --key-file or from {KEY_VARIABLE}, not from both.")
    if file is None and told is None:
        return None
    source = KEY_VARIABLE if file is None else str(file)
    try:
        key = (told if file is None else file.read_text(encoding="utf-8")) or ""
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
    """Whether an address can be reached from this machine alone.

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
    """Refuse to listen beyond this machine without a key, unless that is asked for by name."""
    if key is None and not is_loopback(host) and not open_to_all:
        raise ConfigError(
            f"Listening on {host} without a key would score for anybody who reaches it. Give "
            f"--key-file or set {KEY_VARIABLE}; if the network in front checks who asks, add "
            "--insecure-without-key."
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The rule by which requests are let in.

    ``local`` says that the server has no key and listens on loopback: then the host that a request
    names must be this machine, so that a page of another site cannot ask through a name of its own
    that points here.
    """

    key: bytes | None
    local: bool

    def check(self, path: str, headers: Headers) -> None:
        """Refuse a request without the right to ask; keys are compared in constant time."""
        if self.key is None:
            if self.local and not is_loopback(_host(headers.get("host", ""))):
                raise RequestRefused(
                    NOT_FROM_HERE, "This server answers under 127.0.0.1 or localhost only."
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
    """The host of a ``Host`` header, without its port.

    >>> _host("127.0.0.1:8080"), _host("[::1]:8080"), _host("localhost")
    ('127.0.0.1', '::1', 'localhost')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
