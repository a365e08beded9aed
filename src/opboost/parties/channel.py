"""The label party's interface to one feature party.

A channel carries messages and nothing else. :class:`MemoryChannel` connects two parties in one
process, and encodes the same bytes that a network would carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from opboost.columns.codebook import CodedColumn
from opboost.errors import ParameterError, PeerError
from opboost.parties.alignment import Match, PsiPeer
from opboost.parties.row_proof import RowProof
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import (
    Aligned,
    Claim,
    Hello,
    Points,
    Proof,
    Rows,
    Schema,
    ScoreTask,
    SplitQuery,
    SplitValues,
    Weights,
    Welcome,
    decode,
    encode,
)
from opboost.protocol.stored_columns import read_column
from opboost.psi.blinding import at_once
from opboost.psi.point_matching import PointList
from opboost.storage import atomic_files

CheckRows = Callable[[Rows], None]
"""A function that refuses given rows unless they are the label party's."""

Weigh = Callable[[Schema, Iterator[tuple[ColumnHead, CodedColumn]]], Weights]
"""A function that computes the weights of a party's columns from its pilot's release."""


class ScoreDeclinedError(PeerError):
    """A feature party declined to release the score that it was asked for."""


class Channel(Protocol):
    """A connection to one feature party."""

    @property
    def party(self) -> str:
        """The feature party's name, as authenticated by the channel."""
        ...

    def introduced(self, welcome: Welcome) -> float:
        """Return the most that the party reveals about one person, according to its introduction.

        Called only if the job limits what all parties together reveal.
        """
        ...

    def agree(self, welcome: Welcome) -> None:
        """Tell the party which columns and values the job needs, before anything is drawn.

        A party refuses if its columns differ, or if it withholds what the job needs.
        """
        ...

    def check_rows(self, welcome: Welcome, check: CheckRows) -> None:
        """Call ``check`` with the party's given rows before anything is drawn.

        Called only if rows are given.  If messages are checked on arrival, there is nothing to do.
        """
        ...

    def offer(self, welcome: Welcome, side: PsiPeer) -> None:
        """Send the label party's points; called only if rows are aligned privately."""
        ...

    def met(self, side: PsiPeer) -> Match:
        """Wait for this party's points, then return the rows in common with it."""
        ...

    def tell(self, aligned: Aligned, proof: RowProof) -> None:
        """Tell the party which rows are common; each side proves that it knows them."""
        ...

    def forget(self) -> None:
        """Discard the points once the common rows are known and saved."""
        ...

    def refuse(self, why: str) -> None:
        """Tell the party that the label party ends the job, and why."""
        ...

    def open(self, welcome: Welcome, weigh: Weigh | None = None) -> Schema:
        """Tell the party which job this is, and return the schema of its release.

        If the party releases a pilot first, ``weigh`` computes the weights of its columns.
        """
        ...

    def want_score(self, task: ScoreTask) -> None:
        """Ask for a score instead of columns; the party may decline before anybody draws noise."""
        ...

    def open_score(self, welcome: Welcome) -> Schema:
        """Wait for the party's score release, and return its schema."""
        ...

    def columns(self) -> Iterator[tuple[ColumnHead, CodedColumn]]:
        """Yield the released columns, in the order of their numbers."""
        ...

    def files(self) -> Iterator[Path]:
        """Yield the same columns as files that hold their streams, for rows that stay on disk."""
        ...

    def ask(self, query: SplitQuery) -> None:
        """Offer the split query to the party, which may fetch it hours later."""
        ...

    def answer(self) -> SplitValues:
        """Wait for the party's answer, and return it."""
        ...

    def close(self) -> None:
        """Tell the party that nothing more will be asked."""
        ...


