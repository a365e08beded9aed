"""Attacks by the label party on an honest feature party, which is a real ``opboost join``."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.flight as flight

from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, run_federation
from opboost.protocol import messages as msg
from opboost.psi.common_rows import packed
from robustness.attacks.attack_harness import Outcome, suffered_command
from robustness.attacks.by_outsiders import lax_identity
from robustness.attacks.label_impostor import Answers, Impostor
from robustness.command_line import run as cli
from robustness.party_processes import ROWS, federation, identity_of, new_identity

LIMITS = "\n[limits]\nconnect_seconds = 3\nanswer_seconds = 10\n"
CHARGED = ("reserve", "commit")


@dataclass(frozen=True, slots=True)
class Lie:
    """What an impostor answers, and how ``join`` must end: its status, and its sentence."""

    name: str
    lies: dict[str, Answers]
    status: int
    words: str
    released: bool = False
    """Whether columns may have been drawn before it came."""
    align: str = "given"
    certificate: str = LABEL_PARTY


def says(*messages: Any) -> Answers:
    return lambda impostor, body: [
        msg.encode(m(impostor)) if callable(m) else msg.encode(m) for m in messages
    ]


def sends(data: bytes) -> Answers:
    return lambda impostor, body: [data]


def raises(error: Exception) -> Answers:
    def failing(impostor: Impostor, body: bytes) -> Iterable[bytes]:
        raise error

    return failing


def challenge(certificate: Callable[[Impostor], bytes]) -> Answers:
    """Show a certificate in answer to a hello."""
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
    """Lie about the common rows, once all points are there."""

    def told(impostor: Impostor) -> msg.Ack | msg.Aligned:
        honest = impostor.aligned()
        return honest if isinstance(honest, msg.Ack) else change(impostor)

    return says(told)


def half(impostor: Impostor) -> msg.Aligned:
    honest = impostor.aligned()
    assert isinstance(honest, msg.Aligned)
    return replace(honest, count=ROWS // 2, bitmap=packed(np.arange(ROWS // 2), ROWS))


def twice(first: Callable[[Impostor], Any], then: Callable[[Impostor], Any]) -> Answers:
    """One question, and another when the first was answered."""
    return says(lambda i: (then if "answer" in i.steps else first)(i))


def everything(impostor: Impostor) -> msg.SplitQuery:
    columns = (msg.Cuts(n, tuple(range(count))) for n, count in enumerate(impostor.columns))
    return msg.SplitQuery(impostor.job, False, tuple(columns))


def cuts(*columns: msg.Cuts) -> Callable[[Impostor], msg.SplitQuery]:
    return lambda impostor: msg.SplitQuery(impostor.job, False, columns)


PROVE = "does not prove that it has the rows"
OTHER = "20200101T000000Z-00000000"
LIES = (
    Lie("the label party's certificate is another party's", {}, 4, "TLS|hung up|reached",
        certificate="telco"),
    Lie("the label party's certificate is of another authority", {}, 4, "TLS|hung up|reached",
        certificate="forged"),
    Lie("the label party's certificate names it as its subject alone", {}, 4, "is for nobody",
        certificate="lax"),
    Lie("the true certificate shown by somebody who lacks its key",
        {"hello": challenge(lambda i: i.true)}, 4, "TLS|hung up|reached", certificate="lax"),
    Lie("the true certificate, with one's own behind it",
        {"hello": challenge(lambda i: i.true + i.certificate)}, 4, "TLS|hung up|reached",
        certificate="lax"),
    Lie("a login that is never enough", {"rows": raises(LOGGED_OUT)}, 4,
        "has not logged in|reached"),
    Lie("a job number of another job file", {"login": says(msg.Welcome(OTHER, bytes(32), b""))}, 4,
        "not one of this job file"),
    Lie("a job number that names a folder", {"login": says(msg.Ack("../../etc", "hello"))}, 4,
        "kind that nobody asked for"),
    Lie("an answer that is no message", {"rows": sends(b"\0" * 500)}, 4, "no message of OpBoost"),
    Lie("an answer of another kind",
        {"schema": says(lambda i: msg.Welcome(i.job, bytes(32), b""))}, 4,
        "kind that nobody asked for", released=True),
    Lie("no answer, but an end", {"rows": lambda i, b: []}, 4, "no answer, or more than one"),
    Lie("answers without end", {"rows": endless}, 4, "no answer, or more than one"),
    Lie("an answer of 500 MB", {"rows": sends(bytes(500_000_000))}, 4, "larger than"),
    Lie("a label party that never answers", {"rows": silence}, 4, "did not answer|reached"),
    Lie("words that steer a terminal", {"rows": raises(STEERING)}, 4,
        r"refused: No\.[^\x1b\x07]*$"),
    Lie("words without end", {"rows": raises(flight.FlightServerError("No. " * 100_000))}, 4,
        r"refused: (No\. ?)+$|reached"),
    Lie("points of another job", {"want": bad_points(lambda p: replace(p, job=OTHER))}, 4,
        "another job or step", align="psi"),
    Lie("points on no curve",
        {"want": bad_points(lambda p: replace(p, points=p.points[:-32] + b"\2" + bytes(31)))}, 4,
        "does not lie on the curve", align="psi"),
    Lie("the same point again and again",
        {"want": bad_points(lambda p: replace(p, points=p.points[:32] * ROWS))}, 4, "stands twice",
        align="psi"),
    Lie("another piece of points than asked for",
        {"want": bad_points(lambda p: replace(p, total=9000, piece=1, points=p.points[:32] * 808))},
        4, "another piece of points", align="psi"),
    Lie("more points than the party aligns",
        {"want": bad_points(
            lambda p: replace(p, total=6_000_000, points=(p.points * 15)[: 32 * 8192]))},
        3, "6,000,000", align="psi"),
    Lie("common rows that it cannot know",
        {"aligned": aligned(lambda i: i.everybody(i.theirs))}, 4, PROVE, align="psi"),
    Lie("the party's own proof of its rows sent back",
        {"aligned": aligned(lambda i: i.everybody(i.theirs)),
         "prove": lambda i, b: [msg.encode(msg.Proof(i.job, msg.decode(b, msg.Claim).proof))]},
        4, PROVE, align="psi"),
    Lie("half of the common rows, with the proof of all", {"aligned": aligned(half)}, 4, PROVE,
        align="psi"),
    Lie("common rows of other points",
        {"aligned": aligned(lambda i: replace(i.everybody(i.theirs), tag=bytes(16)))}, 4,
        "one of other points", align="psi"),
    Lie("a split query for everything, and then for other cuts",
        {"poll": twice(everything, cuts(msg.Cuts(0, (2,))))}, 3, "a second, different split query",
        released=True),
    Lie("a split query of another job",
        {"poll": says(msg.SplitQuery(OTHER, False, (msg.Cuts(0, (1,)),)))}, 4,
        "split query of another job", released=True),
    Lie("a split query for codes that there are not",
        {"poll": says(cuts(msg.Cuts(0, (1, 10_000))))}, 4, "names code 10000", released=True),
    Lie("a split query for a column that there is not", {"poll": says(cuts(msg.Cuts(77, (1,))))}, 4,
        "names column 77", released=True),
)  # fmt: skip


class HonestParties:
    """An honest feature party with its ledger, once for each way of matching rows."""

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
        """A number of this job file that was not used yet."""
        self._at += timedelta(seconds=1)
        digest = load_job(made.folder / "shop" / "job.toml").hash
        return f"{self._at:%Y%m%dT%H%M%SZ}-{digest[:4].hex()}"

    def suffered(self, lie: Lie) -> Outcome:
        """Run ``join`` against the impostor, and measure."""
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
        """Draws and charges in the ledger."""
        status, out, _ = cli("ledger", "export", "-c", made.config("shop"))
        return 0 if status else sum(e["kind"] in CHARGED for e in json.loads(out))

    def finish(self) -> bool:
        """After all of it the same party, with the same ledger, takes part in an honest job."""
        for made in self.made.values():
            config = made.config("shop")
            config.write_text(config.read_text().removesuffix(LIMITS))
        return all(
            run_federation(self.made[way], timeout=120).manifests["shop"]["phase"] == "done"
            for way in sorted(self._tried)
        )
