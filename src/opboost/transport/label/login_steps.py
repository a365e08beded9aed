"""The steps by which a feature party proves its name to the label party's server."""

from __future__ import annotations

from opboost.errors import PeerError
from opboost.protocol.messages import Challenge, Hello, Login, decode, encode
from opboost.transport.label.job_folder import newest_receipt
from opboost.transport.label.job_terms import welcome_to
from opboost.transport.label.logins import Logins
from opboost.transport.label.party_totals import meet
from opboost.transport.label.served_job import ServedJob
from opboost.transport.shared.tls import check_login


class LoginSteps:
    """The steps ``hello`` and ``login``; ``certificate`` is the label party's own."""

    def __init__(self, job: ServedJob, logins: Logins, certificate: bytes) -> None:
        self._job, self._logins, self._certificate = job, logins, certificate

    def hello(self, peer: str, party: str, data: bytes) -> bytes:
        """Return a challenge for this connection; only an answered challenge reveals the job."""
        hello = decode(data, Hello)
        _check_own(party, hello.party)
        return encode(Challenge(self._logins.challenged(peer, hello), self._certificate))

    def login(self, peer: str, party: str, data: bytes) -> bytes:
        """Open a session for a party that signed its challenge and has the same job file."""
        login = decode(data, Login)
        hello, nonce = self._logins.challenge(peer)
        _check_own(party, hello.party)
        record = self._job.record
        if self._job.ca is not None:
            check_login(login, hello, record.label_party, nonce, self._job.ca)
        if hello.job_hash.hex() != record.hash:
            raise PeerError(
                "The job files differ: the label party's has SHA-256 "
                f"{record.hash[:16]}..., party {party!r} has {hello.job_hash.hex()[:16]}.... "
                "All parties need the same file, byte by byte."
            )
        receipt = newest_receipt(self._job.folder.parent, party) if record.receipts else b""
        if record.record:
            with self._job.lock:
                meet(self._job.folder, record, hello)
        box = self._job.box(party)
        box.begin_visit()
        session = self._logins.opened(party)
        return encode(welcome_to(box, record, receipt, session))


def _check_own(party: str, claimed: str) -> None:
    if claimed != party:
        raise PeerError(f"The certificate is for {party!r}, the message from {claimed!r}.")
