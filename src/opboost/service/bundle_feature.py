"""A feature party's side of a job by bundles: one comes in, one goes out."""

from __future__ import annotations

import time
from pathlib import Path

from opboost import durable
from opboost.config.federation import FeatureConfig
from opboost.errors import PeerError
from opboost.ledger import Caps, Ledger
from opboost.party.checks import check_schema
from opboost.party.feature import FeatureParty, Progress
from opboost.service.bundle_steps import (
    Outcome,
    Tools,
    check_items,
    handed_out,
    pair_of,
    staging,
    steps_of,
    turn,
)
from opboost.service.conversation import Conversation
from opboost.service.feature_side import (
    check_rollback,
    feature_party,
    signed_receipt,
    write_manifest,
)
from opboost.service.logs import Log
from opboost.service.sealed import Bundle, Source, unseal
from opboost.wire.messages import Rows, SplitQuery, Welcome, decode, encode


def go_on(
    config: FeatureConfig, verb: str, given: Path, to: Path, *, progress: Progress | None = None
) -> Outcome:
    """Take the label party's bundle in, do what it asks for, and write the answer."""
    started = time.monotonic()
    tools = Tools.of(config.tls, config.party.name)
    label_party = config.job.label_party
    now = turn(steps_of(config.job), verb, by_label_party=False)
    bundle = unseal(given, tools.identity.ca)
    job = bundle.header.job
    chain = Conversation(
        config.state / job, pair_of(config.job, config.party.name, label_party, job)
    )
    chain.check(bundle, verb, now.takes)
    if not job.endswith(config.job.hash[:4].hex()):
        raise PeerError(f"{given.name} has a job number that is not one of this job file.")
    recipient = tools.public(label_party)
    with durable.alone(config.state):
        chain.check(bundle, verb, now.takes)
        manifest = None
        if not chain.is_repeated(bundle):
            caps = Caps(config.ledger.cap_attribute, config.ledger.cap_person)
            with (
                staging(config.state / job) as inside,
                Ledger(config.ledger_folder, config.ledger_key, caps) as ledger,
            ):
                bundle.extract(tools.key, inside)
                party = feature_party(config, ledger, progress)
                try:
                    sources = _Visit(party, ledger, tools, bundle, inside).sources(verb)
                except PeerError as error:
                    raise type(error)(f"{given.name}: {error}") from None
                written = chain.write(sources, tools.identity, recipient, bundle)
                size, seconds = written.stat().st_size, time.monotonic() - started
                phase = "done" if verb == "answer" else "released"
                manifest = write_manifest(party, job, phase, size, seconds)
            log = Log(config.state / "bundles.jsonl")
            log.write("wrote", job=job, step=now.writes, bytes=size)
        return Outcome(job, handed_out([chain], now.writes, to), {}, manifest)


class _Visit:
    """What one bundle leads to."""

    def __init__(
        self, party: FeatureParty, ledger: Ledger, tools: Tools, bundle: Bundle, inside: Path
    ) -> None:
        self._party, self._ledger, self._tools = party, ledger, tools
        self._bundle, self._inside = bundle, inside
        self._job = bundle.header.job

    def sources(self, verb: str) -> dict[str, Source]:
        """The items of the answer."""
        return self._answer() if verb == "answer" else self._export()

    def _export(self) -> dict[str, Source]:
        check_items(self._items(), ["welcome", "rows"])
        welcome = decode(self._read("welcome"), Welcome)
        theirs = decode(self._read("rows"), Rows)
        if welcome.job != self._job:
            raise PeerError("It welcomes to another job than its header says.")
        check_rollback(welcome, self._ledger, self._tools.identity)
        own = self._party.rows(welcome)
        check_schema(own, self._party.name, self._job, theirs.rows, theirs.ids)
        _, files = self._party.release(welcome)
        folder = self._party.folder(self._job)
        receipt = signed_receipt(folder, self._ledger, self._tools.identity)
        columns = {file.name: file for file in files}
        return {"schema": folder / "schema", "receipt": encode(receipt), **columns}

    def _answer(self) -> dict[str, Source]:
        check_items(self._items(), ["query"])
        query = decode(self._read("query"), SplitQuery)
        if query.job != self._job:
            raise PeerError("It holds a split query of another job.")
        return {"answer": encode(self._party.answer(query))}

    def _items(self) -> list[str]:
        return [file.name for file in self._inside.iterdir()]

    def _read(self, name: str) -> bytes:
        return (self._inside / name).read_bytes()
