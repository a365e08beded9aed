"""Check feature parties' bundles, and store their contents in the parties' folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from opboost.errors import PeerError, WireError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.protocol.messages import Claim, Hello, Points, Proof, decode, encode
from opboost.psi.curve_points import POINT_BYTES, piece_count
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import JobRecord, PartyFolder
from opboost.transport.label.party_totals import HELLO, check_hello
from opboost.transport.label.receive_columns import (
    check_column_file,
    check_new_receipt,
    check_split_values,
    check_their_points,
    taken_schema,
)
from opboost.transport.shared.bundle_chain import (
    KEPT_BUNDLES,
    PILOT,
    BundleChain,
    check_recipient,
)
from opboost.transport.shared.bundle_file import Bundle, Header
from opboost.transport.shared.bundle_steps import (
    Tools,
    check_items,
    check_sizes,
    read_item,
    staging,
)
from opboost.transport.shared.logs import Log

RELEASES = (PILOT.number, KEPT_BUNDLES)
"""The numbers of the steps in which columns arrive: the pilot's release, and the full one."""

PROVED = "proved"
"""The file with the label party's answer to a proof of rows, for its next bundle."""


class BundleIntake:
    """Checks and stores a job's bundles; ``chains`` maps each party to the chain of its bundles."""

    def __init__(
        self, folder: Path, record: JobRecord, tools: Tools, chains: Mapping[str, BundleChain]
    ) -> None:
        self._folder, self._record, self._tools, self._chains = folder, record, tools, chains
        self._log = Log(folder / "label.jsonl")

    def check(self, bundles: Sequence[Bundle], verb: str, numbers: Sequence[int]) -> None:
        """Refuse bundles that are not due, without decrypting or writing anything."""
        seen: dict[str, str] = {}
        for bundle in bundles:
            sender, name = bundle.header.sender, bundle.path.name
            check_recipient(bundle, self._record.label_party)
            if sender in self._record.revoked:
                raise PeerError(f"{name} is from {sender!r}, which is revoked.")
            if sender not in self._chains:
                raise PeerError(f"{name} is from {sender!r}, not a feature party of this job.")
            if sender in seen:
                raise PeerError(f"{seen[sender]} and {name} are both from {sender!r}.")
            self._chains[sender].check(bundle, verb, *numbers)
            seen[sender] = name

    def take(self, bundles: Sequence[Bundle]) -> None:
        """Decrypt all bundles and check their contents, then store them in the parties' folders."""
        new = [b for b in bundles if not self._chains[b.header.sender].is_repeated(b)]
        with staging(self._folder) as place:
            for bundle in new:
                check_sizes(bundle)
                inside = place / bundle.header.sender
                inside.mkdir()
                try:
                    answer, lock = self.unlocked(bundle.header)
                    bundle.extract(self._tools.key, inside, lock)
                    self.check_inside(inside, bundle.header.sender, bundle.header.number)
                except PeerError as error:
                    raise PeerError(f"{bundle.path.name}: {error}") from None
                if answer:
                    (inside / PROVED).write_bytes(answer)
            for bundle in new:
                sender, number = bundle.header.sender, bundle.header.number
                self._store(place / sender, PartyFolder(self._folder, sender), number)
                self._chains[sender].took(bundle)
                self._log.write("took", job=self._record.job, peer=sender, step=number)

    def unlocked(self, header: Header) -> tuple[bytes, bytes]:
        """Return the proof that the label party knows the rows, and the key that opens the release.

        Both are empty if the bundle is not locked: only a release of aligned rows is.  A full
        release must carry the same proof as its pilot, since a different proof would be another
        guess at rows.
        """
        if self._record.align == "given" or header.number not in RELEASES:
            return b"", b""
        if not header.claim:
            raise PeerError("It holds a release without a proof of its rows.")
        box = PartyFolder(self._folder, header.sender)
        rows, proof = box.row_proof()
        said = bytes.fromhex(header.claim)
        claim = Claim(header.sender, self._record.job, rows, said[:POINT_BYTES], said[POINT_BYTES:])
        agreed = proof.answered(claim, rows)
        answer = encode(Proof(self._record.job, agreed.label))
        if box.has(PROVED) and box.read(PROVED) != answer:
            raise PeerError(
                "A different proof of rows came with the pilot, and a job accepts only one. Ask "
                "its sender to repeat 'opboost bundle export', or begin a new run of the job "
                "(--again)."
            )
        return answer, agreed.lock

    def check_inside(self, inside: Path, party: str, number: int) -> None:
        """Refuse a party's bundle unless it holds exactly the items of its step."""
        box = PartyFolder(self._folder, party)
        if number == 2:
            self._check_points(inside, box)
        elif number in RELEASES:
            self._check_release(inside, box.pilot() if number == PILOT.number else box)
        else:
            check_items(inside, ["answer"])
            check_split_values(self._record, box, read_item(inside, "answer"))

    def _check_points(self, inside: Path, box: PartyFolder) -> None:
        """Refuse missing pieces and points of two secrets; note the points as the server would."""
        first = decode(read_item(inside, "00000.feature"), Points)
        places = [
            (self._record.job, step, first.tag, total, number)
            for step, total in (("feature", first.total), ("raised", self._record.rows))
            for number in range(piece_count(total))
        ]
        names = [f"{number:05d}.{step}" for _, step, _, _, number in places]
        check_items(inside, [*names, *self._met(inside, box.party)])
        for place in places:
            points = decode(read_item(inside, f"{place[4]:05d}.{place[1]}"), Points)
            check_their_points(self._record, points)
            if (points.job, points.step, points.tag, points.total, points.piece) != place:
                raise WireError("A piece of points is out of order.")
        about = {"tag": first.tag.hex(), "total": first.total}
        (inside / "points").write_bytes(atomic_files.with_checksum(json.dumps(about).encode()))

    def _check_release(self, inside: Path, box: PartyFolder) -> None:
        columns = sorted(file.name for file in inside.glob("*.arrow"))
        given = self._record.align == "given"
        about = ["schema", "receipt", *(self._met(inside, box.party) if given else [])]
        check_items(inside, [*about, *columns])
        schema, due = taken_schema(self._record, box, read_item(inside, "schema"))
        check_items(inside, [*about, *(f"{c:05d}.arrow" for c in range(due))])
        receipt, ca = read_item(inside, "receipt"), self._tools.identity.ca
        check_new_receipt(self._folder, self._record, box.party, receipt, ca)
        announced = AnnouncedColumns.of(schema)
        for column, name in enumerate(columns):
            check_column_file(inside / name, announced, column)

    def _met(self, inside: Path, party: str) -> list[str]:
        """Return the item in which a party introduces itself; none if the job sets no limit."""
        if not self._record.record:
            return []
        hello = decode(read_item(inside, HELLO), Hello)
        if (hello.party, hello.job_hash.hex()) != (party, self._record.hash):
            raise PeerError("Its hello names another party or another job.")
        check_hello(self._record, hello)
        return [HELLO]

    def _store(self, inside: Path, box: PartyFolder, number: int) -> None:
        """Store items where the label server would; mark them as complete last."""
        target = box.pilot() if number == PILOT.number else box
        target.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(inside.iterdir())
        if number in RELEASES:
            for left in target.folder.glob("*.arrow"):  # from an interrupted run
                left.unlink()
        for file in files:
            atomic_files.flush(file)
        of_party = (HELLO, PROVED)
        atomic_files.move(
            (file, (box if file.name in of_party else target).folder / file.name) for file in files
        )
        if number in RELEASES:
            columns = sum(file.suffix == ".arrow" for file in files)
            target.note("due", columns)
            target.write("sent", b"")
