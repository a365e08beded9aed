"""A feature party's answers to split queries: one per job, recorded in the ledger first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from opboost.columns.private_column import PrivateColumn
from opboost.errors import PeerError, PrivacyError
from opboost.grid import NumericMapping, RawUnits
from opboost.ledger import Ledger
from opboost.parties.feature.feature_job_folders import FeatureJobFolders, never_released
from opboost.parties.feature.outgoing_columns import read_values
from opboost.protocol.messages import Cuts, SplitQuery, SplitValues, Units, Values, encode


class SplitAnswers:
    """Answers a label party's query for the values behind its cuts."""

    def __init__(
        self,
        jobs: FeatureJobFolders,
        ledger: Ledger,
        recipient: str,
        private: Sequence[PrivateColumn],
        units: Units,
    ) -> None:
        self._jobs, self._ledger, self._recipient = jobs, ledger, recipient
        self._private, self._units = private, units

    def answer(self, query: SplitQuery) -> SplitValues:
        """Return the values behind cuts: one query per job, the same answer if repeated."""
        self._jobs.bind(query.job)
        digest = hashlib.sha256(encode(query)).digest()
        known = self._jobs.answer(query.job)
        if known is not None:
            if known.query != digest:
                raise self._second(query.job)
            return known
        if not self._jobs.is_released(query.job):
            raise never_released(query.job)
        folder = self._jobs.folder(query.job)
        answer = SplitValues(query.job, digest, tuple(self.values(folder, query)))
        self._record(query, digest)
        self._jobs.keep_answer(answer)
        return answer

    def values(self, folder: Path, query: SplitQuery) -> Iterator[Values]:
        """Yield the values behind each queried column's cuts, from the release in ``folder``."""
        columns = [c for c in self._private for _ in c.release_names()]
        for cuts in query.columns:
            if cuts.column >= len(columns) or not columns[cuts.column].has_order:
                raise PeerError(f"A split query names column {cuts.column}, which has no cuts.")
            values = read_values(folder / f"{cuts.column:05d}.arrow")
            if cuts.codes[-1] >= len(values):
                raise PeerError(
                    f"A split query names code {cuts.codes[-1]} of column {cuts.column}, "
                    f"which has {len(values)} codes."
                )
            yield self._answered(columns[cuts.column], cuts, values, query.left_up_to)

    def _record(self, query: SplitQuery, digest: bytes) -> None:
        """Record the answer before it leaves; the ledger, too, allows only one per job."""
        counts = {str(c.column): len(c.codes) for c in query.columns}
        body = {"job": query.job, "recipient": self._recipient, "cuts": counts}
        with self._ledger.writing():
            for entry in self._ledger.entries("answer"):
                if entry.body["job"] == query.job:
                    if entry.body["query"] != digest.hex():
                        raise self._second(query.job)
                    return
            self._ledger.append("answer", {**body, "query": digest.hex()})

    def _second(self, job: str) -> PrivacyError:
        return PrivacyError(
            f"{self._recipient!r} sends a second, different split query in job {job}. "
            "A job answers only one."
        )

    def _answered(self, c: PrivateColumn, cuts: Cuts, values: Any, left_up_to: bool) -> Values:
        cells = [float(values[code]) for code in cuts.codes]
        if self._units == "raw" and isinstance(c.mapping, NumericMapping):
            raw = tuple(map(RawUnits(c.mapping, left_up_to), cells))
            inner = [(v, cell) for v, cell in zip(raw, cells, strict=True) if isfinite(v)]
            # Cells narrower than the resolution of a 32-bit float have no thresholds of their own.
            if all(c.mapping.to_grid([v])[0] == cell for v, cell in inner):
                return Values(cuts.column, "raw", raw)
        return Values(cuts.column, "grid", tuple(cells))