class Answering(Protocol):
    """The interface of a feature party that :class:`MemoryChannel` needs."""

    @property
    def name(self) -> str:
        """The party's name."""
        ...

    def hello(self, record: float) -> Hello:
        """Introduce the party to a job that allows ``record`` per person."""
        ...

    def check_terms(self, welcome: Welcome) -> None:
        """Refuse a job whose terms the party does not accept."""
        ...

    def rows(self, welcome: Welcome) -> Rows:
        """Return the number of given rows, and the digest of their IDs under the job's nonce."""
        ...

    def psi_session(self, welcome: Welcome) -> PsiSession:
        """Return the party's side of an alignment."""
        ...

    def pilot_release(self, welcome: Welcome) -> tuple[Schema, list[Path]] | None:
        """Return the release of the pilot; None if there is no pilot."""
        ...

    def take_weights(self, weights: Weights) -> None:
        """Accept the column weights that the label party computed from the pilot."""
        ...

    def release(self, welcome: Welcome) -> tuple[Schema, list[Path]]:
        """Return the schema, and a file for each released column."""
        ...

    def check_score(self, task: ScoreTask) -> None:
        """Refuse a score that the party does not allow."""
        ...

    def score_release(self, welcome: Welcome, task: ScoreTask) -> tuple[Schema, list[Path]]:
        """Return the schema and the files of a score."""
        ...

    def answer(self, query: SplitQuery) -> SplitValues:
        """Return the values behind the cuts of a split query."""
        ...


class PsiSession(Protocol):
    """A feature party's side of an alignment."""

    def begin(self, theirs: Iterable[Points]) -> None:
        """Read and check all of the label party's points."""
        ...

    def pieces(self) -> Iterator[Points]:
        """Yield the party's own points."""
        ...

    def raised(self, theirs: Iterable[Points]) -> Iterator[Points]:
        """Yield the label party's points, raised by this party's secret."""
        ...

    def claim(self, aligned: Aligned) -> Claim:
        """Return the party's proof that it knows the common rows."""
        ...

    def finish(self, aligned: Aligned, proof: Proof) -> None:
        """Save the common rows, if the label party proves that it knows them."""
        ...


def check_channels(channels: Sequence[Channel]) -> None:
    """Refuse anything but a list of channels to different parties."""
    if not isinstance(channels, Sequence) or not channels:
        raise ParameterError("Give a list of channels to at least one feature party.")
    for channel in channels:
        if not hasattr(channel, "open") or not hasattr(channel, "party"):
            raise ParameterError(
                f"A party is reached through a channel; got {type(channel).__name__}. "
                "In one process: [op.MemoryChannel(party)]."
            )
    names = [channel.party for channel in channels]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"Two channels lead to a party {name!r}. Give each its own name.")


@contextmanager
def declined_to_all(channels: Sequence[Channel]) -> Iterator[None]:
    """If a party declines to release a score, end the job for all, so that no other party waits."""
    try:
        yield
    except ScoreDeclinedError:
        refuse_all(channels, "The label party ended the job.")
        raise


def refuse_all(channels: Sequence[Channel], why: str) -> None:
    """Refuse all parties at once, so that an absent party does not delay the others."""
    for _ in at_once(lambda channel: channel.refuse(why), channels, threads=len(channels)):
        pass


