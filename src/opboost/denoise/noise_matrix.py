"""The public channel of a column: how likely each output is, from each state that may be true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import ParameterError
from opboost.mechanisms import Mechanism, UnaryEncoding, WithMissing

MAX_NOISE_MATRIX_CELLS = 512
"""Larger channels are not inverted: their tables would outgrow the data."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseMatrix:
    """``matrix[x, y]`` is the chance of output y from state x; rows sum to one.

    A column whose gaps are flagged has one state more (missing) and one output more (reported
    missing); a column that is sent for some rows only has an output for "not sent".
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1):
            raise ParameterError("A channel's rows must be chances that add up to one.")
        object.__setattr__(self, "matrix", matrix)

    @property
    def states(self) -> int:
        """How many values the column may truly have."""
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        """How many values may come out."""
        return int(self.matrix.shape[1])

    def posterior(self, pmf: FloatArray) -> FloatArray:
        """``[y, x]`` is P(x | y) where the column has this law; rows sum to one.

        >>> NoiseMatrix(np.array([[0.9, 0.1], [0.2, 0.8]])).posterior(np.array([0.5, 0.5])).round(3)
        array([[0.818, 0.182],
               [0.111, 0.889]])
        """
        joint = (np.asarray(pmf)[:, None] * self.matrix).T
        whole = joint.sum(axis=1, keepdims=True)
        even = np.full_like(joint, 1 / self.states)
        return np.asarray(np.divide(joint, whole, out=even, where=whole > 0))

    def sent_by(self, share: float) -> NoiseMatrix:
        """The channel of a column that only this share of rows sends, with one output for the rest.

        The last output is "missing" where the channel has one, and a new one where it has not.
        """
        if share >= 1:
            return self
        kept = share * self.matrix
        return NoiseMatrix(np.hstack([kept, np.full((self.states, 1), 1 - share)]))


@dataclass(frozen=True, slots=True, eq=False)
class BitNoise:
    """The channel of unary bits: what a set and an unset bit say for its own category.

    ``odds`` holds P(bit | own) / P(bit | another), for an unset bit and for a set one.
    """

    states: int
    odds: tuple[float, float]

    @classmethod
    def of(cls, mechanism: UnaryEncoding) -> BitNoise:
        """From the mechanism's ``bit_channel``."""
        (quiet, loud), (miss, hit) = mechanism.bit_channel()
        return cls(len(mechanism.categories), (float(miss / quiet), float(hit / loud)))


def noise_matrix_of(
    mechanism: Mechanism | WithMissing, sent: float = 1.0, *, largest: int = MAX_NOISE_MATRIX_CELLS
) -> NoiseMatrix | None:
    """The channel of a mechanism on a grid; None where it is too large to be inverted.

    ``sent`` is the share of rows that send the column (``Budget.sampled``).  With a flag for gaps
    the last state is "missing" and the last output is "reported missing or not sent".

    >>> import opboost as op
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> (
    ...     noise_matrix_of(m).matrix.shape,
    ...     noise_matrix_of(op.WithMissing(m, 1.0, constant=5)).matrix.shape,
    ... )
    ((10, 10), (11, 11))
    """
    plain = mechanism.mechanism if isinstance(mechanism, WithMissing) else mechanism
    if plain.domain.size > largest or plain.outputs.size > largest:
        return None
    matrix = plain.transition_matrix()
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    if not isinstance(mechanism, WithMissing):
        return NoiseMatrix(matrix).sent_by(sent)
    lie, bits = mechanism.integer_flag()
    flip = lie / (1 << bits)
    constant = mechanism.constant - plain.domain.L
    values = np.vstack([(1 - flip) * matrix, flip * matrix[constant]])
    reported = np.append(np.full(len(matrix), flip), 1 - flip)
    whole = np.column_stack([sent * values, sent * reported + (1 - sent)])
    return NoiseMatrix(whole)


def outputs_of(mechanism: Mechanism, values: Any, missing: Any = None) -> np.ndarray[Any, Any]:
    """Released values as positions among the channel's outputs; gaps take the last one."""
    grid = mechanism.outputs
    codes = np.asarray(values).astype(np.int64) - grid.L
    if missing is not None:
        codes = np.where(missing, grid.size, codes)
    return codes.astype(np.uint8 if grid.size < 256 else np.uint16)
