"""The process that faces the network: takes messages in, checks them, puts them on disk.

It holds no data of the label party, and a memory limit bounds what a hostile stream can use up: a
small compressed batch may inflate a thousandfold before Python sees it.  A refused call ends with a
sentence for its sender and a line in the log; the other parties do not notice.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from opboost.errors import OpBoostError, PeerError, WireError
from opboost.parties.message_checks import check_schema
from opboost.protocol.entropy_coding import warm_up
from opboost.protocol.envelope import MAX_MESSAGE_BYTES, check_version
from opboost.protocol.messages import (
    Ack,
    Challenge,
    Farewell,
    Hello,
    Login,
    Points,
    PointsQuery,
    Poll,
    Rows,
    Welcome,
    decode,
    encode,
)
from opboost.psi.curve_points import piece_count
from opboost.storage import atomic_files
from opboost.transport.label.connection_limits import ConnectionLimits
from opboost.transport.label.job_folder import HOLD_SECONDS, JobRecord, PartyFolder, newest_receipt
from opboost.transport.label.label_server_process import DISK
from opboost.transport.label.logins import Logins, NotLoggedInError
from opboost.transport.label.process_limits import allow_files, full_stack, limit_memory
from opboost.transport.label.receive_columns import (
    answered_claim,
    check_new_receipt,
    check_proved,
    check_split_values,
    check_their_points,
    receive_column,
    taken_schema,
)
from opboost.transport.shared.logs import LINES_PER_MINUTE, Log
from opboost.transport.shared.tls import CLAIMED, SESSION, check_login

MAX_CALLS = 16
"""Calls that one party may have open at a time."""

MAX_OPEN_FILES = 4096
"""Open files and connections that the gate asks the system for; see also ``doorkeeper.MOST``."""

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Setting:
    """What the gate is started with; the training process hands it over as JSON."""

    job: Path
    listen: str
    ca: str | None
    cert: str | None
    key: str | None
    memory_mb: int


class LabelServer(flight.FlightServerBase):  # type: ignore[misc]
    """The Flight server of one job."""

    def __init__(self, setting: Setting) -> None:
        self._folder, self._ca = setting.job, setting.ca
        self._record = JobRecord.load(setting.job)
        self._log = Log(setting.job / "gate.jsonl", a_minute=LINES_PER_MINUTE)
        for left in setting.job.glob("parties/*/.*.part"):  # of a gate that died
            left.unlink(missing_ok=True)
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self.door = ConnectionLimits(
            self._log,
            held=setting.memory_mb * 2**20 // 4,
            calls=2 * MAX_CALLS * len(self._record.parties),  # before and after a login
        )
        self._certificate = (setting.cert or "").encode()
        self._logins = Logins()
        reading = {"headers": _HeaderFactory()}
        if setting.ca is None:
            super().__init__(f"grpc+tcp://{setting.listen}", middleware=reading)
            return
        super().__init__(
            f"grpc+tls://{setting.listen}",
            tls_certificates=[(setting.cert, setting.key)],
            verify_client=True,
            root_certificates=setting.ca,
            middleware=reading,
        )

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        """One small message in, one out."""
        steps: dict[str, Callable[[str, bytes], bytes]] = {
            "hello": partial(self._hello, context.peer()),
            "login": partial(self._login, context.peer()),
            "want": self._want,
            "points": self._points,
            "aligned": self._aligned,
            "prove": self._prove,
            "rows": self._rows,
            "schema": self._schema,
            "receipt": self._receipt,
            "sent": self._sent,
            "poll": self._poll,
            "answer": self._answer,
            "heard": self._heard,
        }
        self.door.took(context.peer(), action.body.size)
        step = action.type if action.type in steps else "?"
        with self._refusing(context, step, action.body) as party:
            if step == "?":
                raise WireError("There is no such step.")
            if action.body.size > MAX_MESSAGE_BYTES:
                raise WireError(f"A message of {action.body.size:,} bytes is too large.")
            out = steps[step](party, action.body.to_pybytes())
            # The call counts until its answer has left: who does not read it has few of them.
            yield flight.Result(pa.py_buffer(out))

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """One column's stream."""
        with self._refusing(context, "codes") as party:
            path = [part.decode(errors="replace") for part in descriptor.path or ()]
            if len(path) != 2 or path[0] != self._record.job or not _NUMBER.fullmatch(path[1]):
                raise WireError("A column's stream names this job and the column's number.")
            notes = reader.schema.metadata or {}
            self.door.took(context.peer(), sum(map(len, notes.values())))
            self._column(party, int(path[1]), reader, partial(self.door.took, context.peer()))

    def _column(
        self,
        party: str,
        number: int,
        reader: flight.MetadataRecordBatchReader,
        took: Callable[[int], None],
    ) -> None:
        box = PartyFolder(self._folder, party)
        batches = (chunk.data for chunk in reader)
        head = receive_column(self._record, box, number, reader.schema, batches, took)
        if head is None:
            return
        size = box.column(number).stat().st_size
        self._log.write("column", party=party, column=number, rows=head.rows, bytes=size)

    def _hello(self, peer: str, party: str, data: bytes) -> bytes:
        """A challenge for this connection; nothing of the job is told before it is met."""
        hello = decode(data, Hello)
        self._own(party, hello.party)
        return encode(Challenge(self._logins.challenged(peer, hello), self._certificate))

    def _login(self, peer: str, party: str, data: bytes) -> bytes:
        login = decode(data, Login)
        hello, nonce = self._logins.challenge(peer)
        self._own(party, hello.party)
        if self._ca is not None:
            check_login(login, hello, self._record.label_party, nonce, self._ca.encode())
        if hello.job_hash.hex() != self._record.hash:
            raise PeerError(
                "The job files differ: the label party's has SHA-256 "
                f"{self._record.hash[:16]}..., party {party!r} has {hello.job_hash.hex()[:16]}.... "
                "All parties need the same file, byte by byte."
            )
        receipt = newest_receipt(self._folder.parent, party) if self._record.receipts else b""
        nonce, session = bytes.fromhex(self._record.nonce), self._logins.opened(party)
        return encode(Welcome(self._record.job, nonce, receipt, session))

    def _want(self, party: str, data: bytes) -> bytes:
        """A piece of the label party's points, when it is made."""
        query = decode(data, PointsQuery)
        self._of_this_job(query.job)
        piece = self._folder / "align" / party / f"{query.piece:05d}.label"
        if self._held(piece.exists):
            return piece.read_bytes()
        return encode(Ack(self._record.job, "wait"))

    def _points(self, party: str, data: bytes) -> bytes:
        """A piece of the party's points, or of the label party's that it has raised."""
        points, box = decode(data, Points), PartyFolder(self._folder, party)
        self._of_this_job(points.job)
        self._refused(box)
        check_their_points(self._record, points)
        if box.has("aligned"):
            known = box.points()
            if known.get("tag") != points.tag.hex():
                raise PeerError("Points came that nobody waits for.")
            # They were taken, and the answer was lost on its way: repeated, nothing happens.
            whole = range(piece_count(points.total))
            return encode(Ack(self._record.job, points.step, tuple(whole)))
        with self._lock:
            self._take_points(points, data, box)
        return encode(Ack(self._record.job, points.step, tuple(box.pieces(points.step))))

    def _take_points(self, points: Points, data: bytes, box: PartyFolder) -> None:
        known = box.points()
        if known and known["tag"] != points.tag.hex():
            raise PeerError(
                "Points under another secret came before: the party's state of this job was lost. "
                "Begin a new job (--again)."
            )
        if points.step == "feature":
            if known.get("total", points.total) != points.total:
                raise PeerError("Points of another set came before.")
            if not known:
                about = {"tag": points.tag.hex(), "total": points.total}
                box.note("points", about)
        elif not known:
            raise PeerError("Raised points came before the party's own.")
        file = box.piece(points.step, points.piece)
        if not file.exists():
            box.write(file.name, data)
        elif file.read_bytes() != data:
            raise PeerError(f"Piece {points.piece} came again with other points.")

    def _aligned(self, party: str, data: bytes) -> bytes:
        """Which rows are common; before that, which pieces of points have come so far."""
        self._of_this_job(decode(data, Poll).job)
        box = PartyFolder(self._folder, party)
        if self._record.align == "given":
            raise PeerError("Rows are given in this job, not aligned.")
        for step, total in (("feature", box.points().get("total")), ("raised", self._record.rows)):
            have = box.pieces(step)
            if not box.has("aligned") and (total is None or len(have) < piece_count(total)):
                self._refused(box)
                return encode(Ack(self._record.job, step, tuple(have)))
        if self._held(lambda: box.has("aligned") or box.has("refused")):
            self._refused(box)
            self._log.write("aligned", party=party, rows=box.points()["total"])
            return box.read("aligned")
        return encode(Ack(self._record.job, "wait"))

    def _refused(self, box: PartyFolder) -> None:
        """Tell a party, once, why the label party cannot use what it sent."""
        with self._lock:
            why = box.take_refusal()
        if why:
            raise PeerError(why)

    def _of_this_job(self, job: str) -> None:
        if job != self._record.job:
            raise PeerError("The label party works on another job now. Join again.")

    def _held(self, there: Callable[[], bool]) -> bool:
        """Wait a while for something to be there."""
        end = time.monotonic() + HOLD_SECONDS
        while not there():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _prove(self, party: str, data: bytes) -> bytes:
        """The party proves that it knows the common rows, and gets the label party's proof."""
        with self._lock:
            return answered_claim(self._record, PartyFolder(self._folder, party), data)

    def _rows(self, party: str, data: bytes) -> bytes:
        record = self._record
        rows = decode(data, Rows)
        if record.align != "given":
            raise PeerError("Rows are aligned in this job: both sides prove that they know them.")
        expected = PartyFolder(self._folder, party).expected(record)
        check_schema(rows, party, record.job, *expected)
        return encode(Ack(record.job, "rows"))

    def _schema(self, party: str, data: bytes) -> bytes:
        record, box = self._record, PartyFolder(self._folder, party)
        check_proved(record, box)
        _, due = taken_schema(record, box, data)
        box.note("due", due)
        box.write("schema", data)
        return encode(Ack(record.job, "schema", tuple(box.columns())))

    def _receipt(self, party: str, data: bytes) -> bytes:
        if self._ca is None:
            raise PeerError("There are no receipts without certificates.")
        check_new_receipt(self._folder, self._record, party, data, self._ca.encode())
        PartyFolder(self._folder, party).write("receipt", data)
        return encode(Ack(self._record.job, "receipt"))

    def _sent(self, party: str, data: bytes) -> bytes:
        box = PartyFolder(self._folder, party)
        decode(data, Ack)
        if not box.has("schema") or len(box.columns()) < box.due():
            raise PeerError(f"{len(box.columns())} of {box.due()} columns have come.")
        if self._record.receipts and not box.has("receipt"):
            raise PeerError("The receipt is missing.")
        box.write("sent", b"")
        self._log.write("released", party=party, columns=box.due(), bytes=box.bytes())
        return encode(Ack(self._record.job, "sent"))

    def _poll(self, party: str, data: bytes) -> bytes:
        self._of_this_job(decode(data, Poll).job)
        box = PartyFolder(self._folder, party)
        end = time.monotonic() + HOLD_SECONDS
        while time.monotonic() < end:
            if (self._folder / "manifest.json").exists():
                return encode(Farewell(self._record.job))
            self._refused(box)
            if box.has("query") and not box.has("answer"):
                return box.read("query")
            time.sleep(0.02)
        return encode(Ack(self._record.job, "wait"))

    def _answer(self, party: str, data: bytes) -> bytes:
        box = PartyFolder(self._folder, party)
        query = check_split_values(self._record, box, data)
        box.write("answer", data)
        self._log.write("answered", party=party, cuts=sum(len(c.codes) for c in query.columns))
        return encode(Ack(self._record.job, "answer"))

    def _heard(self, party: str, data: bytes) -> bytes:
        """The party knows that the job is done: nobody needs to wait for it any more."""
        self._of_this_job(decode(data, Ack).job)
        if not (self._folder / "manifest.json").exists():
            raise PeerError("The job is not done yet.")
        PartyFolder(self._folder, party).write("farewell", b"")
        return encode(Ack(self._record.job, "heard"))

    def enter(self, party: str) -> None:
        """Count a call; a party may have few at a time, for each holds a thread and its stack."""
        with self._lock:
            if self._calls[party] >= MAX_CALLS:
                raise FloodError(f"Party {party!r} has {MAX_CALLS} calls open already.")
            self._calls[party] += 1

    def leave(self, party: str) -> None:
        """A call has ended."""
        with self._lock:
            self._calls[party] -= 1

    def _own(self, party: str, claimed: str) -> None:
        if claimed != party:
            raise PeerError(f"The certificate is for {party!r}, the message from {claimed!r}.")

    def _refusing(
        self, context: flight.ServerCallContext, step: str, body: pa.Buffer | None = None
    ) -> _Refusing:
        return _Refusing(self, context, step, body)

    def named(self, context: flight.ServerCallContext) -> str:
        """Whom TLS says is calling; one that is not of this job, or is revoked, is turned away."""
        if self._ca is None:
            party = str(context.get_middleware("headers").claimed)
        else:
            party = context.peer_identity().decode(errors="replace")
        if party not in self._record.parties:
            raise flight.FlightUnauthorizedError(f"{party[:63]!r} is no party of this job.")
        if party in self._record.revoked:
            raise flight.FlightUnauthorizedError(f"Party {party!r} is revoked.")
        return party

    def logged_in(
        self, context: flight.ServerCallContext, party: str, step: str, body: pa.Buffer | None
    ) -> bool:
        """Whether the caller has proved its name; one that has not may do nothing but that."""
        if self._logins.is_open(context.get_middleware("headers").session, party):
            return True
        if body is not None:  # told first: other versions log in in other ways
            check_version(body.slice(0, min(body.size, 2**16)).to_pybytes())
        if step not in ("hello", "login"):
            raise NotLoggedInError(f"Party {party!r} has not logged in. Say hello first.")
        return False


