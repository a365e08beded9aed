"""Logins to the label server: single-use challenges, and the sessions that they open.

TLS alone does not identify a party.  gRPC accepts as the caller's name whatever name its
certificate has (a subject, an address, the first of several names), and does not expose the
certificate.  So a party signs a fresh nonce to get a session, and sends the session with every
call.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict

from opboost.errors import PeerError
from opboost.protocol.messages import Hello

MAX_CHALLENGES = 1024
"""The most unanswered challenges, one per connection; then the oldest are dropped."""

MAX_SESSIONS = 64
"""The most sessions per party; then the least recently used are dropped."""


class NotLoggedInError(PeerError):
    """A call from a party that has not logged in; it may log in and call again."""


class Logins:
    """The challenges and sessions of one label server; they end with its process."""

    def __init__(
        self, *, max_challenges: int = MAX_CHALLENGES, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._max_challenges, self._max_sessions = max_challenges, max_sessions
        self._lock = threading.Lock()
        self._challenges: OrderedDict[str, tuple[Hello, bytes]] = OrderedDict()
        self._sessions: dict[str, OrderedDict[bytes, None]] = {}

    def challenged(self, peer: str, hello: Hello) -> bytes:
        """Return a fresh nonce for the connection that sent this hello."""
        nonce = secrets.token_bytes(32)
        with self._lock:
            self._challenges[peer] = hello, nonce
            self._challenges.move_to_end(peer)
            while len(self._challenges) > self._max_challenges:
                self._challenges.popitem(last=False)
        return nonce

    def challenge(self, peer: str) -> tuple[Hello, bytes]:
        """Remove and return the connection's challenge; even a failed login uses up its nonce."""
        with self._lock:
            found = self._challenges.pop(peer, None)
        if found is None:
            raise NotLoggedInError("No login was begun over this connection. Say hello first.")
        return found

    def opened(self, party: str) -> bytes:
        """Return a new session for a party that has proved its name."""
        session = secrets.token_bytes(32)
        with self._lock:
            own = self._sessions.setdefault(party, OrderedDict())
            own[_digest(session.hex())] = None
            while len(own) > self._max_sessions:
                own.popitem(last=False)
        return session

    def is_open(self, session: str, party: str) -> bool:
        """Return whether a session, in hexadecimal digits, is one of this party's."""
        digest = _digest(session)
        with self._lock:
            own = self._sessions.get(party, OrderedDict())
            if digest not in own:
                return False
            own.move_to_end(digest)
            return True


def _digest(session: str) -> bytes:
    """Return the digest under which a session is stored, so that lookup times reveal nothing."""
    return hashlib.sha256(session.encode(errors="replace")).digest()
