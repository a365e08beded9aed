"""Messages of a session: login, polling, acknowledgement and farewell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from opboost.protocol.message_rules import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    TEXT,
    arrow,
    check,
    check_job,
    check_party,
)
from opboost.protocol.release_messages import MAX_COLUMNS, ColumnSchema


@dataclass(frozen=True, slots=True)
class Hello:
    """A feature party's introduction, which the label party answers with a challenge.

    ``job_hash`` is the hash of the party's job file.  ``total`` is the most that the party's plan
    reveals about one person; 0 if the job sets no limit.
    """

    party: str
    job_hash: bytes
    total: float = 0.0

    KIND: ClassVar = "hello"
    ARROW: ClassVar = arrow(party=TEXT, job_hash=BYTES, total=FLOAT)

    def __post_init__(self) -> None:
        check_party(self.party)
        check(len(self.job_hash) == 32, "A job file's hash has 32 bytes.")
        check(0 <= self.total < math.inf, "A party's total is a finite number from 0.")


@dataclass(frozen=True, slots=True)
class Challenge:
    """The nonce that a login has to sign, valid once and only on the same connection.

    ``certificate`` is the label party's own; empty if there are no certificates.
    """

    nonce: bytes
    certificate: bytes

    KIND: ClassVar = "challenge"
    ARROW: ClassVar = arrow(nonce=BYTES, certificate=BYTES)

    def __post_init__(self) -> None:
        check(len(self.nonce) == 32, "A nonce has 32 bytes.")


@dataclass(frozen=True, slots=True)
class Login:
    """A feature party's proof of its name: its certificate, and a signature over the challenge."""

    certificate: bytes
    signature: bytes

    KIND: ClassVar = "login"
    ARROW: ClassVar = arrow(certificate=BYTES, signature=BYTES)

    @staticmethod
    def signed(hello: Hello, label_party: str, nonce: bytes) -> bytes:
        """Return the bytes that the signature covers."""
        who = [label_party, hello.party, hello.job_hash.hex(), repr(float(hello.total))]
        return "\n".join(["opboost login 2", *who, nonce.hex()]).encode()


@dataclass(frozen=True, slots=True)
class Welcome:
    """The label party's answer: the job's number, and the key for the digest of the row IDs.

    ``receipt`` is the newest signed receipt that the label party holds of this party's ledger;
    empty if there is none.  ``session`` is what the party shows with every later call.  ``record``
    is the most that all feature parties together may reveal about one person; 0 means no limit.
    ``rows`` says which rows the job is about: those ``"common"`` to all parties, or ``"mine"``, all
    of the label party's.  ``columns`` are the party's columns in a model that is continued, as it
    declared them then; none if a new model is trained.  ``values`` says whether the job needs the
    values behind codes with the release.
    """

    job: str
    nonce: bytes
    receipt: bytes
    session: bytes = b""
    record: float = 0.0
    rows: str = "common"
    columns: tuple[ColumnSchema, ...] = ()
    values: bool = False

    KIND: ClassVar = "welcome"
    ARROW: ClassVar = arrow(
        job=TEXT,
        nonce=BYTES,
        receipt=BYTES,
        session=BYTES,
        record=FLOAT,
        rows=TEXT,
        columns=BYTES,
        values=BOOL,
    )

    def __post_init__(self) -> None:
        check_job(self.job)
        check(len(self.nonce) == 32, "A nonce has 32 bytes.")
        check(len(self.session) in (0, 32), "A session has 32 bytes.")
        check(0 <= self.record < math.inf, "A job's record total is a finite number from 0.")
        check(self.rows in ("common", "mine"), "A job is about common rows or the label party's.")
        check(len(self.columns) <= MAX_COLUMNS, "A model has at most 10,000 columns per party.")


@dataclass(frozen=True, slots=True)
class Poll:
    """A feature party's request for whatever the label party has ready for it."""

    job: str

    KIND: ClassVar = "poll"
    ARROW: ClassVar = arrow(job=TEXT)

    def __post_init__(self) -> None:
        check_job(self.job)


@dataclass(frozen=True, slots=True)
class Ack:
    """The label party's acknowledgement: a step's name, and the numbers of received streams."""

    job: str
    step: str
    columns: tuple[int, ...] = ()

    KIND: ClassVar = "ack"
    ARROW: ClassVar = arrow(job=TEXT, step=TEXT, columns=pa.list_(INT))


@dataclass(frozen=True, slots=True)
class Farewell:
    """The label party's message that the job is done and nothing more will be asked."""

    job: str

    KIND: ClassVar = "farewell"
    ARROW: ClassVar = arrow(job=TEXT)
