"""The base class of mechanisms on a grid: it samples, publishes and certifies one distribution."""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from opboost._typing import ArrayLike, FloatArray, IntArray, ObjectArray
from opboost.distributions import Distribution, IntegerTable, loss
from opboost.errors import DataError, ParameterError
from opboost.grid import Domain
from opboost.mechanisms.certificate import Certificate
from opboost.mechanisms.order_kept import exact_gamma
from opboost.promises import Guarantee
from opboost.randomness.streams import Rng, default_rng

MAX_TABLE_CELLS = 256
"""Grids up to this size have an integer table, larger ones a closed form."""

MAX_TABLE_BITS = 2**29
"""If a table would take more bits than this (64 MiB), the closed form is used as well."""

MAX_MATRIX_CELLS = 4096
"""``transition_matrix`` refuses larger grids."""

MIN_THREADED_VALUES = 1_000_000
"""From this many values on, several threads draw a column."""

CHUNK_VALUES = 16_384
"""The number of values drawn at a time, so that words and outputs stay in the cache."""

GammaKind = Literal["exact", "bound", "as_printed"]
Sampler = Literal["auto", "alias", "inverse", "digits"]


def fits_table(cells: int, epsilon: float) -> bool:
    """Return whether a distribution is kept as a table; this depends on public parameters only."""
    bits = epsilon * (cells - 1) * 1.4427 + 192
    return cells <= MAX_TABLE_CELLS and cells * cells * bits <= MAX_TABLE_BITS


