"""Run a label party, attack it, and measure what each attack costs it and the honest party.

The parties are ``opboost serve`` with mutual TLS and private alignment; ``shop``, whose certificate
is valid and which attacks; ``telco``, which is honest; and ``former``, which was revoked.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.flight as flight

import opboost as op
from opboost.config.job_file import load_feature
from opboost.demo.local_federation import LABEL_PARTY, started_process
from opboost.ledger.open_ledger import open_ledger
from opboost.protocol.messages import Ack, ColumnSchema, Receipt, Schema, Welcome
from opboost.transport.feature.feature_job import feature_party, signed_receipt
from opboost.transport.feature.label_connection import Connection, Unreachable, as_sentences
from opboost.transport.feature.network_psi import PsiClient
from opboost.transport.shared.tls import Identity
from opboost_lab.bench.process_usage import child_of, forget_peak, peak_mb
from robustness.attacks import http2_frames
from robustness.party_processes import federation, identity_of, joined, serving, shaken_hands
from robustness.prefork_server import waited

LIMIT_MB = 512
"""The label server's ``memory_mb`` during the attacks."""

GATE_MB, LABEL_MB, DISK = 250 + LIMIT_MB, 450, 2_000_000
"""Bounds: megabytes of the label server and of the attacked party's other process; bytes that one
attack may leave in the party's state, its log included."""

LABEL_SERVER = "opboost.transport.label.label_server"
OTHER_JOB = "20200101T000000Z-00000000"
POINT = b"\2" + bytes(31)
"""Bytes that have the form of a point but do not lie on the curve."""

PATIENCE = 30.0
"""Seconds within which an honest call must be answered, even on a busy machine."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one attack."""

    attack: str
    refused: bool
    said: str
    """The answer that the sender received, or why the attack counts as not refused."""
    log: str
    served: bool
    waited: float
    gate_mb: float
    peer_mb: float
    """Megabytes of the party's other process: the one that trains, or the one that joins."""
    disk: int
    seconds: float
    died: bool = False

    @property
    def survived(self) -> bool:
        """Whether it was refused and logged, others were served, and no bound was exceeded."""
        bounded = self.gate_mb <= GATE_MB and self.peer_mb <= LABEL_MB and self.disk <= DISK
        return self.refused and bool(self.log) and self.served and bounded

    def __str__(self) -> str:
        mark = "survived" if self.survived else "FAILED"
        return (
            f"{mark}  {self.attack}: {self.said} | log: {self.log} | served in {self.waited:.2f} s"
            f" | {self.gate_mb:.0f} and {self.peer_mb:.0f} MB, {self.disk:,} bytes on disk"
            f" | {self.seconds:.1f} s"
            f"{' | the label server was restarted' if self.died else ''}"
        )


class AcceptedError(Exception):
    """An attack that was not refused."""


def refused(call: Callable[[], Any], words: str) -> str:
    """Return the sentence that refuses a call; it must contain these words and no internals."""
    try:
        call()
    except op.PeerError as error:
        return checked(str(error), words)
    raise AcceptedError(f"It was accepted; expected {words!r}.")


def call_refused(
    connection: Connection, step: str, message: Any, words: str, answer: Any = Ack
) -> str:
    """Return the sentence that refuses a call, whose message may be any bytes."""

    def call() -> None:
        if not isinstance(message, bytes):
            connection.call(step, message, answer)
            return
        options = flight.FlightCallOptions(headers=connection._headers)
        with as_sentences():
            list(connection._client.do_action(flight.Action(step, message), options))

    return refused(call, words)


def put_refused(
    connection: Connection,
    path: tuple[str, str],
    words: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch] = (),
    compression: str | None = None,
) -> str:
    """Return the sentence that refuses a stream, well-formed or not."""
    write = pa.ipc.IpcWriteOptions(compression=compression)
    options = flight.FlightCallOptions(write_options=write, headers=connection._headers)
    where = flight.FlightDescriptor.for_path(*path)

    def put() -> None:
        with as_sentences():
            writer, _ = connection._client.do_put(where, schema, options)
            with closing(writer):
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()

    return refused(put, words)


INTERNALS = re.compile(r"Traceback|File \"|\.py\b|0x[0-9a-f]{6}|person-\d|/tmp/|site-packages")


def checked(said: str, words: str) -> str:
    """Return a refusal, which must contain these words and no internals or raw values."""
    if not re.search(words, said) or INTERNALS.search(said):
        raise AcceptedError(f"The sender received {said!r}; expected {words!r}.")
    return said


def renamed(schema: Schema, name: str) -> Schema:
    """Return a schema whose first column has another name."""
    spec = json.loads(schema.columns[0].spec) | {"name": name}
    return replace(schema, columns=(ColumnSchema(json.dumps(spec)), *schema.columns[1:]))


