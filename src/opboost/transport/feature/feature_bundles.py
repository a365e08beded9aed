"""A feature party's side of a job by bundles: read one bundle, write the answer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

from opboost.config.job_file import FeatureConfig, Job
from opboost.errors import PeerError
from opboost.ledger import Ledger
from opboost.ledger.open_ledger import open_ledger
from opboost.parties.feature.feature_job_folders import PILOT as PILOT_FOLDER
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.feature.party_table import JobProgress
from opboost.parties.message_checks import check_schema
from opboost.parties.row_proof import Lock
from opboost.protocol.messages import (
    Aligned,
    Points,
    Proof,
    Rows,
    ScoreTask,
    SplitQuery,
    Weights,
    Welcome,
    decode,
    encode,
)
from opboost.psi.curve_points import piece_count
from opboost.storage import atomic_files
from opboost.transport.feature.feature_job import (
    check_limit,
    check_rollback,
    feature_party,
    manifest_of,
    signed_receipt,
    write_manifest,
)
from opboost.transport.feature.release_checks import checked_party
from opboost.transport.shared import bundle_steps
from opboost.transport.shared.bundle_chain import PILOT, WEIGHTS, BundleChain
from opboost.transport.shared.bundle_file import Bundle, Source, open_bundle
from opboost.transport.shared.bundle_steps import BundleOutcome, Tools
from opboost.transport.shared.job_integrity import check_version
from opboost.transport.shared.logs import Log


def _silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


def go_on(
    config: FeatureConfig,
    verb: str,
    given: Path,
    to: Path,
    *,
    progress: JobProgress = _silent,
    new_ledger: bool = False,
) -> BundleOutcome:
    """Take the label party's bundle, do what it asks for, and write the answer."""
    started = time.monotonic()
    bundle_steps.check_meeting(config.job)
    tools = Tools.of(config.tls, config.party.name)
    label_party = config.job.label_party
    steps = bundle_steps.steps_of(config.job)
    now = bundle_steps.turn(steps, verb, by_label_party=False)
    bundle = open_bundle(given, tools.identity.ca)
    job = bundle.header.job
    chain = BundleChain(
        config.state / job, bundle_steps.pair_of(config.job, config.party.name, label_party, job)
    )
    chain.check(bundle, verb, *now.takes)
    if not job.endswith(config.job.hash[:4].hex()):
        raise PeerError(f"{given.name} has a job number that does not belong to this job file.")
    recipient = tools.public(label_party)
    with atomic_files.alone(config.state):
        chain.check(bundle, verb, *now.takes)
        check_version(config.state / job)
        bundle_steps.swept(config.state / job)
        manifest = None
        if not chain.is_repeated(bundle):
            with (
                bundle_steps.staging(config.state / job) as inside,
                open_ledger(config.ledger, new=new_ledger) as ledger,
            ):
                bundle_steps.check_sizes(bundle)
                bundle.extract(tools.key, inside)
                released = (config.state / job / "schema").exists()
                ready = feature_party if released else checked_party
                party = ready(config, ledger, progress)
                visit = _Visit(config.job, party, ledger, tools, bundle, inside, progress)
                try:
                    sources = visit.sources(verb)
                except PeerError as error:
                    raise type(error)(f"{given.name}: {error}") from None
                made = chain.write(
                    sources, tools.identity, recipient, bundle, visit.lock, pilot=visit.is_pilot
                )
                size = made.stat().st_size
            log = Log(config.state / "bundles.jsonl")
            log.write("wrote", job=job, step=_number(chain), bytes=size)
        phase = "done" if _number(chain) == steps[-1].number else "released"
        released = verb != "align" and _number(chain) != PILOT.number
        bundle_there = chain.written()
        if released and bundle_there and not manifest_of(config.state / job, phase).exists():
            size, seconds = bundle_there.stat().st_size, time.monotonic() - started
            with open_ledger(config.ledger) as ledger:
                manifest = write_manifest(feature_party(config, ledger), job, phase, size, seconds)
        return BundleOutcome(job, bundle_steps.handed_out([chain], now.writes, to), {}, manifest)


def _number(chain: BundleChain) -> int:
    """Return the number of a chain's last step; 0 before the first."""
    last = chain.last()
    return last.number if last else 0


