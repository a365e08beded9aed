"""Admit or refuse calls to the label server, and build the errors for refused callers."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from opboost.errors import OpBoostError, PeerError
from opboost.protocol.envelope import check_version
from opboost.storage import atomic_files
from opboost.transport.label.connection_limits import ConnectionLimits
from opboost.transport.label.label_server_process import DISK_FULL_STATUS
from opboost.transport.label.logins import Logins, NotLoggedInError
from opboost.transport.label.served_job import ServedJob
from opboost.transport.shared.tls import CLAIMED, SESSION

MAX_CALLS = 16
"""Calls that one party may have open at once."""

HEADERS = "headers"
"""The key of a call's headers in its context."""


class FloodError(PeerError):
    """A party has too many calls open at once."""


class CallAdmission:
    """Identifies each caller, and counts the calls that each party has open."""

    def __init__(self, job: ServedJob, logins: Logins, limits: ConnectionLimits) -> None:
        self.log, self.limits = job.log, limits
        self._record, self._by_certificate = job.record, job.ca is not None
        self._logins = logins
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()

    def call(
        self, context: flight.ServerCallContext, step: str, body: pa.Buffer | None = None
    ) -> AdmittedCall:
        """Return a context manager that admits one call under its caller's name, or refuses it."""
        return AdmittedCall(self, context, step, body)

    def enter(self, account: str) -> None:
        """Count a call, or refuse it beyond ``MAX_CALLS``, because each call occupies a thread."""
        with self._lock:
            if self._calls[account] >= MAX_CALLS:
                raise FloodError(f"Party {account!r} has {MAX_CALLS} calls open already.")
            self._calls[account] += 1

    def leave(self, account: str) -> None:
        """Count the end of a call."""
        with self._lock:
            self._calls[account] -= 1

    def named(self, context: flight.ServerCallContext) -> str:
        """Return the caller's name from TLS; refuse one that is revoked or not in this job."""
        if self._by_certificate:
            party = str(context.peer_identity().decode(errors="replace"))
        else:
            party = str(context.get_middleware(HEADERS).claimed)
        if party not in self._record.parties:
            raise flight.FlightUnauthorizedError(f"{party[:63]!r} is not a party of this job.")
        if party in self._record.revoked:
            raise flight.FlightUnauthorizedError(f"Party {party!r} is revoked.")
        return party

    def logged_in(
        self, context: flight.ServerCallContext, party: str, step: str, body: pa.Buffer | None
    ) -> bool:
        """Return whether the caller has logged in; refuse all steps but the login if it has not."""
        if self._logins.is_open(context.get_middleware(HEADERS).session, party):
            return True
        if body is not None:  # check the version first, since other versions log in differently
            check_version(body.slice(0, min(body.size, 2**16)).to_pybytes())
        if step not in ("hello", "login"):
            raise NotLoggedInError(f"Party {party!r} has not logged in. Say hello first.")
        return False


class AdmittedCall:
    """One call, whose errors become a sentence for the caller and a line in the log."""

    def __init__(
        self,
        admission: CallAdmission,
        context: flight.ServerCallContext,
        step: str,
        body: pa.Buffer | None,
    ) -> None:
        self._admission, self._context, self._step, self._body = admission, context, step, body
        self._party, self._peer = "?", context.peer()
        self._account = ""

    def __enter__(self) -> str:
        """Return the caller's name.

        Refuse a caller that must not take this step, or that has too many calls open.
        """
        admission = self._admission
        try:
            party = admission.named(self._context)
            self._party = party
            known = admission.logged_in(self._context, party, self._step, self._body)
            # A caller that has not logged in does not count against the party that it claims to be.
            self._account = party if known else f"{party}?"
            admission.enter(self._account)
            admission.limits.named(self._peer, self._account)
        except (flight.FlightError, PeerError) as error:
            why = first_line(error)[:300]
            event = "flood" if isinstance(error, FloodError) else "refused"
            admission.log.write(event, step=self._step, party=self._party, why=why)
            if isinstance(error, PeerError):
                raise _told(error, why) from None
            raise
        return self._party

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._admission.leave(self._account)
        self._admission.limits.ended(self._peer)
        if error is None or isinstance(error, GeneratorExit):  # the answer was not read
            return
        if isinstance(error, PeerError):
            why = str(error)
        elif isinstance(error, OpBoostError):
            why = f"A message cannot be used ({type(error).__name__})."
        elif isinstance(error, MemoryError | pa.ArrowMemoryError):
            why = "A stream needs more memory than a party may use here."
        elif isinstance(error, pa.ArrowException | OSError):
            why = f"A stream broke off or is damaged ({type(error).__name__})."
        else:
            why = "The label party cannot use the message."
        if _is_disk(error):
            os._exit(DISK_FULL_STATUS)  # no party can be served; the training process reports it
        internal = "" if isinstance(error, OpBoostError) else type(error).__name__
        self._admission.log.write(
            "refused", party=self._party, step=self._step, why=why[:300], error=internal
        )
        raise _told(error, why[:1000]) from None


def first_line(error: BaseException) -> str:
    """Return the first line of a transport error, without its details."""
    return str(error).split("\n", 1)[0].split(". Detail:", 1)[0]


def _told(error: BaseException, why: str) -> flight.FlightError:
    """Return the error to send: a caller without a login can log in and repeat its call."""
    if isinstance(error, NotLoggedInError):
        return flight.FlightUnauthenticatedError(why)
    return flight.FlightServerError(why)


def _is_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in atomic_files.NO_ROOM


class HeaderFactory(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """The middleware factory that reads a call's headers."""

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> _Headers:
        """Return the headers of a new call."""
        return _Headers(headers.get(CLAIMED, [""])[0], headers.get(SESSION, [""])[0])


class _Headers(flight.ServerMiddleware):  # type: ignore[misc]
    """A call's session, and the name that its sender claims (used only without TLS)."""

    def __init__(self, claimed: str, session: str) -> None:
        self.claimed, self.session = claimed, session
