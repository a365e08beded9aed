"""The feature party's side of an alignment, recorded in the ledger before any point leaves.

The job's folder holds ``secret`` during the alignment, then ``common``, a bitmap over the table's
rows.  In between it holds ``told``, the rows that the label party calls common, and
``proof/secret`` for the proof that both parties know those rows.  With bundles it also holds
``rows.lock``, the outcome of that proof, until the job ends.

Each point that leaves reveals something to the label party.  So before the first one leaves, the
ledger gets an entry ``align`` with a digest of all points that are raised.  Once the common rows
are known, it gets an entry ``aligned``.  Each is written once per job.  Even if the job's folder is
lost, a different set of points or of common rows is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from opboost._typing import IntArray
from opboost.errors import PeerError, PrivacyError
from opboost.ledger import Ledger
from opboost.parties.alignment import PsiPeer, Shown, check_aligned, kept_secret
from opboost.parties.row_proof import Agreed, Lock, RowProof
from opboost.protocol.messages import Aligned, Claim, Points, Proof, encode
from opboost.psi.align_rules import AlignRules
from opboost.psi.blinding import Secret, at_once
from opboost.psi.common_rows import Common, in_shared_order, unpacked
from opboost.psi.curve_points import check_on_curve
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import Keys, refuse_repeats
from opboost.storage import atomic_files


class FeaturePsi:
    """One alignment with the label party, which can be resumed at any point.

    Call ``begin``, then ``pieces`` and ``raised`` in any order, then ``claim`` and ``finish``, or
    ``lock`` with bundles.  ``bind`` binds the job's folder to its configuration before the first
    file is written there.
    """

    def __init__(
        self,
        folder: Path,
        party: str,
        nonce: bytes,
        digests: Digests,
        rules: AlignRules,
        ledger: Ledger,
        recipient: str,
        *,
        bind: Callable[[], None],
    ) -> None:
        self._folder, self._nonce, self._digests, self._rules = folder, nonce, digests, rules
        self._ledger, self._about = ledger, {"job": folder.name, "recipient": recipient}
        self._party, self._bind = party, bind
        self._shown: Shown | None = None
        self._met: _Exchanged | None = None
        if self.done:  # a kill may have left secrets behind
            self._forget_secrets()

    @property
    def done(self) -> bool:
        """Whether the common rows are known."""
        return (self._folder / "common").exists()

    @property
    def aside(self) -> Path:
        """A folder for temporary files, which exists before the job's own folder does."""
        return next(folder for folder in (self._folder, *self._folder.parents) if folder.exists())

    def rows(self) -> IntArray:
        """Return the common rows of the table, in the order that all parties share."""
        if not self.done:
            raise PeerError(f"The rows of job {self._folder.name} are not aligned yet.")
        data = atomic_files.read_checked(self._folder / "common", atomic_files.AT_FEATURE_PARTY)
        return Common.from_bytes(data).rows(self._digests)

    def begin(self, theirs: Iterable[Points]) -> None:
        """Check all of the label party's points, and record them before anything leaves.

        Refuse a label party that has aligned too often or has too many rows, and points other
        than those the job began with.  A refusal leaves nothing behind.
        """
        refuse_repeats(self._digests)
        self._rules.check_own(len(self._digests))
        shown = Shown.of(self._folder.name, theirs, self._rules, self.aside)
        with self._ledger.writing():
            if self.done or self._known("aligned") is not None:
                raise PrivacyError(
                    f"The rows of job {self._folder.name} are aligned already, so it raises no "
                    "more points. Ask the label party to begin a new job (--again)."
                )
            known = self._known("align")
            if known is None:
                self._check_repeats()
            elif not self._secret_file.exists():
                raise _lost()
            elif known["points"] != shown.digest:
                raise PrivacyError(
                    f"{self._about['recipient']!r} sends other points than those with which job "
                    f"{self._folder.name} began; each may be a guess. Only the first are raised; "
                    "ask it to begin a new job (--again)."
                )
            self._bind()
            kept_secret(self._folder, atomic_files.AT_FEATURE_PARTY)
            if known is None:
                entry = {"rows": len(self._digests), "theirs": shown.total, "points": shown.digest}
                self._ledger.append("align", {**self._about, **entry, "tag": self._side.tag.hex()})
            elif known["tag"] != self._side.tag.hex():
                raise _lost()
        self._shown = shown

    def pieces(self, have: Collection[int] = ()) -> Iterator[Points]:
        """Yield this party's points, leaving out the pieces that the label party already has."""
        self._begun()
        return self._side.pieces(have)

    def raised(self, theirs: Iterable[Points]) -> Iterator[Points]:
        """Yield the label party's points, raised; refuse any that the job did not begin with."""
        shown = self._begun()

        def raised(points: Points) -> Points:
            shown.check(points)
            return self._side.raised(points, checked=True)

        return at_once(raised, theirs)

    def claim(self, aligned: Aligned) -> Claim:
        """Prove that this party knows the rows that the label party calls common.

        Refuse a second, different message from the label party: with other rows, or with another
        half of its own proof, it could make another guess at this party's rows.
        """
        met = self._exchanged(aligned)
        job = self._folder.name
        return Claim(self._party, job, aligned.count, met.share, met.agreed.feature)

    def finish(self, aligned: Aligned, proof: Proof) -> None:
        """Save which rows are common, and delete the secrets.

        The label party must prove that it knows the keys of all of them.  A refusal leaves nothing
        behind in the ledger.  A repeated call must give the same rows.
        """
        self._check_same(aligned)
        if self.done:
            return
        met = self._exchanged(aligned)
        self._check_proof(met.agreed.label, proof)
        self._keep(aligned, met.rows)

    def lock(self, aligned: Aligned) -> Lock:
        """Save which rows are common, and return a lock that only a party that knows them can open.

        Without a lock, the proof would need two more bundles.  The label party proves that it knows
        the rows by opening the locked bundle, and its next bundle shows that it did
        (:meth:`opened`).
        """
        self._check_same(aligned)
        if not self._lock_file.exists():
            met = self._exchanged(aligned)
            atomic_files.write(
                self._lock_file, atomic_files.with_checksum(Lock(met.share, met.agreed).to_bytes())
            )
        if not self.done:
            self._keep(aligned, self._told(aligned))
        return self._locked()

    def opened(self, proof: Proof) -> Lock:
        """Return the lock again; refuse a label party that cannot have opened the bundle."""
        locked = self._locked()
        self._check_proof(locked.agreed.label, proof)
        return locked

    def _locked(self) -> Lock:
        if not self._lock_file.exists():
            raise _lost()
        return Lock.from_bytes(
            atomic_files.read_checked(self._lock_file, atomic_files.AT_FEATURE_PARTY),
            self._lock_file,
        )

    def _exchanged(self, aligned: Aligned) -> _Exchanged:
        """Return this party's half of the proof, and the outcome with the label party's half."""
        if self._met is not None and self._met.aligned == aligned:
            return self._met
        self._check_same(aligned)
        rows = self._told(aligned)
        told = self._folder / "told"
        atomic_files.write_new(told, encode(aligned))
        if told.read_bytes() != encode(aligned):
            raise self._other_rows()
        ids = Keys.of_digests(self._digests, rows).digest(self._nonce)
        own = RowProof.of(kept_secret(self._folder / "proof"), ids)
        agreed = own.with_label(self._folder.name, aligned.share)
        self._met = _Exchanged(aligned, rows, own.share, agreed)
        return self._met

    def _check_same(self, aligned: Aligned) -> None:
        """Refuse rows other than those that the ledger recorded as common."""
        known = self._known("aligned")
        if known is not None and known["bitmap"] != _bitmap(aligned):
            raise self._other_rows()

    def _other_rows(self) -> PrivacyError:
        return PrivacyError(
            f"{self._about['recipient']!r} now names different common rows in job "
            f"{self._folder.name}. Ask it to begin a new job (--again)."
        )

    def _check_proof(self, expected: bytes, proof: Proof) -> None:
        if proof.job != self._folder.name or not hmac.compare_digest(proof.proof, expected):
            raise PeerError(
                f"{self._about['recipient']!r} does not prove that it has the rows that it calls "
                "common, so nothing is released. A table changed since the alignment began, or the "
                "label party does not follow the protocol. Ask it to begin a new job (--again)."
            )

    def _keep(self, aligned: Aligned, rows: IntArray) -> None:
        with self._ledger.writing():
            self._check_same(aligned)
            common = Common.of(self._digests, rows)
            if self._known("aligned") is None:
                entry = {"common": aligned.count, "bitmap": _bitmap(aligned)}
                self._ledger.append("aligned", {**self._about, **entry})
        atomic_files.write(self._folder / "common", atomic_files.with_checksum(common.to_bytes()))
        self._forget_secrets()

    def _told(self, aligned: Aligned) -> IntArray:
        """Return the rows that the label party calls common, in the order all parties share."""
        check_aligned(aligned, self._side)
        check_on_curve(aligned.share)
        self._rules.check_common(aligned.count)
        rows = self._side.order[unpacked(aligned.bitmap, aligned.total)]
        return in_shared_order(self._digests, rows)

    @cached_property
    def _side(self) -> PsiPeer:
        if not self._secret_file.exists():
            raise _lost()
        secret = Secret(atomic_files.read_checked(self._secret_file, atomic_files.AT_FEATURE_PARTY))
        return PsiPeer(self._folder.name, "feature", secret, self._digests, self._rules)

    def _begun(self) -> Shown:
        if self._shown is None:
            raise PeerError(f"The alignment of job {self._folder.name} has not begun.")
        return self._shown

    def _check_repeats(self) -> None:
        bodies = [e.body for e in self._ledger.entries("align")]
        times = sum(body["recipient"] == self._about["recipient"] for body in bodies)
        if times >= self._rules.repeats:
            raise PrivacyError(
                f"{self._about['recipient']!r} has aligned its rows with this table in "
                f"{times} jobs, and each showed it which of its people are here. No more than "
                f"{self._rules.repeats} are allowed; raise repeats under [align] to accept more."
            )

    def _known(self, kind: str) -> dict[str, Any] | None:
        """Return what the ledger records about this job."""
        bodies = (e.body for e in self._ledger.entries(kind))
        return next((body for body in bodies if body["job"] == self._about["job"]), None)

    @property
    def _secret_file(self) -> Path:
        return self._folder / "secret"

    @property
    def _lock_file(self) -> Path:
        return self._folder / "rows.lock"

    def _forget_secrets(self) -> None:
        """Delete the secrets, and partial files that a kill left behind."""
        for file in (self._secret_file, self._folder / "told", *self._folder.glob(".secret.*")):
            file.unlink(missing_ok=True)
        shutil.rmtree(self._folder / "proof", ignore_errors=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Exchanged:
    """This party's part of the proof that both parties know the common rows."""

    aligned: Aligned
    rows: IntArray
    share: bytes
    agreed: Agreed


def _bitmap(aligned: Aligned) -> str:
    return hashlib.sha256(aligned.bitmap).hexdigest()


def _lost() -> PeerError:
    return PeerError(
        "This party lost its state of this job, including the secret that blinded the points it "
        "sent. Ask the label party to begin a new job (--again)."
    )
