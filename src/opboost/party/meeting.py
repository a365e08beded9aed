"""The feature party's side of an alignment: recorded before a point leaves, kept until it is over.

In the job's folder stand ``secret`` while the alignment goes on, then ``common`` alone, a bitmap
beside the table.  What the label party learns it learns from points, so the ledger has an entry
``align`` before the first of them leaves, and ``aligned`` when the common rows are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from opboost import durable
from opboost._typing import IntArray
from opboost.align.keys import Digests, refuse_repeats
from opboost.align.matching import Common, unpacked
from opboost.align.psi import at_once
from opboost.align.rules import AlignRules
from opboost.errors import PeerError, PrivacyError
from opboost.ledger import Ledger
from opboost.party.alignment import Side, check_aligned, kept_secret
from opboost.wire.messages import Aligned, Points


class Meeting:
    """One alignment with the label party; may be taken up again at any point.

    ``begin``, then ``pieces`` and ``raised`` in any order, then ``finish``.
    """

    def __init__(
        self, folder: Path, digests: Digests, rules: AlignRules, ledger: Ledger, recipient: str
    ) -> None:
        self._folder, self._digests, self._rules = folder, digests, rules
        self._ledger, self._about = ledger, {"job": folder.name, "recipient": recipient}
        if self.done:  # and perhaps killed before it was gone
            (folder / "secret").unlink(missing_ok=True)

    @property
    def done(self) -> bool:
        """Whether the common rows are known."""
        return (self._folder / "common").exists()

    def rows(self) -> IntArray:
        """The common rows of the table, in the order that all parties share."""
        if not self.done:
            raise PeerError(f"Job {self._folder.name} was not aligned yet.")
        return Common.from_bytes((self._folder / "common").read_bytes()).rows(self._digests)

    @cached_property
    def _side(self) -> Side:
        refuse_repeats(self._digests)
        secret = kept_secret(self._folder)
        return Side(self._folder.name, "feature", secret, self._digests, self._rules)

    def begin(self, first: Points) -> None:
        """Look at the label party's first piece, and record the alignment before anything leaves.

        A label party that has aligned too often, or brings too many rows, is refused.
        """
        self._side.check(first)
        with self._ledger.writing():
            known = [e.body for e in self._ledger.entries("align")]
            if any(body["job"] == self._about["job"] for body in known):
                return
            times = sum(body["recipient"] == self._about["recipient"] for body in known)
            if times >= self._rules.repeats:
                raise PrivacyError(
                    f"{self._about['recipient']!r} has aligned its rows with this table in "
                    f"{times} jobs, and each tells it who is here and who is not. No more than "
                    f"{self._rules.repeats} are allowed; decide on more repeats under [align]."
                )
            self._ledger.append("align", {**self._about, **self._sizes(first.total)})

    def pieces(self, have: Collection[int] = ()) -> Iterator[Points]:
        """This party's points, all pieces but those that the label party has."""
        return self._side.pieces(have)

    def raised(self, theirs: Iterable[Points]) -> Iterator[Points]:
        """The label party's points, raised."""
        return at_once(self._side.raised, theirs)

    def finish(self, aligned: Aligned) -> None:
        """Keep which rows are common, and let the secret go."""
        check_aligned(aligned, self._side)
        self._rules.check_common(aligned.count)
        rows = self._side.order[unpacked(aligned.bitmap, aligned.total)]
        with self._ledger.writing():
            known = [e.body for e in self._ledger.entries("aligned")]
            if all(body["job"] != self._about["job"] for body in known):
                self._ledger.append("aligned", {**self._about, "common": aligned.count})
        durable.write(self._folder / "common", Common.of(self._digests, rows).to_bytes())
        (self._folder / "secret").unlink(missing_ok=True)

    def _sizes(self, theirs: int) -> dict[str, int]:
        return {"rows": len(self._digests), "theirs": theirs}