class Mechanism(ABC):
    """A way to add noise to grid values: a frozen value with a promise and an exact distribution.

    Subclasses say what they promise (:meth:`guarantee`) and which distribution keeps the promise
    (``_build_distribution``); this class does the rest.
    """

    __slots__ = ()

    domain: Domain

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return the promise, which has a proof (docs/proofs)."""

    @abstractmethod
    def _build_distribution(self) -> Distribution:
        """Return the exact distribution; it is built once for equal mechanisms."""

    @abstractmethod
    def on(self, domain: Domain) -> Self:
        """Return the same mechanism on another grid."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with all levels multiplied by ``factor``."""

    def landmarks(self) -> tuple[int, ...]:
        """Return cells at which the distribution changes its form: the first and last borders."""
        return ()

    def nominal_epsilon(self) -> float | None:
        """Return the mechanism's level if it was given a single one, else None.

        A nominal column next to columns with a distance gets unary encoding at this level.
        """
        level: float | None = getattr(self, "epsilon", None)
        return level

    def sample(
        self,
        x: ArrayLike,
        rng: Rng | None = None,
        *,
        outside: Literal["raise", "clamp"] = "raise",
        sampler: Sampler = "auto",
        threads: int | None = None,
    ) -> IntArray:
        """Return one noisy value for each grid value: integers in, integers out, same shape.

        Args:
            x: Integers on the grid.
            rng: ``None`` is cryptographic; ``SeededRng(7)`` is repeatable and protects nothing.
            outside: What to do with a value beyond the grid.  ``"clamp"`` treats it as the nearest
                end, which the promise covers.
            sampler: How to draw; every sampler draws from the same distribution.  Tables have
                ``"alias"`` (one word per value) and ``"inverse"`` (slow, a wide integer per value);
                closed forms have ``"digits"``.
            threads: How many threads draw; by default one, or one per processor for columns of a
                million values or more.  Seeded noise uses one thread.

        >>> import opboost as op
        >>> m = op.GlobalMap(op.Domain(1, 10), epsilon=0.64)
        >>> m.sample([[3, 7], [1, 10]], rng=op.SeededRng(7)).shape
        (2, 2)
        """
        values = checked_integers(x)
        self._check_inside(values, outside)
        distribution = distribution_of(self)
        _check_sampler(sampler, distribution)
        generator = default_rng(rng)
        flat = np.clip(values, self.domain.L, self.domain.R).reshape(-1)
        if not isinstance(distribution, IntegerTable):
            flat = flat.astype(np.int64, copy=False)  # so that sums and differences do not overflow
        out = np.empty(
            flat.shape, dtype=np.promote_types(values.dtype, distribution.outputs.dtype())
        )

        def draw(begin: int, end: int) -> None:
            source = generator.open()
            for start in range(begin, end, CHUNK_VALUES):
                piece = flat[start : min(start + CHUNK_VALUES, end)]
                if sampler == "inverse":
                    assert isinstance(distribution, IntegerTable)
                    out[start : start + len(piece)] = distribution.draw_inverse(
                        piece, source, start
                    )
                else:
                    out[start : start + len(piece)] = distribution.draw(piece, source, start)

        _in_threads(draw, flat.size, _thread_count(threads, flat.size, generator))
        return out.reshape(values.shape)

    def _check_inside(self, values: IntArray, outside: str) -> None:
        if outside not in ("raise", "clamp"):
            raise ParameterError(f"outside must be 'raise' or 'clamp'; got {outside!r}.")
        if outside == "clamp" or not values.size:
            return
        beyond = (values < self.domain.L) | (values > self.domain.R)
        if beyond.any():
            first = int(np.argmax(beyond))
            raise DataError(
                f"{int(beyond.sum())} of {values.size} values lie outside "
                f"the grid {self.domain.L}..{self.domain.R}",
                detail=f"first: {values.reshape(-1)[first]} at position {first}",
                hint="Map raw values onto the grid first (op.Desensitizer does), "
                "or pass outside='clamp'.",
                row=first,
            )

    def pmf(self, x: int) -> FloatArray:
        """Return the probabilities of all outputs from ``x``, in the order of ``outputs``."""
        self._check_matrix(rows=1)
        return distribution_of(self).mass(self.domain.clamp(x))

    @property
    def outputs(self) -> Domain:
        """The range that holds every output: the grid, unless the mechanism says otherwise."""
        return self.domain

    def transition_matrix(self) -> FloatArray:
        """Return the matrix whose ``[x, y]`` is the probability of output y from x.

        Both are counted from the lower end.  Cost: O(cells²) memory; grids above 4,096 cells are
        refused.
        """
        self._check_matrix()
        distribution = distribution_of(self)
        return np.array([distribution.mass(x) for x in range(self.domain.L, self.domain.R + 1)])

    def _check_matrix(self, rows: int | None = None) -> None:
        entries = (rows or self.domain.size) * self.outputs.size
        if self.domain.size > MAX_MATRIX_CELLS or entries > MAX_MATRIX_CELLS**2:
            raise ParameterError(
                f"A distribution from {self.domain.size} to {self.outputs.size} cells is too large "
                f"for a matrix (at most {MAX_MATRIX_CELLS} cells). loss(x, y), exact_epsilon() and "
                "guarantee() work on grids of any size."
            )

    def integer_table(self) -> tuple[ObjectArray, int]:
        """Return the distribution as integers: ``weights`` whose rows sum to 2**bits, and ``bits``.

        >>> import opboost as op
        >>> weights, bits = op.ClampMap(op.Domain(1, 10), epsilon=0.64).integer_table()
        >>> set(weights.sum(axis=1)) == {2**bits}
        True
        """
        distribution = distribution_of(self)
        if not isinstance(distribution, IntegerTable):
            raise ParameterError(
                f"The distribution on {self.domain.size} cells has a closed form and no table."
            )
        return np.array(distribution.weights, dtype=object), distribution.bits

    def loss(self, x: int, y: int) -> float:
        """Return the exact worst log-ratio for this pair over all outputs, rounded up to a float.

        It never exceeds ``guarantee().bound(x, y)``.  A value outside the grid counts as the
        nearest end of the grid.
        """
        return loss(distribution_of(self), self.domain.clamp(x), self.domain.clamp(y))

    def exact_epsilon(self) -> float:
        """Return the worst loss per unit of distance over all pairs, rounded up.

        The loss of a pair is at most the sum of the losses of the steps between its values, so the
        worst pair is a pair of neighbours.
        """
        return distribution_of(self).step_loss()

    def gamma(self, distance: int, kind: GammaKind = "exact") -> float:
        """Return the smallest chance that two values at this distance keep their order.

        ``"exact"`` is the minimum over all pairs at the distance; ``"bound"`` is a theorem's lower
        bound, which never exceeds it; ``"as_printed"`` is what the paper's table shows, errors
        included (docs/errata.md).  Ties count as lost order.

        >>> import opboost as op
        >>> m = op.GlobalMap(op.Domain(1, 100), epsilon=0.1)
        >>> round(m.gamma(5), 4), round(m.gamma(5, "bound"), 4)
        (0.5133, 0.5098)
        """
        try:
            distance = operator.index(distance)
        except TypeError:
            raise ParameterError(f"distance must be an integer; got {distance!r}.") from None
        if not 1 <= distance <= self.domain.span:
            raise ParameterError(
                f"distance must lie between 1 and {self.domain.span}; got {distance!r}."
            )
        if kind == "exact":
            return exact_gamma(self.transition_matrix(), distance)
        if kind == "bound":
            return self._gamma_bound(distance)
        if kind == "as_printed":
            return self._gamma_as_printed(distance)
        raise ParameterError(f"kind must be 'exact', 'bound' or 'as_printed'; got {kind!r}.")

    def _gamma_bound(self, distance: int) -> float:
        raise ParameterError(
            f"No theorem bounds the order that {type(self).__name__} keeps; use kind='exact'."
        )

    def _gamma_as_printed(self, distance: int) -> float:
        raise ParameterError(
            f"The paper prints nothing about {type(self).__name__}; use kind='exact'."
        )

    def certificate(self) -> Certificate:
        """Return the promise and the exact loss, distance by distance."""
        return Certificate.of(self)


