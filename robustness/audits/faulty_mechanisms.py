"""Mechanisms broken on purpose: each makes a sound one's promise but draws differently."""

import threading

import numpy as np

import opboost as op

GRID = op.Domain(1, 10)
WIDE = op.Domain(1, 100)


def broken(draw, epsilon=0.64):
    """Return a Clamp-map that draws by ``draw(m, x, rng)``, where ``m`` is a sound Clamp-map."""

    class Broken(op.ClampMap):
        def sample(self, x, rng=None, **how):
            return draw(op.ClampMap(self.domain, self.epsilon), np.asarray(x), rng)

    return Broken(GRID, epsilon)


def next_column(m, x, rng):
    """Draw with an index that is off by one in one row of the table."""
    drawn = m.sample(x, rng)
    return np.where(x == 4, np.minimum(drawn + 1, m.domain.R), drawn)


def narrow_table(m, x, rng):
    """Draw with cumulative thresholds of eight bits: rare outputs vanish from some rows."""
    coarse = np.round(np.cumsum(m.transition_matrix(), axis=1) * 256)
    words = np.random.default_rng().integers(0, 256, x.shape)
    return m.domain.L + (coarse[x - m.domain.L] <= words[..., None]).sum(axis=-1)


def redrawn(m, x, rng):
    """Redraw values beyond the grid instead of clamping them: the ends lose twice as much."""
    x, noise = x.astype(np.int64), op.DiscreteLaplace(m.epsilon)
    out = noise.sample(x, rng)
    while (again := (out < m.domain.L) | (out > m.domain.R)).any():
        out[again] = noise.sample(x[again], rng)
    return out


def one_in_a_hundred(m, x, rng):
    """Repeat the previous row's draw in one row of a hundred."""
    drawn = m.sample(x, rng)
    repeated = np.flatnonzero(np.random.default_rng().random(len(drawn) - 1) < 0.01) + 1
    drawn[repeated] = drawn[repeated - 1]
    return drawn


def every_piece(m, x, rng):
    """Fill the keystream's buffer once and read it for every piece of a column."""
    once = m.sample(x[:16_384], rng)
    return np.tile(once, -(-len(x) // 16_384))[: len(x)]


_shared = np.random.Generator(np.random.PCG64())
_own = threading.local()


def kept_over_fork(m, x, rng):
    """Draw from a module-level generator: a forked child continues its parent's stream."""
    return m.sample(x, op.SeededRng(int(_shared.integers(0, 2**63))))


def same_in_each_thread(m, x, rng):
    """Draw from one generator per thread, all with the same seed."""
    if not hasattr(_own, "stream"):
        _own.stream = np.random.default_rng(7)
    return m.sample(x, op.SeededRng(int(_own.stream.integers(0, 2**63))))


class FloatNoise(op.DiscreteLaplace):
    """The textbook inverse of a uniform 16-bit float, which cannot reach some integers."""

    def sample(self, x, rng=None, **how):
        generator = np.random.default_rng()
        x = np.asarray(x)
        uniform = generator.integers(1, 2**16 + 1, x.shape) / 2**16
        sign = generator.integers(0, 2, x.shape) * 2 - 1
        return x + np.rint(sign * -np.log(uniform) / self.epsilon).astype(np.int64)


class TrueFlag(op.WithMissing):
    """A mechanism that reports truthfully whether a value is missing."""

    def sample(self, x, missing, rng=None):
        return super().sample(x, missing, rng)[0], np.asarray(missing)


class OwnBitSet(op.UnaryEncoding):
    """A mechanism that always sets the bit of the row's own category."""

    def sample_positions(self, position, rng=None):
        bits = super().sample_positions(position, rng)
        bits[np.arange(len(bits)), position] = 1
        return bits


class HalfForgotten(op.UnaryEncoding):
    """A mechanism whose level is for one bit, although two bits change."""

    def sample_positions(self, position, rng=None):
        return op.UnaryEncoding(self.categories, 2 * self.epsilon, self.kind).sample_positions(
            position, rng
        )


class LargestShown(op.Record):
    """A record mechanism that always releases the column with the largest value."""

    def draw(self, value, count):
        drawn, _ = super().draw(value, count)
        chosen = np.zeros((count, len(value)), dtype=bool)
        chosen[:, int(np.argmax(value))] = True
        return drawn, chosen


class OneNoiseForAllColumns(op.Record):
    """A record mechanism whose columns share one draw per row."""

    def draw(self, value, count):
        drawn, chosen = super().draw(value, count)
        return [drawn[0]] * len(drawn), chosen


def _pair_of_columns(kind, budget):
    m = op.ClampMap(GRID, 0.64)
    return kind({"age": m, "pay": m}, budget)


BROKEN = {
    "level twice as large": broken(lambda m, x, rng: m.scaled(2).sample(x, rng)),
    "level a hundredth larger": broken(lambda m, x, rng: m.scaled(1.01).sample(x, rng)),
    "two rows of the table exchanged": broken(
        lambda m, x, rng: m.sample(np.where(x == 1, 5, np.where(x == 5, 1, x)), rng)
    ),
    "an index off by one in one row": broken(next_column),
    "a table of eight bits": broken(narrow_table, 1.28),
    "drawn again instead of clamped": broken(redrawn),
    "float noise with gaps": FloatNoise(0.05),
    "missing flag told truthfully": TrueFlag(op.ClampMap(GRID, 0.64), 1.0, 5),
    "own bit always set": OwnBitSet(["north", "south", "east"], 1.0),
    "level of a bit for the whole category": HalfForgotten(["north", "south", "east"], 1.0, "sue"),
    "the largest column is the one released": _pair_of_columns(LargestShown, op.Budget.sampled(1)),
    "one draw for two rows": broken(
        lambda m, x, rng: np.repeat(m.sample(x[::2], rng), 2)[: len(x)]
    ),
    "one row in a hundred repeats the last": broken(one_in_a_hundred),
    "one buffer of noise for every piece": broken(every_piece),
    "one draw for all columns of a row": _pair_of_columns(
        OneNoiseForAllColumns, op.Budget.sampled(2)
    ),
    "every call begins the same stream": broken(lambda m, x, rng: m.sample(x, op.SeededRng(7))),
    "a forked child repeats its parent": broken(kept_over_fork),
    "threads repeat each other": broken(same_in_each_thread),
}
"""The mechanisms by their fault."""