class _Visit:
    """The processing of one bundle from the label party."""

    def __init__(
        self,
        job: Job,
        party: FeatureParty,
        ledger: Ledger,
        tools: Tools,
        bundle: Bundle,
        inside: Path,
        progress: JobProgress,
    ) -> None:
        self._party, self._ledger, self._tools = party, ledger, tools
        self._progress, self._agreed = progress, job
        self._bundle, self._inside = bundle, inside
        self._job = bundle.header.job
        self.lock: Lock | None = None
        """The lock of the answer: only a party that knows the common rows can open it."""
        self.is_pilot = False
        """Whether the answer is a pilot, which comes before the release."""

    def sources(self, verb: str) -> dict[str, Source]:
        """Return the items of the answer."""
        steps = {"align": self._align, "export": self._export, "answer": self._answer}
        return steps[verb]()

    def _align(self) -> dict[str, Source]:
        first = decode(self._read("00000.label"), Points)
        numbers = range(piece_count(first.total))
        pieces = [f"{n:05d}.label" for n in numbers]
        bundle_steps.check_items(self._inside, ["welcome", *self._asked(), *pieces])
        welcome = self._welcomed()
        if (task := self._task()) is not None:
            self._party.check_score(task)
        psi_session = self._party.psi_session(welcome)
        psi_session.begin(map(self._piece, numbers))
        atomic_files.write(self._kept, encode(welcome))
        if task is not None:
            atomic_files.write(self._wanted, encode(task))
        raised = psi_session.raised(map(self._piece, numbers))
        both = itertools.chain(
            self._told("IDs blinded", psi_session.pieces()),
            self._told("IDs of the label party raised", raised),
        )
        made = self._inside / "made"
        made.mkdir()
        for points in both:
            (made / f"{points.piece:05d}.{points.step}").write_bytes(encode(points))
        return {**self._met(), **{file.name: file for file in sorted(made.iterdir())}}

    def _met(self) -> dict[str, Source]:
        """Return the item with the party's hello, if the job limits what all parties reveal."""
        if self._agreed.record is None:
            return {}
        return {"hello": encode(self._party.hello(self._agreed.record, self._agreed.hash))}

    def _piece(self, number: int) -> Points:
        return decode(self._read(f"{number:05d}.label"), Points)

    def _told(self, what: str, pieces: Iterator[Points]) -> Iterator[Points]:
        for points in pieces:
            yield points
            self._progress(what, points.piece + 1, piece_count(points.total))

    def _export(self) -> dict[str, Source]:
        weighed = ["weights"] if self._bundle.header.number == WEIGHTS.number else []
        met: dict[str, Source] = {}
        task: ScoreTask | None = None
        if self._agreed.align == "given":
            bundle_steps.check_items(self._inside, ["welcome", "rows", *weighed, *self._asked()])
            welcome, met, task = self._welcomed(), self._met(), self._task()
            theirs = decode(self._read("rows"), Rows)
            own = self._party.rows(welcome)
            check_schema(own, self._party.name, self._job, theirs.rows, theirs.ids)
        elif weighed:
            bundle_steps.check_items(self._inside, ["welcome", "proof", *weighed])
            welcome = self._welcomed()
            self.lock = self._party.psi_session(welcome).opened(decode(self._read("proof"), Proof))
        else:
            bundle_steps.check_items(self._inside, ["aligned"])
            welcome = decode(self._kept.read_bytes(), Welcome)
            if self._wanted.exists():
                task = decode(self._wanted.read_bytes(), ScoreTask)
            self.lock = self._party.psi_session(welcome).lock(
                decode(self._read("aligned"), Aligned)
            )
        if weighed:
            self._take_weights()
        folder = self._party.folder(self._job)
        pilot = self._party.pilot_release(welcome) if self._agreed.purpose == "train" else None
        self.is_pilot = pilot is not None
        if task is not None:
            _, files = self._party.score_release(welcome, task)
        else:
            _, files = pilot or self._party.release(welcome)
        schema = folder / PILOT_FOLDER / "schema" if self.is_pilot else folder / "schema"
        receipt = signed_receipt(folder, self._ledger, self._tools.identity)
        columns = {file.name: file for file in files}
        return {**met, "schema": schema, "receipt": encode(receipt), **columns}

    def _take_weights(self) -> None:
        """Keep the column weights with which the label party answers the pilot."""
        weights = decode(self._read("weights"), Weights)
        if weights.job != self._job:
            raise PeerError("It holds column weights for another job.")
        self._party.take_weights(weights)

    def _answer(self) -> dict[str, Source]:
        aligned = self._kept.exists()
        bundle_steps.check_items(self._inside, ["query", "proof"] if aligned else ["query"])
        query = decode(self._read("query"), SplitQuery)
        if query.job != self._job:
            raise PeerError("It holds a split query for another job.")
        if aligned:
            psi_session = self._party.psi_session(decode(self._kept.read_bytes(), Welcome))
            psi_session.opened(decode(self._read("proof"), Proof))
        return {"answer": encode(self._party.answer(query))}

    def _asked(self) -> list[str]:
        """Return the name of the item that requests a score instead of columns, if there is one."""
        if self._agreed.purpose == "predict" and (self._inside / "score").exists():
            return ["score"]
        return []

    def _task(self) -> ScoreTask | None:
        return decode(self._read("score"), ScoreTask) if self._asked() else None

    @property
    def _wanted(self) -> Path:
        """The file that keeps a requested score for later steps."""
        return self._party.folder(self._job) / "wanted"

    def _welcomed(self) -> Welcome:
        """Return the label party's first message, checked."""
        welcome = decode(self._read("welcome"), Welcome)
        if welcome.job != self._job:
            raise PeerError("Its welcome names another job than its header.")
        check_limit(welcome, self._agreed)
        check_rollback(welcome, self._ledger, self._tools.identity)
        return welcome

    @property
    def _kept(self) -> Path:
        """The file that keeps the first message for later steps."""
        return self._party.folder(self._job) / "welcome"

    def _read(self, name: str) -> bytes:
        return bundle_steps.read_item(self._inside, name)
