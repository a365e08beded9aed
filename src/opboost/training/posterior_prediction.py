"""Predict desensitised rows by the mean over the clean rows that may have produced them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from opboost._typing import FloatArray
from opboost.boosting.booster import Matrix, Trained
from opboost.denoise.column_pairs import MAX_PAIR_CELLS, Pairing
from opboost.denoise.encoded_rows import Index, Table
from opboost.denoise.latent_classes import FLOOR, Mixture
from opboost.denoise.noise_matrix import MAX_GRID_CELLS, MAX_NOISE_MATRIX_CELLS
from opboost.denoise.posterior_draws import JointDistribution, Outputs
from opboost.errors import DataError
from opboost.training.clean_states import OWN_COLUMNS, Cuts, StateCoding
from opboost.training.feature_matrix import Layout
from opboost.training.released_columns import ReleasedColumn, rows_of

DRAWS_PER_ROW = 32
"""The number of clean rows drawn for each desensitised one."""

PIECE_ROWS = 2048
"""The number of rows predicted at a time, which bounds the memory of guesses."""


def pieces(rows: int) -> list[slice]:
    """Return the rows of each piece; one empty piece if there are no rows."""
    return [slice(begin, begin + PIECE_ROWS) for begin in range(0, max(rows, 1), PIECE_ROWS)]


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """How a model of clean rows predicts a desensitised row.

    The best prediction of a model F of clean rows for a noisy row y is E[F(x) | y].  ``way`` is
    ``"draws"`` if it is computed from draws of x, and ``"groups"`` if the chances of label groups
    predict the label directly (``means`` holds the groups' mean targets).  A row's prediction
    depends only on what the row sent.
    """

    coding: StateCoding
    distribution: JointDistribution
    means: FloatArray | None
    way: Literal["draws", "groups"]
    seed: int

    def predict(
        self, trained: Trained, release: Sequence[ReleasedColumn], own: Matrix
    ) -> FloatArray:
        """Return predictions for released rows with own features of the same rows."""
        return np.concatenate(
            [
                self._piece(trained, rows_of(release, piece), own[piece])
                for piece in pieces(len(own))
            ]
        )

    def with_absent(self, clear: frozenset[int] = frozenset()) -> Posterior:
        """Return the posterior of rows that lack columns because a party does not know the person.

        ``clear`` holds the places of columns that are known without noise.
        """
        if self.coding.absent and not clear:
            return self
        coding = self.coding.with_absent(clear)
        old = self.distribution
        pairing = Pairing(coding.space, old.pairing.pairs, old.pairing.alone)
        index = pairing.paired_space().index()
        scale = _output_scale(pairing, index, old)
        member = Mixture.of_pmfs(index, scale, old.member.pi, old.member.P)
        return replace(
            self, coding=coding, distribution=JointDistribution(member, pairing, old.share)
        )

    def _piece(
        self, trained: Trained, release: Sequence[ReleasedColumn], own: Matrix
    ) -> FloatArray:
        outputs: Outputs = self.coding.outputs(release, own)
        chance = self.distribution.chances(outputs)
        if self.way == "groups":
            # A matrix product would round a row's sum in a way that depends on its neighbours.
            return chance if self.means is None else (chance * self.means).sum(axis=1)
        guessed = self.distribution.guesses(outputs, chance, DRAWS_PER_ROW, self.seed)
        clean = self.coding.clean(release, [guessed], DRAWS_PER_ROW)
        many = np.repeat(own, DRAWS_PER_ROW, axis=0)
        found = trained.predict(self.coding.layout.values(clean, many))
        mean = found.reshape(len(own), DRAWS_PER_ROW, -1).mean(axis=1)
        return np.asarray(mean.reshape(len(own), *found.shape[1:]), dtype=np.float64)

    def arrays(self) -> dict[str, Any]:
        """Return all that :meth:`of_arrays` needs besides the layout."""
        member = self.distribution.member
        found: dict[str, Any] = {
            "sent": np.array(self.coding.sent, dtype=np.float64),
            "absent": np.array(self.coding.absent),
            "seed": self.seed,
            "way": self.way,
            "grid_cells": MAX_GRID_CELLS,
            "pairs": np.array(self.distribution.pairing.pairs, dtype=np.int64).reshape(-1, 2),
            "alone": np.array(self.distribution.pairing.alone, dtype=np.int64),
            "share": self.distribution.share,
            "constant": member.constant,
            "pi": member.pi,
            "P": member.P,
        }
        if self.means is not None:
            found["means"] = self.means
        for number, edges in enumerate(self.coding.cuts):
            if edges is not None:
                found[f"cuts{number}"] = edges
        return found

    @classmethod
    def of_arrays(cls, layout: Layout, arrays: Mapping[str, Any]) -> Posterior:
        """Read the posterior that :meth:`arrays` returned.

        Files of earlier versions hold one share of rows for all columns, and no grid of more than
        512 cells.
        """
        names = set(arrays)
        cuts: Cuts = tuple(
            arrays[f"cuts{number}"] if f"cuts{number}" in names else None
            for number in range(min(len(layout.own), OWN_COLUMNS))
        )
        seed = int(arrays["seed"])
        way: Any = str(arrays["way"])
        count = len(layout.private)
        _fits(np.shape(arrays["sent"]) in ((), (count,)) and arrays["sent"].dtype.kind == "f")
        sent = tuple(np.broadcast_to(arrays["sent"], count).tolist())
        _fits(all(0 <= share <= 1 for share in sent))
        _fits(0 <= seed < 2**63 and way in ("draws", "groups"))
        _fits(all(c is None or (c.ndim == 1 and c.dtype.kind == "f") for c in cuts))
        largest = int(arrays["grid_cells"]) if "grid_cells" in names else MAX_NOISE_MATRIX_CELLS
        _fits(largest in (MAX_GRID_CELLS, MAX_NOISE_MATRIX_CELLS))
        absent = bool(arrays["absent"]) if "absent" in names else False
        coding = StateCoding.of(layout, sent, cuts, largest, absent=absent)
        space = coding.space
        pairs = tuple((int(a), int(b)) for a, b in arrays["pairs"])
        alone = tuple(map(int, arrays["alone"]))
        everyone = sorted([*alone, *(j for pair in pairs for j in pair)])
        _fits(everyone == list(range(len(space.channels))))
        sizes = [c.outputs for c in space.channels]
        _fits(all(sizes[a] * sizes[b] <= MAX_PAIR_CELLS for a, b in pairs))
        pairing = Pairing(space, pairs, alone)
        index = pairing.paired_space().index()
        distribution = _distribution(arrays, pairing, index)
        groups = len(distribution.share)
        means = None
        if "means" in names:
            means = np.asarray(arrays["means"], dtype=np.float64)
            _fits(means.shape == (groups,))
        return cls(coding, distribution, means, way, seed)


def _distribution(arrays: Mapping[str, Any], pairing: Pairing, index: Index) -> JointDistribution:
    """Return the distribution in the arrays; check their shapes, which compiled loops trust."""
    for name in ("constant", "pi", "P", "share"):
        _fits(arrays[name].dtype.kind == "f" and bool(np.isfinite(arrays[name]).all()))
    pi, P, constant = (
        np.ascontiguousarray(arrays[name], dtype=np.float32) for name in ("pi", "P", "constant")
    )
    share = np.asarray(arrays["share"], dtype=np.float64)
    _fits(pi.ndim == 2 and min(pi.shape) > 0 and share.shape == pi.shape[:1])
    _fits(P.shape == (pi.shape[0], index.states, pi.shape[1]))
    _fits(constant.shape == (index.height,))
    _fits(bool((share > 0).all() and (pi >= 0).all() and (P >= 0).all()))
    return JointDistribution(Mixture.of_pmfs(index, constant, pi, P), pairing, share)


def _output_scale(pairing: Pairing, index: Index, known: JointDistribution) -> Table:
    """Return how common each output is: the constant by which its chances are divided."""
    pmf = np.einsum("g,gc,gxc->x", known.share, known.member.pi, known.member.P)
    scale = np.ones(index.height, dtype=np.float32)
    state = output = 0
    for matrix in pairing.paired_space().matrices:
        states, outputs = matrix.shape
        scale[output : output + outputs] = pmf[state : state + states] @ matrix
        state, output = state + states, output + outputs
    return np.maximum(scale, FLOOR)


def _fits(holds: bool) -> None:
    if not holds:
        raise DataError(
            "The posterior of the saved estimator does not fit its columns",
            hint="Restore a copy of the file, or train again.",
        )
