"""Run an audit: draw samples, choose events, and compute bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.auditing.attacked_pairs import chosen_pairs
from opboost.auditing.audit_report import Audit, IndependenceAudit, PairAudit
from opboost.auditing.audit_targets import AuditTarget, Coding, target_of
from opboost.auditing.independence import chance_of_independence, paired_draws
from opboost.auditing.loss_bounds import loss_below, most_revealing_event
from opboost.errors import ParameterError

CHUNK_SAMPLES = 1 << 20
"""The number of rows drawn at a time, so that memory does not grow with the samples."""

PILOT_SHARE = 0.1
"""The fraction of the samples that ranks outcomes; another such fraction chooses events."""

INDEPENDENCE_ROWS = 1 << 19
"""The number of rows drawn for each check of independence, or all samples if they are fewer."""

SampleProgress = Callable[[int, int], None]


def audit(
    mechanism: object,
    *,
    samples: int = 1_000_000,
    pairs: int | Iterable[tuple[Any, Any]] = 45,
    confidence: float = 1 - 1e-6,
    seed: int = 0,
    progress: SampleProgress | None = None,
) -> Audit:
    """Attack a mechanism through its ``sample`` and return a lower bound on each pair's loss.

    A sound mechanism fails with probability at most ``1 − confidence``, over all pairs and checks
    together.  The pairs share half of that risk, each in both directions; the bounds are
    Clopper-Pearson bounds, on samples that did not choose the event.  The other half is shared by
    the checks that rows, calls, threads and forked children draw independently.

    Args:
        mechanism: Any mechanism, including those for missing values or categories, or an
            ``op.Record``.
        samples: The number of samples for each value.
        pairs: Pairs of values (``None`` is a missing one), or the largest number of pairs.
        confidence: The probability that a sound mechanism passes.
        seed: Chooses pairs; noise is never seeded.
        progress: Called with the samples drawn so far and their total.

    Cost: O(samples) time for each distinct value; memory does not grow with the samples.

    >>> import opboost as op
    >>> found = op.audit(op.ClampMap(op.Domain(1, 4), epsilon=0.5), samples=50_000)
    >>> found.sound, max(p.lower for p in found.pairs) > 1.2  # of 1.5
    (True, True)
    """
    target = target_of(mechanism)
    if samples < 1000:
        raise ParameterError(f"An audit needs 1,000 samples or more; got {samples!r}.")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    chosen = chosen_pairs(target, pairs, seed) if isinstance(pairs, int) else list(pairs)
    if not chosen:
        raise ParameterError("An audit needs at least one pair of values.")
    attack = _Attack(target, samples, (1 - confidence) / 2, progress or (lambda done, of: None))
    found = attack.pairs(chosen)
    return Audit(repr(mechanism), samples, confidence, found, attack.independence(chosen[0][0]))


class _Attack:
    def __init__(
        self, target: AuditTarget, samples: int, risk: float, progress: SampleProgress
    ) -> None:
        self._target, self._samples, self._risk = target, samples, risk
        self._progress, self._done, self._total = progress, 0, 0

    def pairs(self, chosen: list[tuple[Any, Any]]) -> tuple[PairAudit, ...]:
        codings = {pair: self._target.coding(*pair) for pair in chosen}
        wanted = {(v, coding): None for pair, coding in codings.items() for v in pair}
        self._total = len(wanted) * self._samples
        counted = {(v, coding): self._counted(v, coding) for v, coding in wanted}
        return tuple(
            self._judged(
                x, y, coding, counted[x, coding], counted[y, coding], self._risk / (2 * len(chosen))
            )
            for (x, y), coding in codings.items()
        )

    def _counted(self, value: Any, coding: Coding) -> tuple[IntArray, IntArray, IntArray]:
        """Return each outcome's counts: for the ranking, the choice of an event, and its bound."""
        first = int(PILOT_SHARE * self._samples)
        ranking, choosing = (self._count(value, coding, first) for _ in range(2))
        return ranking, choosing, self._count(value, coding, self._samples - 2 * first)

    def _count(self, value: Any, coding: Coding, samples: int) -> IntArray:
        counts = np.zeros(coding.size, dtype=np.int64)
        for start in range(0, samples, CHUNK_SAMPLES):
            drawn = self._target.draw(value, min(CHUNK_SAMPLES, samples - start))
            codes = coding.codes(drawn)
            counts += np.bincount(codes, minlength=coding.size)
            self._done += len(codes)
            self._progress(self._done, self._total)
        return counts

    def _judged(
        self,
        x: Any,
        y: Any,
        coding: Coding,
        of_x: tuple[IntArray, IntArray, IntArray],
        of_y: tuple[IntArray, IntArray, IntArray],
        risk: float,
    ) -> PairAudit:
        best: PairAudit | None = None
        promised, exact = self._target.promised(x, y), self._target.exact(x, y)
        for a, b, for_a, for_b in ((x, y, of_x, of_y), (y, x, of_y, of_x)):
            ranking, choosing, rest = zip(for_a, for_b, strict=True)
            n = int(rest[0].sum())
            grown = n / int(choosing[0].sum())
            event = most_revealing_event(ranking, choosing, grown, risk)
            lower = loss_below(int(rest[0][event].sum()), n, int(rest[1][event].sum()), n, risk)
            if best is None or lower > best.lower:
                words = coding.words(np.flatnonzero(event))
                best = PairAudit(a, b, promised, exact, lower, words)
        assert best is not None
        return best

    def independence(self, value: Any) -> tuple[IndependenceAudit, ...]:
        rows = min(self._samples, INDEPENDENCE_ROWS)
        drawn = [(words, draw()) for words, draw in paired_draws(self._target, value, rows)]
        chances = [(words, chance_of_independence(pair)) for words, pair in drawn]
        return tuple(
            IndependenceAudit(words, chance, chance < self._risk / len(chances))
            for words, chance in chances
        )
