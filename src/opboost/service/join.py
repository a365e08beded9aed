"""The feature party's side of a networked job: connect out, send once, answer one question."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from opboost import durable
from opboost.config import Plan
from opboost.config.federation import FeatureConfig
from opboost.domain import NumericMapping
from opboost.errors import ConfigError, PeerError
from opboost.ledger import Caps, Ledger
from opboost.party.feature import Progress
from opboost.service.aligning import Talk
from opboost.service.feature_side import (
    check_rollback,
    feature_party,
    signed_receipt,
    write_manifest,
)
from opboost.service.logs import Log
from opboost.service.tls import (
    CLAIMED,
    Identity,
    check_loopback,
    read_identity,
)
from opboost.wire.coding import warm_up
from opboost.wire.messages import (
    Ack,
    Farewell,
    Hello,
    Poll,
    SplitQuery,
    Welcome,
    decode,
    encode,
)

M = TypeVar("M")


_PATIENCE = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
"""How gRPC itself tries again; left alone it waits a second after the first refusal."""


ANSWER_SECONDS = 120.0
"""An answer that takes longer will not come: the connection is dead, whoever still holds it."""

SLOWEST = 10_000
"""Bytes a second of the slowest line on which a column's stream is still waited for."""


class Connection:
    """One feature party's connection to the label party."""

    def __init__(
        self, address: str, party: str, label_party: str, identity: Identity | None
    ) -> None:
        self.sent = 0
        self._timeout = ANSWER_SECONDS
        if identity is None:
            self._client = flight.FlightClient(f"grpc+tcp://{address}", generic_options=_PATIENCE)
        else:
            self._client = flight.FlightClient(
                f"grpc+tls://{address}",
                tls_root_certs=identity.ca,
                cert_chain=identity.cert,
                private_key=identity.key,
                override_hostname=label_party,
                generic_options=_PATIENCE,
            )
        self._headers = [(CLAIMED.encode(), party.encode())]

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def call(self, step: str, message: Any, *expected: type[M]) -> M:
        """One message out, one back."""
        data = encode(message)
        with _spoken():
            options = flight.FlightCallOptions(timeout=self._timeout, headers=self._headers)
            answers = list(self._client.do_action(flight.Action(step, data), options))
        self.sent += len(data)
        return decode(answers[0].body.to_pybytes(), *expected)

    def put(self, job: str, number: int, file: Path) -> None:
        """One column's stream."""
        path = flight.FlightDescriptor.for_path(job, str(number))
        timeout = self._timeout + file.stat().st_size / SLOWEST
        with (
            _spoken(),
            pa.OSFile(str(file)) as source,
            pa.ipc.open_stream(source) as stream,
        ):
            options = flight.FlightCallOptions(timeout=timeout, headers=self._headers)
            writer, _ = self._client.do_put(path, stream.schema, options)
            try:
                for batch in stream:
                    writer.write_batch(batch)
                writer.done_writing()
            finally:
                writer.close()
        self.sent += file.stat().st_size


@contextmanager
def _spoken() -> Iterator[None]:
    """What the transport complains about, as one sentence."""
    try:
        yield
    except flight.FlightUnavailableError as error:
        words = _words(error)
        if "handshake failed" in words.lower() or "certificate" in words.lower():
            raise PeerError(
                f"TLS with the label party failed: {words}. Its certificate must be signed by the "
                "authority in this party's ca.pem and be for the job's label_party."
            ) from None
        raise Unreachable(words) from None
    except flight.FlightTimedOutError as error:
        raise Unreachable(_words(error)) from None
    except flight.FlightError as error:
        raise PeerError(f"The label party refused: {_words(error)}") from None
    except pa.ArrowException as error:
        raise Unreachable(_words(error)) from None


class Unreachable(PeerError):
    """The label party is not there, or the connection broke: worth another try."""


def _words(error: BaseException) -> str:
    text = str(error).split("\n", 1)[0]
    for mark in (". Detail:", ". gRPC client debug context", " gRPC client debug"):
        text = text.split(mark, 1)[0]
    for lead in ("Flight error: ", "Flight returned unavailable error, with message: "):
        text = text.replace(lead, "")
    return text[:400]


