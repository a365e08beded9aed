"""Mechanisms broken on purpose: each has the promise of a sound one and draws otherwise."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

import opboost as op

GRID = op.Domain(1, 10)
WIDE = op.Domain(1, 100)


def rebuilt(m):
    """The sound mechanism of the same parameters."""
    return op.ClampMap(m.domain, m.epsilon)


class TwiceTheLevel(op.ClampMap):
    """Noise for epsilon where epsilon/2 was promised."""

    def sample(self, x, rng=None, **how):
        return rebuilt(self).scaled(2).sample(x, rng, **how)


class AHundredthMore(op.ClampMap):
    def sample(self, x, rng=None, **how):
        return rebuilt(self).scaled(1.01).sample(x, rng, **how)


class SwappedRow(op.ClampMap):
    """The rows of two cells of the table are exchanged."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x)
        return rebuilt(self).sample(np.where(x == 1, 5, np.where(x == 5, 1, x)), rng, **how)


class NextColumn(op.ClampMap):
    """An index that is off by one in one row of the table."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x)
        drawn = rebuilt(self).sample(x, rng, **how)
        return np.where(x == 4, np.minimum(drawn + 1, self.domain.R), drawn)


class NarrowTable(op.ClampMap):
    """Cumulative thresholds of eight bits: rare outputs vanish from some rows."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x)
        coarse = np.round(np.cumsum(self.transition_matrix(), axis=1) * 256)
        words = np.random.default_rng().integers(0, 256, x.shape)
        out = np.empty_like(x)
        for cell in np.unique(x):
            rows = x == cell
            row = coarse[int(cell) - self.domain.L]
            out[rows] = self.domain.L + np.searchsorted(row, words[rows], side="right")
        return out


class Redrawn(op.ClampMap):
    """Draws beyond the grid are drawn again instead of clamped: the ends lose twice as much."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x, dtype=np.int64)
        noise = op.DiscreteLaplace(self.epsilon)
        out = noise.sample(x, rng)
        for _ in range(10_000):
            again = (out < self.domain.L) | (out > self.domain.R)
            if not again.any():
                break
            out[again] = noise.sample(x[again], rng)
        return out


class FloatNoise(op.DiscreteLaplace):
    """The textbook's inverse of a uniform float of 16 bits: some integers cannot be reached."""

    def sample(self, x, rng=None, **how):
        generator = np.random.default_rng()
        x = np.asarray(x)
        uniform = generator.integers(1, 2**16 + 1, x.shape) / 2**16
        sign = generator.integers(0, 2, x.shape) * 2 - 1
        return x + np.rint(sign * -np.log(uniform) / self.epsilon).astype(np.int64)


class NoiseForTwoRows(op.ClampMap):
    """Each draw serves two neighbouring rows."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x)
        return np.repeat(rebuilt(self).sample(x[::2], rng, **how), 2)[: len(x)]


class NoiseForEveryPiece(op.ClampMap):
    """The keystream's buffer is filled once and read for every piece of a column."""

    def sample(self, x, rng=None, **how):
        x = np.asarray(x)
        once = rebuilt(self).sample(x[:16_384], rng, **how)
        return np.tile(once, -(-len(x) // 16_384))[: len(x)]


class StuckSeed(op.ClampMap):
    """Every call begins the same stream."""

    def sample(self, x, rng=None, **how):
        return rebuilt(self).sample(x, op.SeededRng(7), **how)


_shared = np.random.Generator(np.random.PCG64())
_own = threading.local()


class KeptOverFork(op.ClampMap):
    """A generator of the module: a forked child goes on with its parent's stream."""

    def sample(self, x, rng=None, **how):
        seed = int(_shared.integers(0, 2**63))
        return rebuilt(self).sample(x, op.SeededRng(seed), **how)


class SameInEachThread(op.ClampMap):
    """A generator a thread, all seeded alike."""

    def sample(self, x, rng=None, **how):
        if not hasattr(_own, "stream"):
            _own.stream = np.random.default_rng(7)
        return rebuilt(self).sample(x, op.SeededRng(int(_own.stream.integers(0, 2**63))), **how)


class OneInAHundred(op.ClampMap):
    """One row in a hundred repeats the draw of the row before it."""

    def sample(self, x, rng=None, **how):
        drawn = rebuilt(self).sample(x, rng, **how)
        repeated = np.flatnonzero(np.random.default_rng().random(len(drawn) - 1) < 0.01) + 1
        drawn[repeated] = drawn[repeated - 1]
        return drawn


class TrueFlag(op.WithMissing):
    """Whether a value is missing is told as it is."""

    def sample(self, x, missing, rng=None):
        values, _ = op.WithMissing(self.mechanism, self.eps_missing, self.constant).sample(
            x, missing, rng
        )
        return values, np.asarray(missing)


class OwnBitSet(op.UnaryEncoding):
    """The bit of the row's own category is always set."""

    def sample_positions(self, position, rng=None):
        sound = op.UnaryEncoding(self.categories, self.epsilon, self.kind)
        bits = sound.sample_positions(position, rng)
        bits[np.arange(len(bits)), position] = 1
        return bits


class HalfForgotten(op.UnaryEncoding):
    """The level is meant for one bit, and two bits change."""

    def sample_positions(self, position, rng=None):
        return op.UnaryEncoding(self.categories, 2 * self.epsilon, self.kind).sample_positions(
            position, rng
        )


@dataclass(frozen=True)
class LargestShown(op.Record):
    """Which column a row releases depends on the values: the largest is shown."""

    def draw(self, value, count):
        drawn, _ = super().draw(value, count)
        chosen = np.zeros((count, len(value)), dtype=bool)
        chosen[:, int(np.argmax(value))] = True
        return drawn, chosen


class OneNoiseForAllColumns(op.Record):
    """Columns of a row share their draw."""

    def draw(self, value, count):
        drawn, chosen = super().draw(value, count)
        return [drawn[0]] * len(drawn), chosen


def _pair_of_columns(kind, budget):
    m = op.ClampMap(GRID, 0.64)
    return kind({"age": m, "pay": m}, budget)


BROKEN = {
    "level twice as large": TwiceTheLevel(GRID, 0.64),
    "level a hundredth larger": AHundredthMore(GRID, 0.64),
    "two rows of the table exchanged": SwappedRow(GRID, 0.64),
    "an index off by one in one row": NextColumn(GRID, 0.64),
    "a table of eight bits": NarrowTable(GRID, 1.28),
    "drawn again instead of clamped": Redrawn(GRID, 0.64),
    "float noise with gaps": FloatNoise(0.05),
    "missing flag told truthfully": TrueFlag(op.ClampMap(GRID, 0.64), 1.0, 5),
    "own bit always set": OwnBitSet(["north", "south", "east"], 1.0),
    "level of a bit for the whole category": HalfForgotten(["north", "south", "east"], 1.0, "sue"),
    "the largest column is the one released": _pair_of_columns(LargestShown, op.Budget.sampled(1)),
    "one draw for two rows": NoiseForTwoRows(GRID, 0.64),
    "one row in a hundred repeats the last": OneInAHundred(GRID, 0.64),
    "one buffer of noise for every piece": NoiseForEveryPiece(GRID, 0.64),
    "one draw for all columns of a row": _pair_of_columns(
        OneNoiseForAllColumns, op.Budget.sampled(2)
    ),
    "every call begins the same stream": StuckSeed(GRID, 0.64),
    "a forked child repeats its parent": KeptOverFork(GRID, 0.64),
    "threads repeat each other": SameInEachThread(GRID, 0.64),
}
"""What is broken, by what is wrong with it."""