@dataclass(frozen=True, slots=True)
class HonestRelease:
    """The release that an honest shop would send."""

    schema: Schema
    files: list[Path]
    receipt: Receipt


class AttackHarness:
    """One label party, from its start to its model, with attacks on it in between."""

    def __init__(self, folder: Path, crowd: int) -> None:
        self.made = federation(folder, ("shop", "telco", "former"))
        self.crowd = crowd
        config = self.made.config(LABEL_PARTY)
        more = f"\n[peers.former]\nrevoked = true\n\n[limits]\nmemory_mb = {LIMIT_MB}\n"
        config.write_text(config.read_text() + more)
        self._helpers: list[subprocess.Popen[str]] = []

    @contextmanager
    def running(self) -> Iterator[AttackHarness]:
        """Run the label party while the block runs."""
        with serving(self.made) as (self.process, self.address):
            try:
                yield self
            finally:
                for helper in self._helpers:
                    helper.kill()
                    helper.communicate()

    def identity(self, party: str = "shop") -> Identity:
        return identity_of(self.made, party)

    @property
    def certs(self) -> Path:
        return self.made.folder / "certs"

    @contextmanager
    def logged_in(self, identity: Identity | None = None) -> Iterator[tuple[Connection, Welcome]]:
        """Yield a connection with a session, by default of the shop; retry for a while."""
        end = time.monotonic() + PATIENCE
        who = identity or self.identity()
        while True:
            try:
                connection, welcome = shaken_hands(self.made, self.address, who)
                break
            except Unreachable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        with closing(connection):
            yield connection, welcome

    @contextmanager
    def without_session(self, identity: Identity) -> Iterator[Connection]:
        """Yield a connection of the shop without a session."""
        with closing(Connection(self.address, "shop", LABEL_PARTY, identity)) as connection:
            yield connection

    @property
    def state(self) -> Path:
        return self.made.folder / LABEL_PARTY / "state"

    @property
    def job_folder(self) -> Path:
        (file,) = self.state.glob("*/job.json")
        return file.parent

    @property
    def job(self) -> str:
        """The number of the job."""
        return self.job_folder.name

    @property
    def kept(self) -> Path:
        """The folder of the files that the label party keeps about the shop."""
        return self.job_folder / "parties" / "shop"

    @contextmanager
    def nothing_kept(self) -> Iterator[None]:
        """Raise if the block changes the files that the label party keeps about the shop."""
        before = tree(self.kept)
        yield
        if tree(self.kept) != before:
            raise AcceptedError("The label party kept something.")

    @contextmanager
    def http2(self, *, window: int = 65_535, buffer: int | None = None) -> Iterator[ssl.SSLSocket]:
        """Yield a connection of the shop to which hand-made HTTP/2 frames can be written."""
        kit = self.certs / "shop"
        with http2_frames.connected(self.address, kit, buffer=buffer) as end:
            end.sendall(http2_frames.opening(window))
            yield end

    @cached_property
    def release(self) -> HonestRelease:
        """Align and desensitise as an honest shop would."""
        leaving = [*self.made.command("telco"), "--connect", self.address, "--leave"]
        self._helpers.append(started_process(leaving))
        config = load_feature(self.made.config("shop"))
        with open_ledger(config.ledger) as ledger, self.logged_in() as (connection, welcome):
            party, call = feature_party(config, ledger), connection.call
            session, silent = party.psi_session(welcome), lambda *done: None
            PsiClient(session, welcome.job, call, wait=60.0, progress=silent).align()
            schema, files = party.release(welcome)
            receipt = signed_receipt(party.folder(welcome.job), ledger, self.identity())
        return HonestRelease(schema, files, receipt)

    def announced(self, connection: Connection) -> HonestRelease:
        """Send the honest schema and receipt, which must precede the columns."""
        connection.call("schema", self.release.schema, Ack)
        connection.call("receipt", self.release.receipt, Ack)
        return self.release

    def finish(self) -> bool:
        """Let both parties join honestly; return whether they and the label party finish."""
        for helper in self._helpers:
            helper.communicate(timeout=60)
        self._helpers.clear()
        done = joined(self.made, self.address, parties=["shop", "telco"])
        return [d["phase"] for d in done] == ["done", "done"] and self.process.wait(60) == 0

    def lines(self) -> list[dict[str, Any]]:
        """Return the log lines of the label server and of the label party."""
        files = [self.job_folder / "gate.jsonl", self.job_folder / "label.jsonl"]
        texts = [file.read_text() for file in files if file.exists()]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def label_server(self) -> int:
        """Return the label server's process ID."""
        number = waited(lambda: child_of(self.process.pid, LABEL_SERVER), PATIENCE)
        if number is None:
            raise AcceptedError("The label server is not running.")
        return number

    def suffered(self, attack: Attack) -> Outcome:
        """Run an attack while the honest party calls repeatedly, and measure its effects."""
        if attack.when == "release":
            assert self.release
        before, size, label_server = self.lines(), disk(self.state), self.label_server()
        for process in (label_server, self.process.pid):
            forget_peak(process)
        started = time.monotonic()
        with self.honest_calls() as waits:
            try:
                said, was_refused = attack.run(self), True
            except (AcceptedError, op.OpBoostError, OSError) as error:
                said, was_refused = f"{type(error).__name__}: {error}", False
        line, died = self._told(before, attack.log)
        return Outcome(
            attack.name,
            was_refused,
            " ".join(said.split())[:300],
            line,
            max(waits) <= PATIENCE,
            max(waits),
            max(peak_mb(label_server), peak_mb(self.label_server())),
            peak_mb(self.process.pid),
            disk(self.state) - size,
            time.monotonic() - started,
            died,
        )

    @contextmanager
    def honest_calls(self) -> Iterator[list[float]]:
        """Connect as the honest party until after the block; yield the seconds that it takes."""
        waits: list[float] = []
        over = threading.Event()

        def connect() -> None:
            started = time.monotonic()
            try:
                with self.logged_in(self.identity("telco")):
                    waits.append(time.monotonic() - started)
            except op.PeerError:
                waits.append(math.inf)

        def go_on() -> None:
            while not over.wait(0.2):
                connect()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(go_on)
            try:
                yield waits
            finally:
                over.set()
        connect()

    def _told(self, before: list[dict[str, Any]], words: str) -> tuple[str, bool]:
        """Return the log line about an attack, once it is written, and whether the server died."""

        def new() -> list[dict[str, Any]]:
            return [line for line in self.lines() if line not in before]

        def found() -> str:
            told = (f"{line['event']}: {line.get('why', '')}" for line in new())
            return next((line for line in told if re.search(words, line)), "")

        return waited(found, 2.0), any(line["event"] == "gate died" for line in new())


