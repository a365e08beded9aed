"""Forged bundles, given to real ``opboost bundle`` processes of honest parties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from opboost.demo.local_federation import LABEL_PARTY
from opboost.protocol.column_streams import FIELDS, batch
from opboost.protocol.messages import Schema, decode, encode
from opboost.transport.shared.bundle_file import (
    MARK,
    Bundle,
    Header,
    Item,
    open_bundle,
    write_bundle,
)
from opboost.transport.shared.bundle_keys import read_key, read_public
from opboost.transport.shared.tls import Identity
from robustness.attacks.attack_harness import Outcome, When, renamed, suffered_command, tree
from robustness.bundle_office import Office, extracted
from robustness.fuzz.targets.messages import written
from robustness.party_processes import federation, identity_of, new_identity


class Carrier:
    """A job by bundles up to the exports, and a hostile carrier of its bundles."""

    def __init__(self, folder: Path) -> None:
        self.made = federation(folder, ("shop", "telco"), align="given")
        self.office, self.certs = Office(self.made), folder / "certs"
        self.first = {p: Path(f) for p, f in self.office.begun().items()}
        self.exports = {
            p: Path(self.office.written(p, "export", self.first[p])[LABEL_PARTY])
            for p in self.made.parties
        }

    def export(self, party: str = "shop") -> bytes:
        return self.exports[party].read_bytes()

    def spliced(self, data: bytes) -> Path:
        """Return the shop's export with other bytes from byte 1000 on."""
        whole = self.export()
        return self.forged(whole[:1000] + data + whole[1000 + len(data) :])

    def forged(self, data: bytes) -> Path:
        path = self.made.folder / "forged.bundle"
        path.write_bytes(data)
        return path

    def sealed(
        self,
        items: dict[str, bytes],
        sender: str = "shop",
        by: Identity | None = None,
        **change: object,
    ) -> Path:
        """Return a bundle that the shop signs, or that somebody else signs in its name."""
        identity = by or identity_of(self.made, sender)
        header = replace(self.header(), sender=sender, **change)
        public = read_public(self.certs / f"{LABEL_PARTY}.public", LABEL_PARTY, identity.ca)
        path = self.made.folder / "forged.bundle"
        write_bundle(path, header, items, identity, public)
        return path

    def bundle(self) -> Bundle:
        """Return the shop's honest export."""
        return open_bundle(self.exports["shop"], identity_of(self.made, "shop").ca)

    def header(self) -> Header:
        return self.bundle().header

    def opened(self) -> dict[str, bytes]:
        """Return the items of the shop's honest export."""
        key = read_key(self.certs / LABEL_PARTY / "encryption.key")
        return extracted(self.bundle(), key, self.made.folder / "inside")

    def suffered(self, forgery: Forgery) -> Outcome:
        """Give a bundle to the party, and return the outcome."""
        state = self.made.folder / forgery.party / "state"
        command = self.office.command(forgery.party, forgery.verb, forgery.make(self))
        words, name = forgery.words, forgery.name
        return suffered_command(name, command, 4, words, state, unchanged=lambda: tree(state))

    def finish(self) -> bool:
        """Finish the job with the honest bundles."""
        queries = self.office.written(LABEL_PARTY, "split-query", *self.exports.values())
        self.office.finish(queries)
        return (self.made.folder / LABEL_PARTY / "model.opboost").exists()


@dataclass(frozen=True, slots=True)
class Forgery:
    """A forged bundle, the party and command that receive it, and the sentence that refuses it."""

    name: str
    make: Callable[[Carrier], Path]
    words: str
    party: str = LABEL_PARTY
    verb: str = "split-query"
    when: When = "any"


def terabytes(carrier: Carrier) -> Path:
    """Make a header that announces more than any disk holds, followed by little data."""
    plain = replace(carrier.header(), items=(Item("schema", 2**50),)).to_bytes()
    return carrier.forged(MARK + len(plain).to_bytes(8, "big") + plain + bytes(10_000))


def bomb(carrier: Carrier) -> Path:
    """Make a column of a few kB that unpacks to 1.5 GB."""
    items = carrier.opened()
    with pa.ipc.open_stream(items["00000.arrow"]) as honest:
        schema = FIELDS.with_metadata(honest.schema.metadata)
    column = written(schema, [batch(bytes(1_500_000_000))], compression="zstd")
    return carrier.sealed({**items, "00000.arrow": column})


def steering(carrier: Carrier) -> Path:
    """Make a release whose first column's name moves the cursor."""
    items = carrier.opened()
    schema = renamed(decode(items["schema"], Schema), "pay\x1b[1A\x1b[2K")
    return carrier.sealed({**items, "schema": encode(schema)})


FORGERIES = (
    Forgery("a bundle that is cut short", lambda c: c.forged(c.export()[:-1]), "cut short"),
    Forgery("a bundle with bytes added at its end",
            lambda c: c.forged(c.export() + b"\0"), "bytes were added"),
    Forgery("a bundle that was altered", lambda c: c.spliced(bytes([c.export()[1000] ^ 1])),
            "altered"),
    Forgery("a bundle spliced from two",
            lambda c: c.spliced(c.export("telco")[1000:1100]), "altered"),
    Forgery("bytes that are not a bundle", lambda c: c.forged(bytes(5000)),
            "not an OpBoost bundle"),
    Forgery("a bundle that announces terabytes", terabytes, "cut short"),
    Forgery("a bundle that is a bomb", bomb, "compressed"),
    Forgery("a bundle signed under another authority",
            lambda c: c.sealed(c.opened(), by=new_identity(c.certs, "shop")), "did not issue"),
    Forgery("a bundle in another party's name",
            lambda c: c.sealed(c.opened(), sender="telco"), "telco|name|step"),
    Forgery("a bundle for somebody else", lambda c: c.first["shop"], "is for 'shop'",
            party="telco", verb="export"),
    Forgery("a bundle sent back to its sender", lambda c: c.first["shop"], "is for 'shop'"),
    Forgery("a bundle of another job file",
            lambda c: c.sealed(c.opened(), job_hash="0" * 64), "another job file"),
    Forgery("a bundle of another run of the job",
            lambda c: c.sealed(c.opened(), job="20200101T000000Z" + c.header().job[16:]),
            "belongs to job"),
    Forgery("a step that is not due", lambda c: c.exports["shop"], "does not take", verb="finish"),
    Forgery("a bundle whose names contain escape sequences", steering, "invisible character"),
    Forgery("a bundle with one item too many",
            lambda c: c.sealed({**c.opened(), "more": b""}), "items are not those"),
)  # fmt: skip