class FloodError(PeerError):
    """More calls at a time than one sender may have."""


class _Refusing:
    """Names the caller, and turns what goes wrong into a sentence for it and a line in the log."""

    def __init__(
        self,
        gate: LabelServer,
        context: flight.ServerCallContext,
        step: str,
        body: pa.Buffer | None,
    ) -> None:
        self._gate, self._context, self._step, self._body = gate, context, step, body
        self._party, self._peer = "?", context.peer()
        self._account = ""

    def __enter__(self) -> str:
        """Raises unless the caller may take this step: then nothing of the call is looked at."""
        try:
            party = self._gate.named(self._context)
            self._party = party
            known = self._gate.logged_in(self._context, party, self._step, self._body)
            # Who has not logged in uses up nothing of the party that it says it is.
            self._account = party if known else f"{party}?"
            self._gate.enter(self._account)
            self._gate.door.named(self._peer, self._account)
        except (flight.FlightError, PeerError) as error:
            why = _first_line(error)[:300]
            event = "flood" if isinstance(error, FloodError) else "refused"
            self._gate._log.write(event, step=self._step, party=self._party, why=why)
            if isinstance(error, PeerError):
                raise _told(error, why) from None
            raise
        return self._party

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._gate.leave(self._account)
        self._gate.door.ended(self._peer)
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
            os._exit(DISK)  # nobody can be served; the training process tells why
        internal = "" if isinstance(error, OpBoostError) else type(error).__name__
        self._gate._log.write(
            "refused", party=self._party, step=self._step, why=why[:300], error=internal
        )
        raise _told(error, why[:1000]) from None


