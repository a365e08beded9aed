"""Pair columns, so that a class need not treat its most dependent columns as independent.

Two columns with noise matrices M and N form one column of pairs of states with the noise matrix
M ⊗ N.  A pass over the rows then looks up half as many factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.denoise.encoded_rows import Codes, Line, Space
from opboost.denoise.label_groups import Groups
from opboost.denoise.noise_matrix import NoiseMatrix

MAX_PAIR_CELLS = 128
"""The most outputs of a pair: with more, each would occur in too few rows."""

MIN_ROWS_PER_OUTPUT = 4
"""The fewest rows that a group must have for each output of a pair."""

MAX_ROWS_READ = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """Which columns are paired; the others stay single and follow the pairs."""

    space: Space
    pairs: tuple[tuple[int, int], ...]
    alone: tuple[int, ...]

    def paired_space(self) -> Space:
        """Return the columns of the models: the pairs, then the columns that stay single."""
        old = self.space
        joint = [_product(old.channels[a], old.channels[b]) for a, b in self.pairs]
        return replace(
            old,
            channels=(*joint, *(old.channels[j] for j in self.alone)),
            lines=(
                *(_lines(old, a, b) for a, b in self.pairs),
                *(old.lines[j] for j in self.alone),
            ),
        )

    def paired(self, codes: Codes) -> Codes:
        """Convert codes of columns to codes of pairs."""
        if not self.pairs:
            return codes
        width = len(self.pairs) + len(self.alone)
        own = codes[:, len(self.space.channels) :]
        out = np.empty((len(codes), width + own.shape[1]), dtype=codes.dtype)
        for k, (a, b) in enumerate(self.pairs):
            out[:, k] = codes[:, a] * codes.dtype.type(self.space.channels[b].outputs) + codes[:, b]
        out[:, len(self.pairs) : width] = codes[:, list(self.alone)]
        out[:, width:] = own
        return out

    def parted(self, states: Codes) -> Codes:
        """Convert states of pairs to states of columns."""
        if not self.pairs:
            return states
        out = np.empty((len(states), len(self.space.channels)), dtype=states.dtype)
        for k, (a, b) in enumerate(self.pairs):
            out[:, a], out[:, b] = np.divmod(states[:, k], self.space.channels[b].states)
        out[:, list(self.alone)] = states[:, len(self.pairs) :]
        return out


def pairing(space: Space, groups: Groups, codes: Codes) -> Pairing:
    """Pair the columns whose outputs depend most on each other within groups.

    All columns stay single in two cases.  If the groups are bins of a target, each of the many
    groups would have to learn the distributions of the pairs.  If some rows do not send a column,
    few rows send both columns of a pair.
    """
    count = len(space.channels)
    everyone = tuple(range(count))
    if groups.ordered or count < 2 or any(c.unsent >= 0 for c in space.channels):
        return Pairing(space, (), everyone)
    size = float(np.median(np.bincount(groups.of, minlength=groups.count)))
    strength = dependence(codes[:MAX_ROWS_READ, :count], groups.of[:MAX_ROWS_READ], groups.count)
    for a in range(count):
        for b in range(count):
            outputs = space.channels[a].outputs * space.channels[b].outputs
            few = outputs > min(MAX_PAIR_CELLS, size / MIN_ROWS_PER_OUTPUT)
            if a == b or few or not (_ordered(space.lines[a]) and _ordered(space.lines[b])):
                strength[a, b] = -1.0
    pairs: list[tuple[int, int]] = []
    while strength.max() >= 0:
        a, b = map(int, np.unravel_index(int(strength.argmax()), strength.shape))
        pairs.append((a, b))
        strength[[a, b]] = -1.0
        strength[:, [a, b]] = -1.0
    taken = {j for pair in pairs for j in pair}
    return Pairing(space, tuple(pairs), tuple(j for j in everyone if j not in taken))


def dependence(codes: Codes, group: IntArray, groups: int) -> FloatArray:
    """Return the absolute correlation of every two columns, within groups."""
    values = codes.astype(np.float64)
    size = np.maximum(np.bincount(group, minlength=groups), 1)
    for j in range(values.shape[1]):
        mean = np.bincount(group, values[:, j], minlength=groups) / size
        values[:, j] -= mean[group]
    spread = np.sqrt((values**2).sum(axis=0))
    return np.asarray(np.abs(values.T @ values) / np.maximum(np.outer(spread, spread), 1e-9))


def _product(first: NoiseMatrix, second: NoiseMatrix) -> NoiseMatrix:
    return NoiseMatrix(np.kron(first.matrix, second.matrix).astype(np.float64))


def _ordered(line: Line) -> bool:
    return isinstance(line, int) and line > 1


def _lines(space: Space, a: int, b: int) -> Line:
    first, second = space.lines[a], space.lines[b]
    assert isinstance(first, int)
    assert isinstance(second, int)
    return (first, space.channels[a].states), (second, space.channels[b].states)