def join(
    config: FeatureConfig,
    *,
    connect: str | None = None,
    insecure_plaintext: bool = False,
    leave: bool = False,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Take part in the job from wherever it stands; returns the manifest.

    With ``leave`` the party goes after sending; a later ``join`` answers the split query.
    """
    address = connect or config.party.connect
    if address is None:
        raise ConfigError('Add connect = "host:port" to [party]: the label party listens there.')
    if insecure_plaintext:
        check_loopback(address)
    identity = None if insecure_plaintext else read_identity(config.tls, config.party.name)
    caps = Caps(config.ledger.cap_attribute, config.ledger.cap_person)
    Thread(target=_warm_up, args=(config.plan,), daemon=True).start()
    with (
        durable.alone(config.state),
        Ledger(config.ledger_folder, config.ledger_key, caps) as ledger,
    ):
        return _Visit(config, address, identity, ledger, progress, say).run(leave)


def _put(job: str, number: int, file: Path, connection: Connection) -> None:
    connection.put(job, number, file)


def _poll(job: str, connection: Connection) -> SplitQuery | Farewell | Ack:
    said: Any = connection.call("poll", Poll(job), SplitQuery, Farewell, Ack)
    return cast(SplitQuery | Farewell | Ack, said)


def _warm_up(plan: Plan) -> None:
    """Load the compiled loops while the connection is made."""
    warm_up()
    for column in plan.private[:1]:
        if isinstance(column.mapping, NumericMapping):
            column.mapping.scan(np.array(column.mapping.bounds))


class _Visit:
    """One run of ``join``."""

    def __init__(
        self,
        config: FeatureConfig,
        address: str,
        identity: Identity | None,
        ledger: Ledger,
        progress: Progress | None,
        say: Callable[[str], None],
    ) -> None:
        self._config, self._identity, self._ledger, self._say = config, identity, ledger, say
        self._progress = progress or (lambda what, done, total: None)
        self._log = Log(config.state / "join.jsonl")
        self._address = address
        self._told = False
        self._connection: Connection | None = None
        self._sent = 0
        self._party = feature_party(config, ledger, progress)

    def run(self, leave: bool) -> dict[str, Any]:
        started = time.monotonic()
        try:
            hello = Hello(self._config.party.name, self._config.job.hash)
            welcome = self._retried(lambda c: c.call("hello", hello, Welcome))
            if not welcome.job.endswith(hello.job_hash[:4].hex()):
                raise PeerError("The label party's job number is not one of this job file.")
            if self._identity is not None:
                check_rollback(welcome, self._ledger, self._identity)
            if self._config.job.align == "psi":
                self._align(welcome)
            rows = self._party.rows(welcome)
            self._retried(lambda c: c.call("rows", rows, Ack))
            self._send(welcome)
            phase = "released" if leave else self._wait(welcome.job)
            return self._manifest(welcome.job, phase, started)
        finally:
            self._hang_up()

    def _align(self, welcome: Welcome) -> None:
        meeting, job = self._party.meeting(welcome), welcome.job
        if meeting.done:
            return
        wait = self._config.limits.wait_seconds
        found = Talk(meeting, job, self._asked, wait=wait, progress=self._progress).align()
        self._log.write("aligned", job=job, rows=found.total, common=found.count)
        self._say(f"{found.count:,} of {found.total:,} rows are common to all parties.")

    def _asked(self, step: str, message: Any, *expected: type[M]) -> M:
        return self._retried(lambda c: c.call(step, message, *expected))

    def _send(self, welcome: Welcome) -> None:
        schema, files = self._party.release(welcome)
        there = self._retried(lambda c: c.call("schema", schema, Ack))
        self._give_receipt(welcome.job)
        for number, file in enumerate(files):
            if number not in there.columns:
                self._retried(partial(_put, welcome.job, number, file))
            self._progress("sent", number + 1, len(files))
        self._retried(lambda c: c.call("sent", Ack(welcome.job, "sent"), Ack))
        self._log.write("sent", job=welcome.job, rows=schema.rows, columns=len(files))
        self._say(f"{len(files)} columns of {schema.rows:,} rows sent.")

    def _give_receipt(self, job: str) -> None:
        """Sign the ledger's head, before any code leaves."""
        if self._identity is None:
            return
        receipt = signed_receipt(self._party.folder(job), self._ledger, self._identity)
        self._retried(lambda c: c.call("receipt", receipt, Ack))

    def _wait(self, job: str) -> str:
        """Stay for the split query, answer it, and stay until the end."""
        end = time.monotonic() + self._config.limits.wait_seconds
        predicting = self._config.job.purpose == "predict"
        what = "end of the job" if predicting else "split query"
        self._say(f"Waiting for the {what}; you may also leave and join again later.")
        while time.monotonic() < end:
            said = self._retried(partial(_poll, job))
            if isinstance(said, Farewell):
                return "done"
            if isinstance(said, SplitQuery):
                if said.job != job:
                    raise PeerError("A split query of another job came.")
                if predicting:
                    raise PeerError("A split query came in a prediction, which has none.")
                self._answer(said)
        return "waited"

    def _answer(self, query: SplitQuery) -> None:
        answer = self._party.answer(query)
        self._retried(lambda c: c.call("answer", answer, Ack))
        cuts = sum(len(c.codes) for c in query.columns)
        self._log.write("answered", job=query.job, columns=len(query.columns), cuts=cuts)
        self._say(f"Answered {cuts} cuts of {len(query.columns)} columns.")

    def _retried(self, call: Callable[[Connection], M]) -> M:
        """Call, and while the label party cannot be reached, try again for a while.

        The while begins when it is first not reached: a dead connection is noticed only when an
        answer is long overdue, and another may work.
        """
        end: float | None = None
        pause = 0.05
        while True:
            try:
                return call(self._connected())
            except Unreachable as error:
                self._hang_up()
                end = end or time.monotonic() + self._config.limits.connect_seconds
                if not self._told:
                    self._told = True
                    self._say(
                        f"Waiting for {self._config.job.label_party} at {self._address}, "
                        f"at most {self._config.limits.connect_seconds:g} s ..."
                    )
                if time.monotonic() + pause > end:
                    raise PeerError(
                        f"The label party at {self._address} cannot be reached: {error}"
                    ) from None
                time.sleep(pause)
                pause = min(2.0, pause * 1.15)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(
                self._address,
                self._config.party.name,
                self._config.job.label_party,
                self._identity,
            )
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._sent += self._connection.sent
            self._connection.close()
            self._connection = None

    def _manifest(self, job: str, phase: str, started: float) -> dict[str, Any]:
        sent = self._sent + (self._connection.sent if self._connection else 0)
        return write_manifest(self._party, job, phase, sent, time.monotonic() - started)
