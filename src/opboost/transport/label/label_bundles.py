"""The label party's side of a job by bundles.

Every verb does the same: take in what came, go on with the job until something is still to come,
and write what was said meanwhile, a bundle for each feature party.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError, PeerError, WireError
from opboost.parties.alignment import Match, PsiPeer
from opboost.protocol.messages import Claim, Points, Proof, Rows, Welcome, decode, encode
from opboost.psi.curve_points import POINT_BYTES, piece_count
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import (
    JobFolderChannel,
    JobRecord,
    PartyFolder,
    newest_receipt,
)
from opboost.transport.label.label_job import (
    Data,
    alignment_figures,
    check_data,
    current,
    known_job,
    label_party,
    new_job,
    read_data,
    read_manifest,
    with_ids,
    write_model,
    write_predicted,
)
from opboost.transport.label.receive_columns import (
    check_column_file,
    check_new_receipt,
    check_split_values,
    check_their_points,
    taken_schema,
)
from opboost.transport.shared.bundle_chain import BundleChain, Step, check_recipient
from opboost.transport.shared.bundle_file import Bundle, Header, Source, open_bundle
from opboost.transport.shared.bundle_steps import (
    BundleOutcome,
    Tools,
    check_items,
    check_sizes,
    handed_out,
    pair_of,
    read_item,
    staging,
    steps_of,
    swept,
    turn,
)
from opboost.transport.shared.job_integrity import check_version
from opboost.transport.shared.logs import Log

if TYPE_CHECKING:
    from opboost.parties.label.label_party import Estimator


class Paused(Exception):
    """The job cannot go on before a party has sent something."""


class BundleChannel(JobFolderChannel):
    """The channel to a party that does not connect: what has not come yet is not waited for."""

    def __init__(self, job: Path, party: str) -> None:
        super().__init__(job, party, wait=0.0)

    def met(self, side: PsiPeer) -> Match:
        """What is common with the party, if its points have come."""
        try:
            return self._met(side)
        except WireError as error:
            raise WireError(
                f"The points of party {self.party!r} cannot be used: {error} Begin a new run of "
                "the job with --again."
            ) from None

    def refuse(self, why: str) -> None:
        """Nothing to do: no bundle is written, and people tell each other why."""

    def _until(self, there: Callable[[], bool], what: str) -> None:
        if not there():
            raise Paused(self.party)


def begin(config: LabelConfig, to: Path, *, again: bool = False) -> BundleOutcome:
    """Begin a job: a bundle for every feature party; repeated, the same bundles."""
    tools = Tools.of(config.tls, config.party.name)
    revoked = {name for name, peer in config.peers.items() if peer.revoked}
    for peer in config.job.feature_parties:
        if peer not in revoked:
            tools.public(peer)  # one that lacks is told before anything begins
    with atomic_files.alone(config.state):
        folder = None if again else known_job(config, "bundles")
        if folder is None:
            folder = new_job(config, read_data(config), receipts=True, way="bundles")
        job = _Job(config, folder, tools)
        done = (folder / "manifest.json").exists()
        if done or all(len(chain.entries) > 1 for chain in job.chains.values()):
            raise ConfigError(
                f"Job {job.record.job} is past this step with every party. Go on with it, or begin "
                "a new run of it with --again."
            )
        return job.go_on(1, to)


def go_on(config: LabelConfig, verb: str, inputs: Sequence[Path], to: Path) -> BundleOutcome:
    """Take bundles in, and go on with the job as far as it goes."""
    now = turn(steps_of(config.job), verb, by_label_party=True)
    with _taken(config, verb, now.takes, inputs) as job:
        manifest = job.folder / "manifest.json"
        if manifest.exists() and config.model.exists():
            return BundleOutcome(job.record.job, (), {}, read_manifest(job.folder))
        return job.go_on(now.writes, to)


def predict(
    config: LabelConfig, inputs: Sequence[Path], model: Path, write: Callable[[pa.Table], None]
) -> BundleOutcome:
    """Take the last bundles of a prediction in; ``write`` is given IDs and predictions."""
    from opboost.estimators import load

    estimator = load(model)
    now = turn(steps_of(config.job), "finish", by_label_party=True)
    with _taken(config, "finish", now.takes, inputs) as job:
        return job.predict(estimator, model, write)


@contextmanager
def _taken(config: LabelConfig, verb: str, number: int, inputs: Sequence[Path]) -> Iterator[_Job]:
    """The run of a job that bundles belong to, when they are taken in."""
    tools = Tools.of(config.tls, config.party.name)
    bundles = [open_bundle(path, tools.identity.ca) for path in inputs]
    folder = known_job(config, "bundles")
    if folder is None:
        raise PeerError(
            f"{bundles[0].path.name} belongs to a job that did not begin here: "
            f"{config.state} holds none of {config.job.name!r}."
        )
    _Job(config, folder, tools).check(bundles, verb, number)
    with atomic_files.alone(config.state):
        job = _Job(config, folder, tools)
        job.check(bundles, verb, number)
        swept(folder)
        job.take(bundles)
        yield job


class _Job:
    """A run of a job, under way."""

    def __init__(self, config: LabelConfig, folder: Path, tools: Tools) -> None:
        self.folder, self._config, self._tools = folder, config, tools
        check_version(folder)
        self.record = replace(JobRecord.load(folder), **current(config))
        own, number = config.party.name, self.record.job
        self.chains = {
            peer: BundleChain(folder, pair_of(config.job, own, peer, number))
            for peer in self.record.active
        }

    def check(self, bundles: Sequence[Bundle], verb: str, number: int) -> None:
        """Refuse bundles that are not due; nothing is decrypted, nothing written."""
        seen: dict[str, str] = {}
        for bundle in bundles:
            sender, name = bundle.header.sender, bundle.path.name
            check_recipient(bundle, self.record.label_party)
            if sender in self.record.revoked:
                raise PeerError(f"{name} is from {sender!r}, which is revoked.")
            if sender not in self.chains:
                raise PeerError(f"{name} is from {sender!r}, which is no feature party here.")
            if sender in seen:
                raise PeerError(f"{seen[sender]} and {name} are both from {sender!r}.")
            self.chains[sender].check(bundle, verb, number)
            seen[sender] = name

    def take(self, bundles: Sequence[Bundle]) -> None:
        """Open bundles, check what is in all of them, then put it into the parties' mailboxes."""
        new = [b for b in bundles if not self.chains[b.header.sender].is_repeated(b)]
        with staging(self.folder) as place:
            for bundle in new:
                check_sizes(bundle)
                inside = place / bundle.header.sender
                inside.mkdir()
                try:
                    answer, lock = self._unlocked(bundle.header)
                    bundle.extract(self._tools.key, inside, lock)
                    self._check_inside(inside, bundle.header.sender, bundle.header.number)
                except PeerError as error:
                    raise PeerError(f"{bundle.path.name}: {error}") from None
                if answer:
                    (inside / "proved").write_bytes(answer)
            for bundle in new:
                sender, number = bundle.header.sender, bundle.header.number
                self._store(place / sender, PartyFolder(self.folder, sender), number)
                self.chains[sender].took(bundle)
                self._log("took", sender, number)

    def _unlocked(self, header: Header) -> tuple[bytes, bytes]:
        """What proves to a release's sender that its rows are known, and what unlocks the release.

        Both are empty where there are no aligned rows, and nothing is locked.
        """
        if self.record.align == "given" or header.number != 4:
            return b"", b""
        if not header.claim:
            raise PeerError("It holds a release without a proof of its rows.")
        rows, proof = PartyFolder(self.folder, header.sender).row_proof()
        said = bytes.fromhex(header.claim)
        claim = Claim(header.sender, self.record.job, rows, said[:POINT_BYTES], said[POINT_BYTES:])
        agreed = proof.answered(claim, rows)
        return encode(Proof(self.record.job, agreed.label)), agreed.lock

    def _check_inside(self, inside: Path, party: str, number: int) -> None:
        box = PartyFolder(self.folder, party)
        if number == 2:
            self._check_points(inside)
        elif number == 4:
            self._check_release(inside, box)
        else:
            check_items(inside, ["answer"])
            check_split_values(self.record, box, read_item(inside, "answer"))

    def _check_points(self, inside: Path) -> None:
        """Refuse points of two secrets, and lists with gaps; adds what the gate would note."""
        first = decode(read_item(inside, "00000.feature"), Points)
        places = [
            (self.record.job, step, first.tag, total, number)
            for step, total in (("feature", first.total), ("raised", self.record.rows))
            for number in range(piece_count(total))
        ]
        check_items(inside, [f"{number:05d}.{step}" for _, step, _, _, number in places])
        for place in places:
            points = decode(read_item(inside, f"{place[4]:05d}.{place[1]}"), Points)
            check_their_points(self.record, points)
            if (points.job, points.step, points.tag, points.total, points.piece) != place:
                raise WireError("Points stand in another's place.")
        about = {"tag": first.tag.hex(), "total": first.total}
        (inside / "points").write_bytes(atomic_files.with_checksum(json.dumps(about).encode()))

    def _check_release(self, inside: Path, box: PartyFolder) -> None:
        columns = sorted(file.name for file in inside.glob("*.arrow"))
        check_items(inside, ["schema", "receipt", *columns])
        schema, due = taken_schema(self.record, box, read_item(inside, "schema"))
        check_items(inside, ["schema", "receipt", *(f"{c:05d}.arrow" for c in range(due))])
        receipt, ca = read_item(inside, "receipt"), self._tools.identity.ca
        check_new_receipt(self.folder, self.record, box.party, receipt, ca)
        for column, name in enumerate(columns):
            check_column_file(inside / name, schema, column)

    def _store(self, inside: Path, box: PartyFolder, number: int) -> None:
        """Put items where the network's gate would have put them; what marks them whole is last."""
        box.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(inside.iterdir())
        if number == 4:
            for left in box.folder.glob("*.arrow"):  # of a run that was cut short
                left.unlink()
        for file in files:
            atomic_files.flush(file)
        atomic_files.move((file, box.folder / file.name) for file in files)
        if number == 4:
            columns = sum(file.suffix == ".arrow" for file in files)
            box.note("due", columns)
            box.write("sent", b"")

    def go_on(self, number: int, to: Path) -> BundleOutcome:
        """Go as far as it goes, write what is to be sent, hand out the bundles of a step."""
        started, data = time.monotonic(), self._data()
        channels, welcome = self._met()
        manifest: dict[str, Any] | None = None
        with suppress(Paused):
            party = label_party(self._config, data)
            if self._config.job.purpose == "train":
                estimator = party.train(channels, welcome=welcome, state=self.folder)
                manifest = write_model(
                    self._config,
                    self.folder,
                    self.record,
                    estimator,
                    time.monotonic() - started,
                    self._alignment(),
                )
            elif self.record.align == "psi":
                party.align(channels, welcome, self.folder)
        for peer, chain in self.chains.items():
            self._say(peer, chain)
        written = handed_out(self.chains.values(), number, to)
        return BundleOutcome(
            self.record.job, written, {} if manifest else self._waiting(), manifest
        )

    def predict(
        self, estimator: Estimator, model: Path, write: Callable[[pa.Table], None]
    ) -> BundleOutcome:
        """Predict, if every party's columns are there."""
        started, data = time.monotonic(), self._data()
        channels, welcome = self._met()
        manifest: dict[str, Any] | None = None
        with suppress(Paused):
            party = label_party(self._config, data)
            found = party.predict(estimator, channels, welcome=welcome, state=self.folder)
            seconds, figures = time.monotonic() - started, self._alignment()
            manifest = write_predicted(self.folder, self.record, found, model, seconds, figures)
            write(with_ids(data, found))
        return BundleOutcome(self.record.job, (), {} if manifest else self._waiting(), manifest)

    def _data(self) -> Data:
        self.record.save(self.folder)
        data = read_data(self._config)
        check_data(self.record, data)
        return data

    def _met(self) -> tuple[list[BundleChannel], Welcome]:
        channels = [BundleChannel(self.folder, name) for name in self.record.active]
        return channels, Welcome(self.record.job, bytes.fromhex(self.record.nonce), b"")

    def _alignment(self) -> dict[str, Any]:
        if self.record.align == "given":
            return {}
        return {"align": alignment_figures(self.folder, self.record)}

    def _waiting(self) -> dict[str, Step]:
        due = {peer: chain.due() for peer, chain in self.chains.items()}
        return {peer: s for peer, s in due.items() if s is not None and not s.by_label_party}

    def _say(self, peer: str, chain: BundleChain) -> None:
        """Write the bundle that is due to a party, if the job is so far."""
        step = chain.due()
        if step is None or not step.by_label_party:
            return
        sources = self._sources(peer, step)
        if sources:
            chain.write(sources, self._tools.identity, self._tools.public(peer))
            self._log("wrote", peer, step.number)

    def _sources(self, peer: str, step: Step) -> dict[str, Source]:
        record, box = self.record, PartyFolder(self.folder, peer)
        if step.number == 5:
            if not box.has("query"):
                return {}
            proof = {} if record.align == "given" else {"proof": box.read("proved")}
            return {"query": box.read("query"), **proof}
        if step.number == 3:
            return {"aligned": box.read("aligned")} if box.has("aligned") else {}
        nonce = bytes.fromhex(record.nonce)
        welcome = Welcome(record.job, nonce, newest_receipt(self._config.state, peer))
        if record.align == "given":
            return {"welcome": encode(welcome), **self._rows(box)}
        points = sorted((self.folder / "align" / peer).glob("*.label"))
        return {"welcome": encode(welcome), **{file.name: file for file in points}}

    def _rows(self, box: PartyFolder) -> dict[str, Source]:
        """What the party compares its rows with, before it draws anything."""
        rows, ids = box.expected(self.record)
        return {"rows": encode(Rows(self.record.label_party, self.record.job, rows, ids))}

    def _log(self, event: str, peer: str, step: int) -> None:
        Log(self.folder / "label.jsonl").write(event, job=self.record.job, peer=peer, step=step)
