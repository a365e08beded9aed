"""Latent classes within each label group, fitted to noisy rows.

    P(x | group g) = sum over classes c of pi[g, c] · product over columns j of P[g, j, c](x_j)

The E-step weights a row's classes by the likelihood of its outputs.  The outputs of a column have
the chances Q = P · M, where M is its noise matrix.  The M-step is EM's multiplicative update of
each pmf; it needs sums of outputs, not rows.  A kernel over groups lets a row count for
neighbouring groups too, so this is EM for a local likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.denoise import maximisation_kernel
from opboost.denoise import mixture_kernel as loops
from opboost.denoise.encoded_rows import EncodedRows, Index, Table, in_threads
from opboost.runtime.threads import threads_for

MAX_LANES = 128
"""At most this many pmfs of a column are fitted together, so that their tables stay in cache."""

FLOOR = 1e-3
"""In scaling, outputs rarer than this count as if they had this chance: products stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """One or several models, fitted side by side; :meth:`stepped` returns their next state.

    ``P[g, x, c]`` holds the pmfs of all columns, one below the other, and ``Q`` the chances of
    outputs.  Model k has the classes from ``models[k]`` up to ``models[k + 1]``.  The kernel
    ``near[k]`` spreads its counts over groups, and ``near_pi`` spreads the sizes of classes.  Every
    pmf is fitted as if ``kappa`` more rows followed ``parent``.
    """

    index: Index
    constant: Table
    models: IntArray
    near: tuple[Table, ...]
    near_pi: Table
    parent: Table
    kappa: float
    smooth: Table
    pi: Table
    P: Table
    Q: Table

    @property
    def classes(self) -> int:
        """The number of latent classes in each group, over all models."""
        return int(self.pi.shape[1])

    def __getitem__(self, k: int) -> Mixture:
        """Return model k without the others."""
        lanes = slice(self.models[k], self.models[k + 1])
        return replace(
            self,
            models=np.array([0, self.models[k + 1] - self.models[k]]),
            near=(self.near[k],),
            smooth=self.smooth[lanes],
            pi=np.ascontiguousarray(self.pi[:, lanes]),
            P=np.ascontiguousarray(self.P[:, :, lanes]),
            Q=np.ascontiguousarray(self.Q[:, :, lanes]),
        )

    @classmethod
    def side_by_side(cls, parts: Sequence[Mixture]) -> Mixture:
        """Combine models of the same rows, so that one pass fits all of them."""
        widths = [m.classes for m in parts]
        return replace(
            parts[0],
            models=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            near=tuple(m.near[0] for m in parts),
            smooth=np.concatenate([m.smooth for m in parts]),
            pi=np.ascontiguousarray(np.concatenate([m.pi for m in parts], axis=1)),
            P=np.ascontiguousarray(np.concatenate([m.P for m in parts], axis=2)),
            Q=np.ascontiguousarray(np.concatenate([m.Q for m in parts], axis=2)),
        )

    @classmethod
    def of_pmfs(cls, index: Index, constant: Table, pi: Table, P: Table) -> Mixture:
        """Rebuild a fitted model that can weigh rows and draw, but cannot be fitted further."""
        groups, classes = pi.shape
        alone = np.eye(groups, dtype=np.float32)
        lanes, smooth = np.array([0, classes]), np.zeros(classes, dtype=np.float32)
        Q = np.zeros((groups, index.height, classes), dtype=np.float32)
        parent = np.ascontiguousarray(P[:, :, 0])
        return cls(
            index, constant, lanes, (alone,), alone, parent, 0.0, smooth, pi, P, Q
        ).refreshed()

    def stepped(self, rows: EncodedRows, inner: int = 2) -> Mixture:
        """Return the state after one step of EM."""
        return self.fitted(*self.expected(rows), inner)

    def expected(self, rows: EncodedRows) -> tuple[Table, Table]:
        """Return each group's counts of outputs and sizes of classes: the E-step.

        Both are sums over rows, so the sums of several blocks of rows can be added.
        """
        i = self.index
        if np.array_equal(rows.units[:, 0], np.arange(len(self.pi))):  # one unit per group
            return self._unit_sums(rows, rows.units)
        whole = np.zeros((len(self.pi), i.height, self.classes), dtype=np.float32)
        share = np.zeros_like(self.pi)
        for units in rows.waves(i.height * self.classes):
            counts, sizes = self._unit_sums(rows, units)
            for u, g in enumerate(units[:, 0].tolist()):
                whole[g] += counts[u]
                share[g] += sizes[u]
        return whole, share

    def _unit_sums(self, rows: EncodedRows, units: IntArray) -> tuple[Table, Table]:
        i = self.index
        counts = np.zeros((len(units), i.height, self.classes), dtype=np.float32)
        sizes = np.zeros((len(units), self.classes), dtype=np.float32)
        head = (rows.codes, rows.bits, rows.weight, units)
        tail = (i.offsets, i.unsent, i.bases, i.firsts, self.Q, self.pi, self.models)
        rows.each(
            lambda lo, hi: loops.expect(*head, lo, hi, *tail, counts, sizes),
            len(units),
            self.classes,
        )
        return counts, sizes

    def fitted(self, counts: Table, sizes: Table, inner: int, bits: bool = True) -> Mixture:
        """Fit to each group's counts of outputs and sizes of classes: the M-step.

        If ``counts`` are plain tallies, pass ``bits=False``: these cannot update the pmfs of bits,
        which then stay as they are.
        """
        pi = self.near_pi @ sizes + 1
        spread = np.empty_like(counts)
        for k in range(len(self.near)):
            lanes = slice(self.models[k], self.models[k + 1])
            pi[:, lanes] /= pi[:, lanes].sum(axis=1, keepdims=True)
        near = np.stack(self.near)
        threads = threads_for(self.P.size * inner)
        in_threads(
            lambda lo, hi: maximisation_kernel.spread(lo, hi, near, self.models, counts, spread),
            len(pi),
            min(threads, len(pi)),
        )
        made = self._maximised(spread, self.kappa, inner, threads, bits)
        return replace(made, pi=pi.astype(np.float32))

    def refreshed(self) -> Mixture:
        """Return the same pmfs, with the chances of outputs recomputed from them."""
        return self._maximised(self.Q, 0.0, 0, 1, False)

    def _maximised(
        self, counts: Table, kappa: float, inner: int, threads: int, bits: bool
    ) -> Mixture:
        """Fit the pmfs to counts that were spread over groups."""
        i, P, Q = self.index, self.P.copy(), np.empty_like(self.Q)
        lanes, rows = len(P) * self.classes, np.float32(kappa)
        width = min(MAX_LANES, -(-lanes // 8) * 8)

        blocks, columns = -(-lanes // width), len(i.offsets)

        def fit(lo: int, hi: int, left: int, right: int) -> None:
            maximisation_kernel.maximise(
                lo, hi, left, right, width, counts, i.offsets, i.starts, i.matrix, i.places,
                self.constant, i.exact, i.lines, self.smooth, P, Q, self.parent, rows, inner,
            )  # fmt: skip

        if blocks < min(threads, columns):  # with few lanes, threads share the columns
            in_threads(lambda lo, hi: fit(0, blocks, lo, hi), columns, min(threads, columns))
        else:
            in_threads(lambda lo, hi: fit(lo, hi, 0, columns), blocks, min(threads, blocks))
        if len(i.bases):
            maximisation_kernel.maximise_bits(
                0, len(P), counts, i.bases, i.bit_starts, i.odds, P, Q, self.parent, rows, bits
            )
        return replace(self, P=P, Q=Q)

    def likelihoods(self, rows: EncodedRows) -> FloatArray:
        """Return log-likelihoods ``[row, model]``, in row order and up to a constant per row."""
        out = np.zeros((len(rows), len(self.near)))
        i = self.index
        head = (rows.codes, rows.bits, rows.units)
        tail = (i.offsets, i.unsent, i.bases, i.firsts, self.Q, self.pi, self.models, out)
        rows.each(lambda lo, hi: loops.likelihoods(*head, lo, hi, *tail), classes=self.classes)
        return out

    def draw(
        self,
        rows: EncodedRows,
        tokens: IntArray,
        drawn: int,
        key: int,
        out: IntArray,
        out_bits: IntArray,
    ) -> None:
        """Write posterior draws of the first ``drawn`` columns and of the bit columns.

        A row's draw depends on the key and the row's token, not on other rows.
        """
        i = self.index
        head = (rows.codes, rows.bits, rows.units)
        tail = (
            i.offsets, i.unsent, i.starts, i.matrix, i.places, i.bases, i.bit_starts, i.firsts,
            i.odds, self.Q, self.pi, self.P, drawn, rows.order, tokens, np.uint64(key), out,
            out_bits,
        )  # fmt: skip
        rows.each(lambda lo, hi: loops.draw(*head, lo, hi, *tail))
