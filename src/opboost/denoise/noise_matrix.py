"""The public noise matrix of a column: the chance of each output, given each true state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import ParameterError
from opboost.mechanisms import GapMechanism, Mechanism, NominalMechanism

MAX_NOISE_MATRIX_CELLS = 512
"""The largest grid that is modelled cell by cell."""

MAX_GRID_CELLS = 2048
"""The largest grid that is modelled; above ``MAX_NOISE_MATRIX_CELLS``, in runs of cells."""

MAX_RUNS = 128
"""The most runs into which a large grid is cut, so that its tables do not outgrow the data."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseMatrix:
    """``matrix[x, y]`` is the chance of output y from state x; rows sum to one.

    A column that reports missing values has one more state (missing) and one more output (reported
    missing).  A column that only some rows send has an output for "not sent".
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1):
            raise ParameterError(
                "Each row of a noise matrix must be probabilities that add up to 1."
            )
        object.__setattr__(self, "matrix", matrix)

    @property
    def states(self) -> int:
        """The number of possible true values."""
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        """The number of possible outputs."""
        return int(self.matrix.shape[1])

    @property
    def unsent(self) -> int:
        """The output of rows that did not send the column; -1 if every row sends it.

        It is the last output, and equally likely from any state.
        """
        is_extra = self.outputs > self.states > 1
        is_even = float(np.ptp(self.matrix[:, -1])) < 1e-12
        return self.outputs - 1 if is_extra and is_even else -1

    def posterior(self, pmf: FloatArray) -> FloatArray:
        """Return ``[y, x]`` = P(x | y) if the column has this distribution; rows sum to one.

        >>> NoiseMatrix(np.array([[0.9, 0.1], [0.2, 0.8]])).posterior(np.array([0.5, 0.5])).round(3)
        array([[0.818, 0.182],
               [0.111, 0.889]])
        """
        joint = (np.asarray(pmf)[:, None] * self.matrix).T
        whole = joint.sum(axis=1, keepdims=True)
        even = np.full_like(joint, 1 / self.states)
        return np.asarray(np.divide(joint, whole, out=even, where=whole > 0))

    def sent_by(self, share: float) -> NoiseMatrix:
        """Return the noise matrix of a column that is sent for only this share of rows.

        The other rows have the last output: "missing" if the matrix has it, otherwise a new one.
        """
        if share >= 1:
            return self
        kept = share * self.matrix
        return NoiseMatrix(np.hstack([kept, np.full((self.states, 1), 1 - share)]))


@dataclass(frozen=True, slots=True, eq=False)
class BitNoise:
    """The noise of a column of bits, one per category.

    Given a category, the chance of a row of bits is proportional to ``odds[0]`` if the category's
    bit is unset, and to ``odds[1]`` if it is set.  ``rates`` are the chances that a category's bit
    is set: first in rows of other categories, then in rows of this one.
    """

    states: int
    odds: tuple[float, float]
    rates: tuple[float, float]

    @classmethod
    def of(cls, mechanism: NominalMechanism) -> BitNoise:
        """Read the mechanism's public parameters."""
        return cls(len(mechanism.categories), mechanism.bit_odds(), mechanism.bit_rates())


def noise_matrix_of(
    mechanism: Mechanism | GapMechanism, sent: float = 1.0, *, largest: int = MAX_NOISE_MATRIX_CELLS
) -> NoiseMatrix | None:
    """Return the noise matrix of a mechanism; None if its grid is too large to be inverted.

    ``sent`` is the share of rows for which the column is sent (``Budget.sampled``).  If the
    column has gaps, the last state is "missing" and the last output is "reported missing or not
    sent".

    >>> import opboost as op
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> (
    ...     noise_matrix_of(m).matrix.shape,
    ...     noise_matrix_of(op.WithMissing(m, 1.0, constant=5)).matrix.shape,
    ... )
    ((10, 10), (11, 11))
    """
    plain = mechanism.mechanism if isinstance(mechanism, GapMechanism) else mechanism
    if plain.domain.size > largest or plain.outputs.size > largest:
        return None
    return _with_gaps(mechanism, plain.transition_matrix(), 1, sent)


def runs_matrix_of(
    mechanism: Mechanism | GapMechanism, sent: float = 1.0, *, largest: int = MAX_GRID_CELLS
) -> NoiseMatrix | None:
    """Return the noise matrix; grids above 512 cells are cut into runs of :func:`run_length` cells.

    States and outputs are then runs, whose cells are assumed to be equally likely.  Memory: one row
    of the grid's matrix.

    >>> import opboost as op
    >>> runs_matrix_of(op.ClampMap(op.Domain(1, 2000), epsilon=0.01)).matrix.shape
    (125, 125)
    """
    plain = mechanism.mechanism if isinstance(mechanism, GapMechanism) else mechanism
    length = run_length(plain)
    if length == 1 or max(plain.domain.size, plain.outputs.size) > largest:
        return noise_matrix_of(mechanism, sent)
    rows = np.zeros((-(-plain.domain.size // length), -(-plain.outputs.size // length)))
    for cell in range(plain.domain.size):
        rows[cell // length] += in_runs(plain.pmf(plain.domain.L + cell), length)
    return _with_gaps(mechanism, rows, length, sent)


def run_length(mechanism: Mechanism) -> int:
    """Return how many cells form one state: one, except on grids above 512 cells."""
    cells = max(mechanism.domain.size, mechanism.outputs.size)
    return 1 if cells <= MAX_NOISE_MATRIX_CELLS else -(-cells // MAX_RUNS)


def in_runs(chances: FloatArray, length: int) -> FloatArray:
    """Add up the chances of outputs within each run."""
    return np.asarray(np.add.reduceat(chances, np.arange(0, len(chances), length)))


def _with_gaps(
    mechanism: Mechanism | GapMechanism, matrix: FloatArray, length: int, sent: float
) -> NoiseMatrix:
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    if not isinstance(mechanism, GapMechanism):
        return NoiseMatrix(matrix).sent_by(sent)
    of_present, of_gap = mechanism.report_chances()
    values = np.vstack(
        [(1 - of_present) * matrix, (1 - of_gap) * in_runs(mechanism.gap_pmf(), length)]
    )
    reported = np.append(np.full(len(matrix), of_present), of_gap)
    whole = np.column_stack([sent * values, sent * reported + (1 - sent)])
    return NoiseMatrix(whole)


def outputs_of(mechanism: Mechanism, values: Any, missing: Any = None) -> np.ndarray[Any, Any]:
    """Return released values as positions among the matrix's outputs; gaps get the last one."""
    grid = mechanism.outputs
    codes = np.asarray(values).astype(np.int64) - grid.L
    if missing is not None:
        codes = np.where(missing, grid.size, codes)
    return codes.astype(np.uint8 if grid.size < 256 else np.uint16)
