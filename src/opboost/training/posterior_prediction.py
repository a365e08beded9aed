"""Predictions for desensitised rows: the mean over the clean rows that they may have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opboost._typing import FloatArray
from opboost.boosting.booster import Matrix, Trained
from opboost.denoise.column_pairs import MAX_PAIR_CELLS, Pairing
from opboost.denoise.encoded_rows import Index
from opboost.denoise.latent_classes import Mixture
from opboost.denoise.posterior_draws import JointDistribution, Outputs
from opboost.errors import DataError
from opboost.training.clean_states import (
    OWN_COLUMNS,
    Cuts,
    ReleasedColumns,
    as_release,
    outputs_in,
    rows_of,
    space_of,
)
from opboost.training.feature_matrix import Layout

DRAWS_PER_ROW = 32
"""So many clean rows stand for a desensitised one."""

PIECE_ROWS = 2048
"""Rows that are predicted at a time: the memory that guesses need is bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What a model of clean rows says about a desensitised one.

    A model F of clean rows, asked about a noisy row y, is best used as E[F(x) | y].  ``way`` says
    how: by ``"draws"`` of x, or by the label ``"groups"`` of y directly (``means`` holds their mean
    targets).  A row's prediction depends on what it sent alone.
    """

    layout: Layout
    sent: float
    cuts: Cuts
    distribution: JointDistribution
    means: FloatArray | None
    way: Literal["draws", "groups"]
    seed: int

    def predict(self, trained: Trained, released: ReleasedColumns, own: Matrix) -> FloatArray:
        """Predictions for released rows, beside own features of the same rows."""
        rows = len(own)
        parts = []
        for begin in range(0, max(rows, 1), PIECE_ROWS):
            piece = slice(begin, begin + PIECE_ROWS)
            parts.append(self._piece(trained, rows_of(released, piece), own[piece]))
        return np.concatenate(parts)

    def _piece(self, trained: Trained, released: ReleasedColumns, own: Matrix) -> FloatArray:
        outputs: Outputs = outputs_in(self.layout, released, own, self.sent, self.cuts)
        chance = self.distribution.chances(outputs)
        if self.way == "groups":
            # A product of matrices would round a row's sum in a way that hangs on its neighbours.
            return chance if self.means is None else (chance * self.means).sum(axis=1)
        guessed = self.distribution.guesses(outputs, chance, DRAWS_PER_ROW, self.seed)
        many = np.repeat(np.arange(len(own)), DRAWS_PER_ROW)
        clean = as_release(self.layout, rows_of(released, many), self.sent, [guessed])
        found = trained.predict(self.layout.values(clean, own[many]))
        mean = found.reshape(len(own), DRAWS_PER_ROW, -1).mean(axis=1)
        return np.asarray(mean.reshape(len(own), *found.shape[1:]), dtype=np.float64)

    def arrays(self) -> dict[str, Any]:
        """All that :meth:`of_arrays` needs beside the layout."""
        member = self.distribution.member
        found: dict[str, Any] = {
            "sent": self.sent,
            "seed": self.seed,
            "way": self.way,
            "pairs": np.array(self.distribution.pairing.pairs, dtype=np.int64).reshape(-1, 2),
            "alone": np.array(self.distribution.pairing.alone, dtype=np.int64),
            "share": self.distribution.share,
            "constant": member.constant,
            "pi": member.pi,
            "P": member.P,
        }
        if self.means is not None:
            found["means"] = self.means
        for number, edges in enumerate(self.cuts):
            if edges is not None:
                found[f"cuts{number}"] = edges
        return found

    @classmethod
    def of_arrays(cls, layout: Layout, arrays: Mapping[str, Any]) -> Posterior:
        """The posterior that :meth:`arrays` wrote down."""
        names = set(arrays)
        cuts: Cuts = tuple(
            arrays[f"cuts{number}"] if f"cuts{number}" in names else None
            for number in range(min(len(layout.own), OWN_COLUMNS))
        )
        sent, seed = float(arrays["sent"]), int(arrays["seed"])
        way: Any = str(arrays["way"])
        _fits(0 < sent <= 1 and 0 <= seed < 2**63 and way in ("draws", "groups"))
        _fits(all(c is None or (c.ndim == 1 and c.dtype.kind == "f") for c in cuts))
        space = space_of(layout, cuts, sent)
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
        return cls(layout, sent, cuts, distribution, means, way, seed)


def _distribution(arrays: Mapping[str, Any], pairing: Pairing, index: Index) -> JointDistribution:
    """The law of the arrays; compiled loops trust their shapes, so these are looked at here."""
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


def _fits(holds: bool) -> None:
    if not holds:
        raise DataError(
            "The posterior of the saved estimator does not fit its columns",
            hint="Bring back a copy of the file, or train again.",
        )
