"""Attacks by the label party on an honest feature party, which is a real ``opboost join``.

The hostile label party is a Flight server with the true certificate.  By default it follows the
protocol as far as a feature party can see; each attack changes one answer.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

import opboost as op
from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, run_federation
from opboost.parties.alignment import PsiPeer, kept_secret
from opboost.parties.row_proof import RowProof
from opboost.protocol import messages as msg
from opboost.protocol.column_streams import Outline
from opboost.psi.common_rows import packed
from opboost.psi.point_matching import PointList
from opboost.psi.row_keys import Normalisation, key_digests, row_keys
from opboost.psi.table_keys import Keys
from opboost.transport.shared.tls import Identity
from robustness.attacks.attack_harness import OTHER_JOB, POINT, Outcome, When, suffered_command
from robustness.attacks.by_outsiders import lax_identity
from robustness.command_line import run as cli
from robustness.party_processes import IDS, ROWS, federation, identity_of, new_identity

Answers = Callable[["Impostor", bytes], Iterable[bytes]]
NONCE = bytes(range(32))


class Impostor(flight.FlightServerBase):
    """A label party that answers every step; ``lies`` replaces honest answers by step.

    It records what the feature party sends: steps, the number of codes of each column, points.
    """

    def __init__(self, identity: Identity, job: str, lies: dict[str, Answers]) -> None:
        self.job, self.lies = job, lies
        self.steps: list[str] = []
        self.columns: list[int] = []
        self.points: dict[str, msg.Points] = {}
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
        for _ in reader:
            pass
        self.columns.append(Outline.unpacked(reader.schema.metadata[b"opboost"]).symbols)

    def honest(self, step: str, body: bytes) -> bytes:
        """Return the answer of an honest label party that has the same people."""
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
        self.points[points.step] = points
        return msg.Ack(self.job, points.step, (0,))

    def aligned(self) -> msg.Ack | msg.Aligned:
        """Return which rows are common once all points have arrived."""
        for step in ("feature", "raised"):
            if step not in self.points:
                return msg.Ack(self.job, step)
        self.side.forget_theirs()
        with PointList() as raised, PointList() as doubled:
            raised.add(self.points["raised"].points)
            doubled.add(self.side.doubled(self.points["feature"]))
            match = self.side.met(raised, doubled)
        return match.told(self.job, match.rows, self.proof.share)

    def proved(self, claim: msg.Claim) -> msg.Proof:
        """Return the proof that it knows the common rows."""
        return msg.Proof(self.job, self.proof.with_feature(self.job, claim.share).label)

    def everybody(self) -> msg.Aligned:
        """Return an answer that calls all rows common, by a label party that does not know them."""
        tag, total = self.points["feature"].tag, self.points["feature"].total
        bitmap = packed(np.arange(total), total)
        self.proof = RowProof.of(self.proof.secret, bytes(32))
        return msg.Aligned(self.job, tag, total, total, bitmap, self.proof.share)

    def query(self, codes: tuple[int, ...] = (1, 3)) -> msg.SplitQuery | msg.Farewell:
        """Return the split query until it is answered, then a farewell."""
        if "answer" in self.steps:
            return msg.Farewell(self.job)
        return msg.SplitQuery(self.job, False, (msg.Cuts(0, codes), msg.Cuts(1, codes)))


LIMITS = "\n[limits]\nconnect_seconds = 3\nanswer_seconds = 10\n"
CHARGED = ("reserve", "commit")


@dataclass(frozen=True, slots=True)
class Lie:
    """An impostor's answers, and the exit status and sentence with which ``join`` must end."""

    name: str
    lies: dict[str, Answers]
    words: str
    status: int = 4
    released: bool = False
    """Whether columns may have been drawn before the lie arrives."""
    align: str = "given"
    certificate: str = LABEL_PARTY
    when: When = "any"


def says(message: Any) -> Answers:
    """Answer with a message, with bytes, or with what a function returns for the impostor."""

    def said(impostor: Impostor, body: bytes) -> Iterable[bytes]:
        answer = message(impostor) if callable(message) else message
        return [answer if isinstance(answer, bytes) else msg.encode(answer)]

    return said


def raises(error: Exception) -> Answers:
    def failing(impostor: Impostor, body: bytes) -> Iterable[bytes]:
        raise error

    return failing


def challenge(certificate: Callable[[Impostor], bytes]) -> Answers:
    """Answer a hello with this certificate."""
    return says(lambda impostor: msg.Challenge(bytes(32), certificate(impostor)))