class MemoryChannel:
    """A channel between two parties in one process.

    >>> import opboost as op, pandas as pd, numpy as np
    >>> numbers = np.random.default_rng(0)
    >>> age = numbers.integers(18, 90, 300)
    >>> shop = op.FeatureParty(
    ...     pd.DataFrame({"age": age}),
    ...     [
    ...         op.PrivateColumn(
    ...             "age",
    ...             op.NumericMapping(op.Domain(1, 10), (17, 90)),
    ...             op.ClampMap(op.Domain(1, 10), epsilon=0.64),
    ...         )
    ...     ],
    ... )
    >>> bank = op.LabelParty(None, (age > 50).astype(int), booster="gbdt", random_state=0)
    >>> model = bank.train([op.MemoryChannel(shop)])
    >>> model.predict(pd.DataFrame({"age": [20, 85]})).tolist()
    [0, 1]
    """

    def __init__(self, party: Answering) -> None:
        self._party = party
        self._files: list[Path] = []
        self.sent = 0

    @property
    def party(self) -> str:
        """The feature party's name."""
        return self._party.name

    def introduced(self, welcome: Welcome) -> float:
        """Return the most that the party reveals about one person."""
        record = decode(encode(welcome), Welcome).record
        return decode(self._counted(encode(self._party.hello(record))), Hello).total

    def agree(self, welcome: Welcome) -> None:
        """Let the party compare the job's terms with its plan."""
        self._party.check_terms(decode(encode(welcome), Welcome))

    def check_rows(self, welcome: Welcome, check: CheckRows) -> None:
        """Let the label party compare the party's given rows with its own.

        The digest of the rows does not count as sent, because it carries no released value.
        """
        check(decode(encode(self._party.rows(decode(encode(welcome), Welcome))), Rows))

    def offer(self, welcome: Welcome, side: PsiPeer) -> None:
        """Give the party the label party's points."""
        self._psi_session = self._party.psi_session(decode(encode(welcome), Welcome))
        self._offered = [decode(encode(piece), Points) for piece in side.pieces()]
        self._psi_session.begin(self._offered)

    def met(self, side: PsiPeer) -> Match:
        """Return the rows that the party's points have in common with the label party's."""
        theirs = [decode(self._counted(encode(p)), Points) for p in self._psi_session.pieces()]
        with PointList() as raised, PointList() as doubled:
            for points in at_once(side.doubled, theirs):
                doubled.add(points)
            for piece in self._psi_session.raised(self._offered):
                raised.add(decode(self._counted(encode(piece)), Points).points)
            return side.met(raised, doubled)

    def tell(self, aligned: Aligned, proof: RowProof) -> None:
        """Tell the party which rows are common; each side proves that it knows them."""
        told = decode(encode(aligned), Aligned)
        claim = decode(self._counted(encode(self._psi_session.claim(told))), Claim)
        agreed = proof.answered(claim, aligned.count)
        answer = Proof(aligned.job, agreed.label)
        self._psi_session.finish(told, decode(encode(answer), Proof))

    def forget(self) -> None:
        """Discard the label party's points."""
        self._offered = []

    def refuse(self, why: str) -> None:
        """Do nothing: in one process, the caller already sees the label party's error."""

    def open(self, welcome: Welcome, weigh: Weigh | None = None) -> Schema:
        """Return the schema of the party's release for this job; its pilot, if any, runs first."""
        asked = decode(encode(welcome), Welcome)
        pilot = None if weigh is None else self._party.pilot_release(asked)
        if weigh is not None and pilot is not None:
            shown, self._files = pilot
            told = weigh(decode(self._counted(encode(shown)), Schema), self.columns())
            self._party.take_weights(decode(encode(told), Weights))
        schema, self._files = self._party.release(asked)
        return decode(self._counted(encode(schema)), Schema)

    def want_score(self, task: ScoreTask) -> None:
        """Give the party the score task, which it may refuse."""
        self._task = decode(encode(task), ScoreTask)
        self._party.check_score(self._task)

    def open_score(self, welcome: Welcome) -> Schema:
        """Return the schema of the party's score for this job."""
        asked = decode(encode(welcome), Welcome)
        schema, self._files = self._party.score_release(asked, self._task)
        return decode(self._counted(encode(schema)), Schema)

    def columns(self) -> Iterator[tuple[ColumnHead, CodedColumn]]:
        """Return the released columns."""
        return map(read_column, self.files())

    def files(self) -> Iterator[Path]:
        """Yield the files of the released columns."""
        for file in self._files:
            self.sent += file.stat().st_size - atomic_files.CHECKSUM_BYTES  # not sent
            yield file

    def ask(self, query: SplitQuery) -> None:
        """Put the split query to the party."""
        self._answer = self._party.answer(decode(encode(query), SplitQuery))

    def answer(self) -> SplitValues:
        """Return the party's answer."""
        return decode(self._counted(encode(self._answer)), SplitValues)

    def close(self) -> None:
        """Do nothing: the party is in this process."""

    def _counted(self, data: bytes) -> bytes:
        self.sent += len(data)
        return data