def disk(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # removed since the listing
            total += file.stat().st_size if file.is_file() else 0
    return total


def tree(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a folder."""
    files = [f for f in folder.rglob("*") if f.is_file()]
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def suffered_command(
    name: str,
    command: list[str],
    status: int,
    words: str,
    state: Path,
    log: Callable[[], str] = lambda: "(standard error)",
    unchanged: Callable[[], Any] = lambda: None,
) -> Outcome:
    """Run a party's command on hostile input; check how it ends and that it changes nothing."""
    before, size, started = unchanged(), disk(state), time.monotonic()
    peak, process = 0.0, started_process(command)
    while process.poll() is None and time.monotonic() < started + 60:
        peak = max(peak, peak_mb(process.pid))
        time.sleep(0.02)
    process.kill()
    told = process.communicate(timeout=10)[1]
    said = " ".join(told.split())
    try:
        if process.returncode != status:
            raise AcceptedError(f"It ended with {process.returncode}: {said[-300:]}")
        if "\x1b" in told or "\x07" in told or len(told) > 2000:
            raise AcceptedError("The peer's text was printed unescaped.")
        checked(said, words)
        if unchanged() != before:
            raise AcceptedError("It left files behind, or noise was drawn for it.")
        was_refused = True
    except AcceptedError as error:
        said, was_refused = str(error), False
    line, kept, seconds = log(), disk(state) - size, time.monotonic() - started
    return Outcome(name, was_refused, said[-300:], line, True, 0.0, 0.0, peak, kept, seconds)


When = Literal["any", "points", "release"]
"""When an attack can be tried: any time, before the rows are aligned, or afterwards."""


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack: its name, when it can be tried, the log's words about it, and its function.

    ``run`` returns the sentence that the sender received; it raises if the attack was accepted.
    """

    name: str
    when: When
    log: str
    run: Callable[[AttackHarness], str]


Calls = Iterator[tuple[Any, ...]]
"""Calls that must be refused: step, message, words of the refusal, perhaps the type of answer."""


class Attacks(list[Attack]):
    """The attacks of one file, which decorators add under the names of their functions."""

    def add(self, log: str, *, when: When = "any") -> Any:
        def added(run: Callable[[AttackHarness], str]) -> Callable[[AttackHarness], str]:
            self.append(Attack(run.__name__.replace("_", " "), when, log, run))
            return run

        return added

    def calls(self, log: str, *, when: When = "any") -> Any:
        """Add a function that yields calls of the shop."""

        def added(made: Callable[[AttackHarness, Connection], Calls]) -> None:
            def run(harness: AttackHarness) -> str:
                with harness.logged_in() as (shop, _):
                    return [call_refused(shop, *call) for call in made(harness, shop)][-1]

            self.append(Attack(made.__name__.replace("_", " "), when, log, run))

        return added
