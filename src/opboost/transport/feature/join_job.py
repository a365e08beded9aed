"""The feature party's side of a networked job: send a release once, answer one split query."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, cast

import numpy as np

from opboost.config import Plan
from opboost.config.job_file import FeatureConfig
from opboost.errors import (
    ConfigError,
    DataError,
    OpBoostError,
    PeerError,
    PrivacyError,
    refusing,
)
from opboost.grid import NumericMapping
from opboost.ledger import Ledger
from opboost.ledger.open_ledger import open_ledger
from opboost.parties.feature.feature_job_folders import RELEASE
from opboost.parties.feature.party_table import JobProgress
from opboost.protocol.entropy_coding import warm_up
from opboost.protocol.messages import (
    Ack,
    Farewell,
    Poll,
    Schema,
    ScoreTask,
    SplitQuery,
    Weights,
    Welcome,
)
from opboost.storage import atomic_files
from opboost.transport.feature.feature_job import (
    check_limit,
    check_rollback,
    feature_party,
    introduction,
    last_done,
    last_released,
    signed_receipt,
    write_manifest,
)
from opboost.transport.feature.label_connection import Connection, LoggedOut, Unreachable
from opboost.transport.feature.network_psi import PsiClient, rest
from opboost.transport.feature.release_checks import checked_party
from opboost.transport.shared.job_integrity import check, check_version
from opboost.transport.shared.logs import Log, resumed
from opboost.transport.shared.tls import (
    Identity,
    check_loopback,
    read_identity,
)

M = TypeVar("M")


TELL_SECONDS = 5.0
"""How long a party that refuses tries to tell the label party."""

CONFIRM_SECONDS = 10.0
"""How long a party tries to confirm the end of the job; the model does not depend on it."""


def join(
    config: FeatureConfig,
    *,
    connect: str | None = None,
    insecure_plaintext: bool = False,
    leave: bool = False,
    new_ledger: bool = False,
    progress: JobProgress | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Take part in a new or interrupted job; return the manifest.

    With ``leave``, the party leaves after sending; a later ``join`` answers the split query.  With
    ``new_ledger``, an empty ledger is begun although its key exists.
    """
    address = connect or config.party.connect
    if address is None:
        raise ConfigError('Add connect = "host:port" to [party], where the label party listens.')
    if insecure_plaintext:
        check_loopback(address)
    identity = None if insecure_plaintext else read_identity(config.tls, config.party.name)
    Thread(target=_warm_up, args=(config.plan,), daemon=True).start()
    with (
        atomic_files.alone(config.state) as half_written,
        open_ledger(config.ledger, new=new_ledger) as ledger,
    ):
        visit = _Visit(config, address, identity, ledger, say)
        return visit.run(leave, half_written, progress)


def _put(job: str, number: int, file: Path, connection: Connection, *, pilot: bool) -> None:
    connection.put(job, number, file, pilot=pilot)


def _poll(job: str, connection: Connection) -> SplitQuery | Farewell | Ack:
    said: Any = connection.call("poll", Poll(job), SplitQuery, Farewell, Ack)
    return cast(SplitQuery | Farewell | Ack, said)


def _warm_up(plan: Plan) -> None:
    """Load the compiled loops while the connection is being made."""
    warm_up()
    for column in plan.private[:1]:
        if isinstance(column.mapping, NumericMapping):
            column.mapping.scan(np.array(column.mapping.bounds))
    gc.freeze()  # loaded code stays: never collect it


