"""Who has proved its name to the gate: challenges that are good once, and the sessions they open.

TLS alone tells too little.  gRPC takes a caller's name from whatever a certificate has (a subject,
an address, the first of several names), and does not show the certificate.  So a party signs a
fresh nonce, and shows with every call the session that it got for it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict

from opboost.errors import PeerError
from opboost.protocol.messages import Hello

MAX_CHALLENGES = 1024
"""Challenges that wait for an answer; a connection has one, and the oldest go first."""

MAX_SESSIONS = 64
"""Sessions of one party; those that were not used for longest go first."""


class NotLoggedInError(PeerError):
    """A call by somebody who has not proved its name; it may do so now."""


class Logins:
    """The challenges and sessions of one gate; they end with its process."""

    def __init__(
        self, *, max_challenges: int = MAX_CHALLENGES, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._max_challenges, self._max_sessions = max_challenges, max_sessions
        self._lock = threading.Lock()
        self._challenges: OrderedDict[str, tuple[Hello, bytes]] = OrderedDict()
        self._sessions: dict[str, OrderedDict[bytes, None]] = {}

    def challenged(self, peer: str, hello: Hello) -> bytes:
        """Return a fresh nonce for the connection over which this hello came."""
        nonce = secrets.token_bytes(32)
        with self._lock:
            self._challenges[peer] = hello, nonce
            self._challenges.move_to_end(peer)
            while len(self._challenges) > self._max_challenges:
                self._challenges.popitem(last=False)
        return nonce

    def challenge(self, peer: str) -> tuple[Hello, bytes]:
        """Take the connection's challenge: whatever comes of the login, the nonce is used up."""
        with self._lock:
            found = self._challenges.pop(peer, None)
        if found is None:
            raise NotLoggedInError("No login is due over this connection. Say hello first.")
        return found

    def opened(self, party: str) -> bytes:
        """Return a new session of a party that has proved its name."""
        session = secrets.token_bytes(32)
        with self._lock:
            own = self._sessions.setdefault(party, OrderedDict())
            own[_digest(session.hex())] = None
            while len(own) > self._max_sessions:
                own.popitem(last=False)
        return session

    def is_open(self, session: str, party: str) -> bool:
        """Whether this is a session of this party, in hexadecimal digits."""
        digest = _digest(session)
        with self._lock:
            own = self._sessions.get(party, OrderedDict())
            if digest not in own:
                return False
            own.move_to_end(digest)
            return True


def _digest(session: str) -> bytes:
    """What is kept and looked up in its place, so that the time that takes tells nothing."""
    return hashlib.sha256(session.encode(errors="replace")).digest()