def _thread_count(asked: int | None, size: int, rng: Rng) -> int:
    if not rng.secure:
        return 1  # one stream, so that the same call gives the same answer
    if asked is None:
        return (os.cpu_count() or 1) if size >= MIN_THREADED_VALUES else 1
    if asked < 1:
        raise ParameterError(f"threads must be 1 or more; got {asked!r}.")
    return asked


def _in_threads(draw: Callable[[int, int], None], size: int, threads: int) -> None:
    """Divide 0..size among the threads, at borders of chunks."""
    if threads == 1:
        draw(0, size)
        return
    share = -(-size // (threads * CHUNK_VALUES)) * CHUNK_VALUES
    begins = range(0, size, max(share, CHUNK_VALUES))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda begin: draw(begin, min(begin + share, size)), begins))


def checked_integers(x: ArrayLike) -> IntArray:
    """Return the values as an array of signed or unsigned integers; refuse anything else."""
    try:
        values = np.asarray(x)
    except ValueError:
        raise DataError("sample takes an array of integers; its rows differ in length") from None
    if values.size == 0 and values.dtype.kind == "f":
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise DataError(
            f"sample takes integers on the grid; got {values.dtype}",
            hint="Map raw values onto the grid first: op.Desensitizer does, "
            "or NumericMapping(domain, bounds).to_grid(values).",
        )
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**63 - 1)).astype(np.int64)
    return values


def _check_sampler(sampler: str, distribution: Distribution) -> None:
    known = (
        ("auto", "alias", "inverse")
        if isinstance(distribution, IntegerTable)
        else ("auto", "digits")
    )
    if sampler not in known:
        raise ParameterError(
            f"sampler must be one of {', '.join(map(repr, known))} for this distribution; "
            f"got {sampler!r}. All samplers draw from the same distribution."
        )


@lru_cache(maxsize=64)
def distribution_of(mechanism: Mechanism) -> Distribution:
    """Return the distribution of a mechanism, built once for equal mechanisms."""
    return mechanism._build_distribution()