class _Visit:
    """One run of ``join``."""

    def __init__(
        self,
        config: FeatureConfig,
        address: str,
        identity: Identity | None,
        ledger: Ledger,
        say: Callable[[str], None],
    ) -> None:
        self._config, self._identity, self._ledger, self._say = config, identity, ledger, say
        self._progress: JobProgress = lambda what, done, total: None
        self._log = Log(config.state / "join.jsonl")
        self._address = address
        self._told = False
        self._connection: Connection | None = None
        self._sent = 0

    def run(
        self, leave: bool, half_written: int, progress: JobProgress | None = None
    ) -> dict[str, Any]:
        started = time.monotonic()
        self._progress = progress or self._progress
        try:
            self._begin()
            return self._visited(leave, started, half_written)
        except OpBoostError as error:
            if isinstance(error, PeerError | PrivacyError):
                self._log.write("stopped", why=str(error)[:300])
            self._tell_refusal(error)
            raise
        finally:
            self._hang_up()

    def _begin(self) -> None:
        """Check the release before contacting anybody, unless it has already been made."""
        config, ledger = self._config, self._ledger
        if last_released(config.state, ledger, config.job.hash) is None:
            self._party, self._is_checked = checked_party(config, ledger, self._progress), True
        else:
            self._party, self._is_checked = feature_party(config, ledger, self._progress), False

    def _tell_refusal(self, error: OpBoostError) -> None:
        """Tell the label party, if it can be reached, the kind of reason for the refusal."""
        reason = error.refusal or ("rows" if isinstance(error, DataError) else None)
        if reason is None or isinstance(error, PeerError):
            return
        self._told = True  # suppresses messages about waiting, since the refusal follows
        with suppress(PeerError):
            self._retried(lambda c: c.call("refuse", Ack(c.welcome.job, reason), Ack), TELL_SECONDS)

    def _visited(self, leave: bool, started: float, half_written: int) -> dict[str, Any]:
        try:
            welcome = self._retried(lambda c: c.welcome)
        except Unreachable as error:
            return self._done_before(error)
        if not welcome.job.endswith(self._config.job.hash[:4].hex()):
            raise PeerError("The label party's job number does not belong to this job file.")
        check_limit(welcome, self._config.job)
        if self._identity is not None:
            check_rollback(welcome, self._ledger, self._identity)
        self._report_resumed(welcome.job, half_written)
        if not self._is_checked and not (self._party.folder(welcome.job) / "schema").exists():
            self._party = checked_party(self._config, self._ledger, self._progress)
        self._party.check_terms(welcome)
        task = self._accepted_task(welcome.job)
        with refusing("rows"):
            if self._config.job.align == "psi":
                self._align(welcome)
            else:
                self._match_given(welcome)
        self._send(welcome, task)
        phase = "released" if leave else self._wait(welcome.job)
        manifest = self._manifest(welcome.job, phase, started)
        if phase == "done":
            self._confirm(welcome.job)
        return manifest

    def _done_before(self, unreachable: Unreachable) -> dict[str, Any]:
        """If the last run is done, return its manifest: the label party may have left since."""
        manifest = last_done(self._party, self._ledger, self._config.job.hash)
        if manifest is None:
            raise unreachable
        self._say(f"Job {manifest['job']} is done; no newer run of it can be reached.")
        return manifest

    def _report_resumed(self, job: str, half_written: int) -> None:
        """Report that a job is resumed, in which phase, and what an interrupted run left behind."""
        phase = self._party.phase(job)
        if phase is None:
            return
        folder = self._party.folder(job)
        check_version(folder)
        lost = check(folder, atomic_files.AT_FEATURE_PARTY, (RELEASE, "answer"))
        self._log.write("resumed", job=job, phase=phase, half_written=half_written, damaged=lost)
        self._say(resumed(job, phase, half_written, lost))

    def _align(self, welcome: Welcome) -> None:
        psi_session, job = self._party.psi_session(welcome), welcome.job
        if psi_session.done:
            return
        wait = self._config.limits.wait_seconds
        found = PsiClient(psi_session, job, self._asked, wait=wait, progress=self._progress).align()
        self._log.write("aligned", job=job, rows=found.total, common=found.count)
        mine = self._config.job.rows == "mine"
        whose = "shared with the label party" if mine else "common to all parties"
        self._say(f"{found.count:,} of {found.total:,} rows are {whose}.")

    def _match_given(self, welcome: Welcome) -> None:
        """Send the digest of the given rows, and wait until the label party starts the release."""
        rows = self._party.rows(welcome)
        end = time.monotonic() + self._config.limits.wait_seconds
        while time.monotonic() < end:
            asked = time.monotonic()
            if self._asked("rows", rows, Ack).step != "wait":
                return
            rest(asked)
        raise PeerError("The other parties did not join in time. Join again later.")

    def _asked(self, step: str, message: Any, *expected: type[M]) -> M:
        return self._retried(lambda c: c.call(step, message, *expected))

    def _send(self, welcome: Welcome, task: ScoreTask | None) -> None:
        schema, files = self._released(welcome, task)
        started = time.monotonic()
        self._put_release(welcome.job, schema, files)
        seconds = round(time.monotonic() - started, 3)
        columns = len(files)
        self._log.write("sent", job=welcome.job, rows=schema.rows, columns=columns, seconds=seconds)
        self._say(f"{len(files)} columns of {schema.rows:,} rows sent.")

    def _accepted_task(self, job: str) -> ScoreTask | None:
        """Return the score that a prediction requests, if it is allowed; None for columns."""
        task = None if self._config.job.purpose == "train" else self._wanted(job)
        if task is not None:
            self._say("The label party asks for a score instead of columns.")
            with self._declining(job):
                self._party.check_score(task)
        return task

    @contextmanager
    def _declining(self, job: str) -> Iterator[None]:
        """If this party refuses a score, tell the label party, which then stops waiting."""
        try:
            yield
        except (PrivacyError, PeerError):
            with suppress(PeerError):
                self._retried(lambda c: c.call("declined", Poll(job), Ack), CONFIRM_SECONDS)
            raise

    def _released(self, welcome: Welcome, task: ScoreTask | None) -> tuple[Schema, list[Path]]:
        """Return the release of this job: columns, or in a prediction the requested score."""
        if task is not None:
            with self._declining(welcome.job):
                return self._party.score_release(welcome, task)
        if self._config.job.purpose == "train":
            self._pilot(welcome)
        return self._party.release(welcome)

    def _wanted(self, job: str) -> ScoreTask | None:
        """Wait for the label party's request; return the score, or None for columns."""
        end = time.monotonic() + self._config.limits.wait_seconds
        while time.monotonic() < end:
            asked = time.monotonic()
            told: ScoreTask | Ack = self._retried(
                lambda c: cast(ScoreTask | Ack, c.call("score", Poll(job), ScoreTask, Ack))
            )
            if isinstance(told, ScoreTask):
                return told
            if told.step == "columns":
                return None
            rest(asked)
        raise PeerError("The label party did not say in time what it wants. Join again later.")

    def _pilot(self, welcome: Welcome) -> None:
        """Send the pilot's release, if there is a pilot, and wait for the column weights."""
        found, job = self._party.pilot_release(welcome), welcome.job
        if found is None:
            return
        self._put_release(job, *found, pilot=True)
        self._log.write("pilot", job=job, rows=found[0].rows, columns=len(found[1]))
        self._say("The pilot is sent; waiting for the column weights.")
        end = time.monotonic() + self._config.limits.wait_seconds
        while time.monotonic() < end:
            asked = time.monotonic()
            told: Weights | Ack = self._retried(
                lambda c: cast(Weights | Ack, c.call("weights", Poll(job), Weights, Ack))
            )
            if isinstance(told, Weights):
                if told.job != job:
                    raise PeerError("The weights are for another job.")
                self._party.take_weights(told)
                self._log.write("weights", job=job, told=bool(told.columns))
                return
            rest(asked)
        raise PeerError(
            "The label party did not send the column weights in time. Join again: the pilot's "
            "release is kept, and nothing is charged twice."
        )

    def _put_release(
        self, job: str, schema: Schema, files: list[Path], *, pilot: bool = False
    ) -> None:
        """Send a release, or the rest of it: schema, receipt, and missing columns."""
        before = "pilot " if pilot else ""
        there = self._retried(lambda c: c.call(f"{before}schema", schema, Ack))
        self._give_receipt(job, f"{before}receipt")
        for number, file in enumerate(files):
            if number not in there.columns:
                self._retried(partial(_put, job, number, file, pilot=pilot))
            self._progress("sent", number + 1, len(files))
        self._retried(lambda c: c.call(f"{before}sent", Ack(job, "sent"), Ack))

    def _give_receipt(self, job: str, step: str) -> None:
        """Sign the ledger's head and send it before any code."""
        if self._identity is None:
            return
        receipt = signed_receipt(self._party.folder(job), self._ledger, self._identity)
        self._retried(lambda c: c.call(step, receipt, Ack))

    def _wait(self, job: str) -> str:
        """Wait for the split query, answer it, and wait for the end."""
        end = time.monotonic() + self._config.limits.wait_seconds
        predicting = self._config.job.purpose == "predict"
        what = "end of the job" if predicting else "split query"
        self._say(f"Waiting for the {what}; you may also stop now and join again later.")
        answered = False
        while time.monotonic() < end:
            asked = time.monotonic()
            said = self._retried(partial(_poll, job))
            if isinstance(said, Farewell):
                return "done"
            if isinstance(said, SplitQuery):
                if said.job != job:
                    raise PeerError("The split query is for another job.")
                if predicting:
                    raise PeerError("A split query arrived in a prediction, which has none.")
                self._answer(said)
                if not answered:
                    answered = True
                    continue
            rest(asked)
        return "waited"

    def _confirm(self, job: str) -> None:
        """Tell the label party, unless it has left, that it need not wait for this party."""
        with suppress(PeerError):
            self._retried(lambda c: c.call("heard", Ack(job, "heard"), Ack), CONFIRM_SECONDS)

    def _answer(self, query: SplitQuery) -> None:
        answer = self._party.answer(query)
        self._retried(lambda c: c.call("answer", answer, Ack))
        cuts = sum(len(c.codes) for c in query.columns)
        self._log.write("answered", job=query.job, columns=len(query.columns), cuts=cuts)
        self._say(f"Answered {cuts} cuts of {len(query.columns)} columns.")

    def _retried(self, call: Callable[[Connection], M], most: float = math.inf) -> M:
        """Call, and retry while the label party cannot be reached.

        Retry for ``connect_seconds`` from the first failure, but at most for ``most`` seconds. Each
        pause is a twentieth of the time waited so far, from 0.05 to 2 seconds.  So it prolongs a
        short wait only a little, and a long wait makes few failed calls.
        """
        patience = min(most, self._config.limits.connect_seconds)
        since: float | None = None
        while True:
            try:
                return call(self._connected())
            except Unreachable as error:
                self._hang_up()
                since = since or time.monotonic()
                waited = time.monotonic() - since
                pause = min(2.0, max(0.05, waited / 20))
                if not self._told and not isinstance(error, LoggedOut):
                    self._told = True
                    self._say(
                        f"Waiting for {self._config.job.label_party} at {self._address}, "
                        f"at most {patience:g} s ..."
                    )
                if waited + pause > patience:
                    raise Unreachable(
                        f"The label party at {self._address} cannot be reached: {error}"
                    ) from None
                time.sleep(pause)

    def _connected(self) -> Connection:
        if self._connection is None:
            job = self._config.job
            self._connection = Connection(
                self._address,
                self._config.party.name,
                job.label_party,
                self._identity,
                self._config.limits.answer_seconds,
            )
            self._connection.hello(introduction(self._config))
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._sent += self._connection.sent
            self._connection.close()
            self._connection = None

    def _manifest(self, job: str, phase: str, started: float) -> dict[str, Any]:
        sent = self._sent + (self._connection.sent if self._connection else 0)
        return write_manifest(self._party, job, phase, sent, time.monotonic() - started)
