"""A label party that means harm: the true certificate, a Flight server of its own, and lies.

Left alone it follows the protocol as far as a feature party can tell; each attack changes what is
answered at one step.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

import opboost as op
from opboost.parties.alignment import PsiPeer, kept_secret
from opboost.parties.row_proof import RowProof
from opboost.protocol import messages as msg
from opboost.protocol.column_streams import Outline
from opboost.psi.common_rows import packed
from opboost.psi.point_matching import PointList
from opboost.psi.row_keys import Normalisation, key_digests, row_keys
from opboost.psi.table_keys import Keys
from opboost.transport.shared.tls import Identity
from robustness.party_processes import IDS

Answers = Callable[["Impostor", bytes], Iterable[bytes]]
NONCE = bytes(range(32))


class Impostor(flight.FlightServerBase):
    """Answers every step; ``lies`` by step replace the honest answers.

    What the feature party has sent is kept: steps, the number of codes of each column, points.
    """

    def __init__(self, identity: Identity, job: str, lies: dict[str, Answers]) -> None:
        self.job, self.lies = job, lies
        self.steps: list[str] = []
        self.columns: list[int] = []
        self.theirs: msg.Points | None = None
        self.raised: msg.Points | None = None
        self.certificate, self.true = identity.cert, b""
        self.over = threading.Event()
        digests = key_digests(row_keys([IDS.to_pylist()], ["id"], Normalisation()))
        self.side = PsiPeer(job, "label", kept_secret(None), digests, op.AlignRules())
        order = np.argsort(digests.view("S32").ravel())
        ids = Keys.of_digests(digests, order).digest(NONCE)
        self.proof = RowProof.of(kept_secret(None), ids)
        super().__init__(
            "grpc+tls://127.0.0.1:0",
            tls_certificates=[(identity.cert, identity.key)],
            verify_client=True,
            root_certificates=identity.ca,
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def do_action(self, context: Any, action: flight.Action) -> Iterator[flight.Result]:
        step, body = action.type, action.body.to_pybytes()
        self.steps.append(step)
        answers = self.lies[step](self, body) if step in self.lies else [self.honest(step, body)]
        for answer in answers:
            yield flight.Result(pa.py_buffer(answer))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        self.steps.append("codes")
        if "codes" in self.lies:
            list(self.lies["codes"](self, b""))
        for _ in reader:
            pass
        self.columns.append(Outline.unpacked(reader.schema.metadata[b"opboost"]).symbols)

    def honest(self, step: str, body: bytes) -> bytes:
        """What a label party answers that has the same people."""
        steps: dict[str, Callable[[bytes], Any]] = {
            "hello": lambda _: msg.Challenge(os.urandom(32), self.certificate),
            "login": lambda _: msg.Welcome(self.job, NONCE, b"", os.urandom(32)),
            "want": lambda b: list(self.side.pieces())[msg.decode(b, msg.PointsQuery).piece],
            "points": self._points,
            "aligned": lambda _: self.aligned(),
            "prove": lambda b: self.proved(msg.decode(b, msg.Claim)),
            "poll": lambda _: self.query(),
        }
        return msg.encode(steps.get(step, lambda _: msg.Ack(self.job, step))(body))

    def _points(self, body: bytes) -> msg.Ack:
        points = msg.decode(body, msg.Points)
        if points.step == "feature":
            self.theirs = points
        else:
            self.raised = points
        return msg.Ack(self.job, points.step, (0,))

    def aligned(self) -> msg.Ack | msg.Aligned:
        """Which rows are common, when all points are there."""
        if self.theirs is None:
            return msg.Ack(self.job, "feature")
        if self.raised is None:
            return msg.Ack(self.job, "raised")
        theirs = self.theirs
        self.side.forget_theirs()
        with PointList() as raised, PointList() as doubled:
            raised.add(self.raised.points)
            doubled.add(self.side.doubled(theirs))
            match = self.side.met(raised, doubled)
        return match.told(self.job, match.rows, self.proof.share)

    def proved(self, claim: msg.Claim) -> msg.Proof:
        """The proof that it knows the rows of which it has shown its half."""
        return msg.Proof(self.job, self.proof.with_feature(self.job, claim.share).label)

    def everybody(self, theirs: msg.Points) -> msg.Aligned:
        """An answer that calls all of the party's rows common, without knowing them."""
        bitmap = packed(np.arange(theirs.total), theirs.total)
        self.proof = RowProof.of(self.proof.secret, bytes(32))
        return msg.Aligned(
            self.job, theirs.tag, theirs.total, theirs.total, bitmap, self.proof.share
        )

    def query(self, codes: tuple[int, ...] = (1, 3)) -> msg.SplitQuery | msg.Farewell:
        """The split query, until it was answered."""
        if "answer" in self.steps:
            return msg.Farewell(self.job)
        return msg.SplitQuery(self.job, False, (msg.Cuts(0, codes), msg.Cuts(1, codes)))