STEERING = flight.FlightServerError("No.\x1b[2J\x1b]0;mine\x07 [red]x[/red]")
LOGGED_OUT = flight.FlightUnauthenticatedError("Party 'shop' has not logged in. Say hello first.")


def endless(impostor: Impostor, body: bytes) -> Iterator[bytes]:
    answer, end = msg.encode(msg.Ack(impostor.job, "rows")), time.monotonic() + 60
    while time.monotonic() < end:
        yield answer


def silence(impostor: Impostor, body: bytes) -> Iterable[bytes]:
    impostor.over.wait(30)
    return []


def bad_points(change: Callable[[msg.Points], msg.Points]) -> Answers:
    return says(lambda impostor: change(next(iter(impostor.side.pieces()))))


def aligned(change: Callable[[Impostor], msg.Aligned]) -> Answers:
    """Lie about the common rows once all points have arrived."""

    def told(impostor: Impostor) -> msg.Ack | msg.Aligned:
        honest = impostor.aligned()
        return honest if isinstance(honest, msg.Ack) else change(impostor)

    return says(told)


def half(impostor: Impostor) -> msg.Aligned:
    honest = impostor.aligned()
    assert isinstance(honest, msg.Aligned)
    return replace(honest, count=ROWS // 2, bitmap=packed(np.arange(ROWS // 2), ROWS))


def twice(first: Callable[[Impostor], Any], then: Callable[[Impostor], Any]) -> Answers:
    """Ask one question, and another when the first is answered."""
    return says(lambda i: (then if "answer" in i.steps else first)(i))


def everything(impostor: Impostor) -> msg.SplitQuery:
    columns = (msg.Cuts(n, tuple(range(count))) for n, count in enumerate(impostor.columns))
    return msg.SplitQuery(impostor.job, False, tuple(columns))


def cuts(*columns: msg.Cuts) -> Callable[[Impostor], msg.SplitQuery]:
    return lambda impostor: msg.SplitQuery(impostor.job, False, columns)


PROVE = "does not prove that it has the rows"
NO_TLS = "TLS|hung up|reached"
LIES = (
    Lie("the label party's certificate is another party's", {}, NO_TLS, certificate="telco"),
    Lie("the label party's certificate is of another authority", {}, NO_TLS, certificate="forged"),
    Lie("the label party's certificate names it only as its subject", {}, "is for nobody",
        certificate="lax"),
    Lie("the true certificate shown by somebody who lacks its key",
        {"hello": challenge(lambda i: i.true)}, NO_TLS, certificate="lax"),
    Lie("the true certificate followed by the attacker's own",
        {"hello": challenge(lambda i: i.true + i.certificate)}, NO_TLS, certificate="lax"),
    Lie("a login that is never accepted", {"rows": raises(LOGGED_OUT)},
        "has not logged in|reached"),
    Lie("a job number of another job file",
        {"login": says(msg.Welcome(OTHER_JOB, bytes(32), b""))},
        "does not belong to this job file"),
    Lie("a job number that names a folder", {"login": says(msg.Ack("../../etc", "hello"))},
        "unexpected kind"),
    Lie("an answer that is no message", {"rows": says(b"\0" * 500)}, "not an OpBoost message"),
    Lie("an answer of another kind",
        {"schema": says(lambda i: msg.Welcome(i.job, bytes(32), b""))},
        "unexpected kind", released=True),
    Lie("a call that ends without an answer", {"rows": lambda i, b: []},
        "no answer, or more than one"),
    Lie("answers without end", {"rows": endless}, "no answer, or more than one"),
    Lie("an answer of 500 MB", {"rows": says(bytes(500_000_000))}, "larger than"),
    Lie("a label party that never answers", {"rows": silence}, "did not answer|reached"),
    Lie("words that steer a terminal", {"rows": raises(STEERING)}, r"refused: No\.[^\x1b\x07]*$"),
    Lie("words without end", {"rows": raises(flight.FlightServerError("No. " * 100_000))},
        r"refused: (No\. ?)+$|reached"),
    Lie("points of another job", {"want": bad_points(lambda p: replace(p, job=OTHER_JOB))},
        "another job or step", align="psi"),
    Lie("points that are not on the curve",
        {"want": bad_points(lambda p: replace(p, points=p.points[:-32] + POINT))},
        "does not lie on the curve", align="psi"),
    Lie("the same point again and again",
        {"want": bad_points(lambda p: replace(p, points=p.points[:32] * ROWS))}, "occurs twice",
        align="psi"),
    Lie("another piece of points than asked for",
        {"want": bad_points(lambda p: replace(p, total=9000, piece=1, points=p.points[:32] * 808))},
        "piece of points that was not requested", align="psi"),
    Lie("more points than the party aligns",
        {"want": bad_points(
            lambda p: replace(p, total=6_000_000, points=(p.points * 15)[: 32 * 8192]))},
        "6,000,000", status=3, align="psi"),
    Lie("common rows that it cannot know", {"aligned": aligned(Impostor.everybody)}, PROVE,
        align="psi"),
    Lie("the party's own proof of its rows sent back",
        {"aligned": aligned(Impostor.everybody),
         "prove": lambda i, b: [msg.encode(msg.Proof(i.job, msg.decode(b, msg.Claim).proof))]},
        PROVE, align="psi"),
    Lie("half of the common rows, with the proof of all", {"aligned": aligned(half)}, PROVE,
        align="psi"),
    Lie("common rows of other points",
        {"aligned": aligned(lambda i: replace(i.everybody(), tag=bytes(16)))},
        "about other points", align="psi"),
    Lie("a split query for everything, and then for other cuts",
        {"poll": twice(everything, cuts(msg.Cuts(0, (2,))))}, "a second, different split query",
        status=3, released=True),
    Lie("a split query of another job",
        {"poll": says(msg.SplitQuery(OTHER_JOB, False, (msg.Cuts(0, (1,)),)))},
        "split query is for another job", released=True),
    Lie("a split query for codes that do not exist",
        {"poll": says(cuts(msg.Cuts(0, (1, 10_000))))}, "names code 10000", released=True),
    Lie("a split query for a column that does not exist",
        {"poll": says(cuts(msg.Cuts(77, (1,))))}, "names column 77", released=True),
)  # fmt: skip


class HonestParties:
    """An honest feature party with its ledger, one for each way of matching rows."""

    def __init__(self, folder: Path) -> None:
        self.made: dict[str, LocalFederation] = {}
        self._tried: set[str] = set()
        self._at = datetime(2026, 1, 1, tzinfo=UTC)
        for align in ("given", "psi"):
            made = federation(folder / align, align=align, limits={"repeats": 1000})
            config = made.config("shop")
            config.write_text(config.read_text() + LIMITS)
            self.made[align] = made

    def job(self, made: LocalFederation) -> str:
        """Return an unused number of this job file."""
        self._at += timedelta(seconds=1)
        digest = load_job(made.folder / "shop" / "job.toml").hash
        return f"{self._at:%Y%m%dT%H%M%SZ}-{digest[:4].hex()}"

    def suffered(self, lie: Lie) -> Outcome:
        """Run ``join`` against the impostor, and measure the effects."""
        made = self.made[lie.align]
        self._tried.add(lie.align)
        impostor = Impostor(self._identity(made, lie.certificate), self.job(made), lie.lies)
        impostor.true = identity_of(made, LABEL_PARTY).cert
        state = made.folder / "shop" / "state"

        def last_line() -> str:
            last = json.loads((state / "join.jsonl").read_text().splitlines()[-1])
            return f"{last['event']}: {last.get('why', '')}" if last["event"] == "stopped" else ""

        try:
            return suffered_command(
                lie.name,
                [*made.command("shop"), "--connect", impostor.address],
                lie.status,
                lie.words,
                state,
                last_line,
                lambda: 0 if lie.released else self._spent(made),
            )
        finally:
            impostor.over.set()
            threading.Thread(target=impostor.shutdown, daemon=True).start()

    def _identity(self, made: LocalFederation, certificate: str) -> Any:
        if certificate == "lax":
            return lax_identity(made.folder / "certs", LABEL_PARTY, LABEL_PARTY)
        if certificate == "forged":
            return new_identity(made.folder / "certs", LABEL_PARTY)
        return identity_of(made, certificate)

    def _spent(self, made: LocalFederation) -> int:
        """Return the number of draws and charges in the ledger."""
        status, out, _ = cli("ledger", "export", "-c", made.config("shop"))
        return 0 if status else sum(e["kind"] in CHARGED for e in json.loads(out))

    def finish(self) -> bool:
        """Run an honest job with the same parties and ledgers after all attacks."""
        for made in self.made.values():
            config = made.config("shop")
            config.write_text(config.read_text().removesuffix(LIMITS))
        return all(
            run_federation(self.made[way], timeout=120).manifests["shop"]["phase"] == "done"
            for way in sorted(self._tried)
        )
