"""The label party's channel to a feature party through the job's folder on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from opboost.columns.codebook import CodedColumn
from opboost.errors import PeerError, WireError
from opboost.parties.alignment import Match, PsiPeer
from opboost.parties.channel import CheckRows, ScoreDeclinedError, Weigh
from opboost.parties.row_proof import RowProof
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import (
    Aligned,
    Points,
    Schema,
    ScoreTask,
    SplitQuery,
    SplitValues,
    Welcome,
    decode,
    encode,
)
from opboost.protocol.stored_columns import read_column
from opboost.psi.blinding import at_once
from opboost.psi.curve_points import piece_count
from opboost.psi.point_matching import PointList
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import (
    HOLD_SECONDS,
    LOOK_SECONDS,
    TERMS,
    VISITED,
    PartyFolder,
    piece_numbers,
)
from opboost.transport.label.party_totals import HELLO, told

ANSWER_LEAVES_SECONDS = 0.5
"""Seconds in which the label server can send an answer that it has read from the folder."""


class JobFolderChannel:
    """The channel to a party whose messages arrive, or have arrived, in its folder."""

    def __init__(
        self, job: Path, party: str, *, wait: float, watch: Callable[[], None] = lambda: None
    ) -> None:
        self._box, self._party = PartyFolder(job, party), party
        self._ours = job / "align" / party
        self._wait, self._watch = wait, watch
        self._has_declined = False

    @property
    def party(self) -> str:
        """The party's name, which its certificate proved to the label server."""
        return self._party

    def introduced(self, welcome: Welcome) -> float:
        """Wait for the party's hello, and return the most that it reveals about one person."""
        self._until(lambda: self._box.has(HELLO), "who it is")
        return told(self._box)

    def agree(self, welcome: Welcome) -> None:
        """Write the terms for the party, which receives them when it connects."""
        if welcome.columns or welcome.values:
            self._box.write(TERMS, encode(welcome))
        else:  # an earlier run of the label party may have written terms
            (self._box.folder / TERMS).unlink(missing_ok=True)

    def check_rows(self, welcome: Welcome, check: CheckRows) -> None:
        """Do nothing: given rows were checked when the party sent their digest."""

    def offer(self, welcome: Welcome, side: PsiPeer) -> None:
        """Write the label party's points for the party to fetch."""
        self._ours.mkdir(parents=True, exist_ok=True)
        for piece in side.pieces(piece_numbers(self._ours, "label")):
            atomic_files.write(self._ours / f"{piece.piece:05d}.label", encode(piece))
            self._watch()

    def met(self, side: PsiPeer) -> Match:
        """Wait for the party's points; refuse unusable ones, which the party may send again."""
        while True:
            self._until(lambda: not self._box.has("refused"), "other points")
            try:
                return self._met(side)
            except WireError as error:
                for file in self._ours.glob("*.doubled"):
                    file.unlink()
                side.forget_theirs()
                self._box.write("refused", f"The points cannot be used: {error}".encode())

    def _met(self, side: PsiPeer) -> Match:
        self._until(lambda: self._box.has("points"), "its points")
        count = piece_count(self._box.points()["total"])
        arriving = (self._arrived("feature", number) for number in range(count))
        with PointList(self._ours) as raised, PointList(self._ours) as doubled:
            for points in at_once(partial(self._doubled, side), arriving):
                doubled.add(points)
            for number in range(piece_count(side.total)):
                raised.add(self._arrived("raised", number).points)
            return side.met(raised, doubled)

    def _arrived(self, step: str, number: int) -> Points:
        file = self._box.piece(step, number)
        self._watch()
        self._until(file.exists, "its points")
        return decode(file.read_bytes(), Points)

    def _doubled(self, side: PsiPeer, theirs: Points) -> bytes:
        file = self._ours / f"{theirs.piece:05d}.doubled"
        side.check(theirs)
        if not file.exists():
            atomic_files.write(file, atomic_files.with_checksum(side.doubled(theirs)))
        return atomic_files.read_checked(file, atomic_files.AT_LABEL_PARTY)

    def tell(self, aligned: Aligned, proof: RowProof) -> None:
        """Write the common rows for the party to fetch, and keep this side's half of the proof."""
        self._box.expect(aligned.count, proof)
        self._box.write("aligned", encode(aligned))

    def forget(self) -> None:
        """Delete the party's points."""
        self._box.forget_points()

    def refuse(self, why: str) -> None:
        """Write the reason, and wait a moment so that a connected party can fetch it."""
        if self._has_declined or not self._box.has(VISITED):
            return
        self._box.write("refused", why.encode())
        end = time.monotonic() + 2 * HOLD_SECONDS
        while self._box.has("refused") and time.monotonic() < end:
            self._watch()
            time.sleep(LOOK_SECONDS)
        time.sleep(ANSWER_LEAVES_SECONDS)
        (self._box.folder / "refused").unlink(missing_ok=True)

    def open(self, welcome: Welcome, weigh: Weigh | None = None) -> Schema:
        """Wait for the whole release, and answer the party's pilot if it has one."""

        def there() -> bool:
            if weigh is not None:
                self.answer_pilot(weigh)
            return self._box.has("sent")

        if weigh is None:
            self.want_columns()
        self._until(there, "its release")
        return decode(self._box.read("schema"), Schema)

    def want_columns(self) -> None:
        """Note for the party that columns are wanted, not a score."""
        if self._box.has("score"):
            raise self._other_wish()
        self._box.write("columns", b"")

    def want_score(self, task: ScoreTask) -> None:
        """Write the score task for the party to fetch."""
        data = encode(task)
        if self._box.has("columns") or (self._box.has("score") and self._box.read("score") != data):
            raise self._other_wish()
        self._box.write("score", data)

    def _other_wish(self) -> PeerError:
        return PeerError(
            f"Party {self._party!r} was asked for something else in this job: columns, a score, or "
            "the score of another model. Begin a new run of the job (--again)."
        )

    def open_score(self, welcome: Welcome) -> Schema:
        """Wait for the score, and return its schema."""
        self._until(lambda: self._box.has("sent"), "its score")
        return decode(self._box.read("schema"), Schema)

    def answer_pilot(self, weigh: Weigh) -> None:
        """Once the party's pilot has arrived, write its column weights, which are final."""
        pilot = self._box.pilot()
        if self._box.has("weights") or not pilot.has("sent"):
            return
        columns = map(read_column, map(pilot.column, pilot.columns()))
        told = weigh(decode(pilot.read("schema"), Schema), columns)
        self._box.write("weights", encode(told))

    def columns(self) -> Iterator[tuple[ColumnHead, CodedColumn]]:
        """Yield the columns from their files."""
        return map(read_column, self.files())

    def files(self) -> Iterator[Path]:
        """Yield the files of the columns."""
        return map(self._box.column, self._box.columns())

    def ask(self, query: SplitQuery) -> None:
        """Write the query for the party to fetch."""
        data = encode(query)
        if self._box.has("query") and self._box.read("query") != data:
            raise PeerError(
                "The model differs from the one whose split query was sent: the table or the "
                "booster's settings changed during the job. Restore them, or begin a new job "
                "(--again)."
            )
        self._box.write("query", data)

    def answer(self) -> SplitValues:
        """Wait for the answer, and return it."""
        self._until(lambda: self._box.has("answer"), "its split values")
        return decode(self._box.read("answer"), SplitValues)

    def close(self) -> None:
        """Do nothing: the job's manifest says that it is done."""

    def _until(self, there: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + self._wait
        while not there():
            self._watch()
            self._check_declined()
            if time.monotonic() > end:
                raise PeerError(
                    f"Party {self._party!r} did not send {what} within {self._wait:g} s. "
                    "Start again when it is ready: nothing that arrived is lost."
                )
            time.sleep(LOOK_SECONDS)

    def _check_declined(self) -> None:
        """Stop waiting if the party has declined to release the score that it is asked for."""
        if self._box.has("score-declined"):
            (self._box.folder / "score-declined").unlink()
            self._has_declined = True
            raise ScoreDeclinedError(
                f"Party {self._party!r} declined to release a score; its own output says why. "
                "Nothing was predicted. Agree on it, or predict from columns in a new run "
                "(--release columns --again)."
            )