def _told(error: BaseException, why: str) -> flight.FlightError:
    """What the sender of a refused call gets: it may try again where it only has to log in."""
    if isinstance(error, NotLoggedInError):
        return flight.FlightUnauthenticatedError(why)
    return flight.FlightServerError(why)


def _is_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in atomic_files.NO_ROOM


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].split(". Detail:", 1)[0]


class _HeaderFactory(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Reads a call's headers."""

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> _Headers:
        return _Headers(headers.get(CLAIMED, [""])[0], headers.get(SESSION, [""])[0])


class _Headers(flight.ServerMiddleware):  # type: ignore[misc]
    """A call's session, and in plaintext on loopback its sender's name, unproved."""

    def __init__(self, claimed: str, session: str) -> None:
        self.claimed, self.session = claimed, session


def main() -> None:
    """Serve until the standard input closes, which it does when the training process ends."""
    full_stack()
    warm_up()
    plain = json.loads(sys.stdin.readline())
    setting = Setting(**{**plain, "job": Path(plain["job"])})
    try:
        gate = LabelServer(setting)
    except (pa.ArrowException, OSError) as error:
        print(json.dumps({"error": _first_line(error)}), flush=True)
        return
    limit_memory(setting.memory_mb)
    allow_files(MAX_OPEN_FILES)
    gate.door.watch(gate.port)
    print(json.dumps({"port": gate.port}), flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
