"""The label party's side of private set intersection, which finds the rows of the job."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.columns.codebook import distinct
from opboost.errors import DataError, PrivacyError
from opboost.parties.alignment import Match, PsiPeer, common_to_all, kept_secret
from opboost.parties.channel import Channel, declined_to_all
from opboost.parties.label.known_rows import load_known, save_known
from opboost.parties.row_proof import RowProof
from opboost.protocol.messages import Welcome
from opboost.psi.align_rules import AlignRules, RowChoice
from opboost.psi.common_rows import Common, in_shared_order
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import Keys, refuse_repeats
from opboost.storage import atomic_files

Found = tuple[IntArray, dict[str, IntArray]]
"""The rows that the job is about, and the rows that each party is told are common."""


@dataclass(frozen=True, slots=True, eq=False)
class RowAlignment:
    """Finds the rows that the label party shares with each feature party.

    Attributes:
        rules: The agreed rules of the alignment.
        kept: ``"common"`` or ``"mine"``: which rows the job is about.
        y: The labels of all rows, or None for rows to be predicted.
        check_watching: Refuses labels with too few rows to hold any out for early stopping.
        check_record: Refuses parties whose totals add up to more than the job allows.
    """

    rules: AlignRules
    kept: RowChoice
    y: Any
    check_watching: Callable[[Any], None]
    check_record: Callable[[Sequence[Channel], Welcome], None]

    def found(
        self, channels: Sequence[Channel], welcome: Welcome, digests: Digests, state: Path | None
    ) -> Found:
        """Return the rows, ordered by the digests of their keys.

        ``state`` is a folder that holds the secrets during the alignment and the outcome after it,
        so that a label party that was killed can resume.
        """
        if state is None:
            return self._matched(channels, welcome, None, digests)
        kept = state / "common"
        if not kept.exists():
            rows, known = self._matched(channels, welcome, state, digests)
            if self.kept == "mine":
                save_known(state, digests, known)
            common = Common.of(digests, rows).to_bytes()
            atomic_files.write(kept, atomic_files.with_checksum(common))
        for channel in channels:
            channel.forget()
        shutil.rmtree(state / "align", ignore_errors=True)
        stored = Common.from_bytes(atomic_files.read_checked(kept, atomic_files.AT_LABEL_PARTY))
        parties = [channel.party for channel in channels]
        known = load_known(state, digests, parties) if self.kept == "mine" else {}
        return stored.rows(digests), known

    def _matched(
        self, channels: Sequence[Channel], welcome: Welcome, state: Path | None, digests: Digests
    ) -> Found:
        """Compare points with every party, and tell each which of its rows are common.

        With ``rows="mine"`` each party is told its own overlap, and nothing about the others'.
        """
        refuse_repeats(digests)
        matches = self._matches(channels, welcome, state, digests)
        names = [channel.party for channel in channels]
        if self.kept == "mine":
            rows = in_shared_order(digests, np.arange(len(digests)))
            shared = [in_shared_order(digests, match.rows) for match in matches]
        else:
            rows = in_shared_order(digests, common_to_all(matches, len(digests)))
            shared = [rows for _ in matches]
        known = dict(zip(names, shared, strict=True))
        try:
            self._check_known(known)
        except (PrivacyError, DataError):
            if state is not None:
                atomic_files.write(state / "stopped", b"too few rows in common")
            for channel in channels:
                channel.refuse(self._too_few(len(known[channel.party])))
            raise
        if state is not None:
            (state / "stopped").unlink(missing_ok=True)
        for channel, match in zip(channels, matches, strict=True):
            # Kept with the points, so that a label party that was killed repeats the same message.
            secret = kept_secret(state and state / "align" / channel.party / "proof")
            told = known[channel.party]
            ids = Keys.of_digests(digests, told).digest(welcome.nonce)
            proof = RowProof.of(secret, ids)
            channel.tell(match.told(welcome.job, told, proof.share), proof)
        return rows, known

    def _matches(
        self, channels: Sequence[Channel], welcome: Welcome, state: Path | None, digests: Digests
    ) -> list[Match]:
        """Exchange points with every party, and return the rows shared with each."""
        sides = []
        for channel in channels:
            secret = kept_secret(state and state / "align" / channel.party)
            sides.append(PsiPeer(welcome.job, "label", secret, digests, self.rules))
        for channel, side in zip(channels, sides, strict=True):
            channel.offer(welcome, side)
        self.check_record(channels, welcome)
        with declined_to_all(channels):
            return [channel.met(side) for channel, side in zip(channels, sides, strict=True)]

    def _check_known(self, known: Mapping[str, IntArray]) -> None:
        """Refuse common rows that are too few to hide in, or that have only one label."""
        for name, rows in known.items():
            who = "The parties" if self.kept == "common" else f"{name!r} and the label party"
            self.rules.check_common(len(rows), who)
        if self.y is None:
            return
        some = np.zeros(len(self.y), dtype=np.bool_)
        for rows in known.values():
            some[rows] = True
        labels = self.y[some]
        if len(distinct(labels)) < 2:
            who = "all parties have" if self.kept == "common" else "some feature party has"
            raise DataError(f"The label has only one value in the rows that {who}")
        self.check_watching(labels if self.kept == "common" else self.y)

    def _too_few(self, rows: int) -> str:
        """Return the message to a party about too few rows; with ``rows="mine"``, about its own."""
        if self.kept == "common" or rows < self.rules.minimum_rows:
            return "The parties have too few rows in common to learn from."
        return "The label party ended the job."
