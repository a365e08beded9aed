"""Checks that can be run on real mechanisms and on broken ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.stats import chi2

from opboost.distributions.alias_kernel import THRESHOLD_BITS
from opboost.randomness.exact import exp_bounds

_BITS = 256


def assert_rows_sum_to_a_power_of_two(weights, bits):
    for row in weights:
        assert sum(row) == 2**bits
        assert min(row) >= 0


def assert_promise_kept(weights, guarantee, lower):
    """Check ``W[x][o] <= e**bound · W[y][o]`` for every pair and output, in integers."""
    for i, one in enumerate(weights):
        for j, other in enumerate(weights):
            bound = guarantee.bound(lower + i, lower + j)
            if i == j or math.isinf(bound):
                continue
            ceiling = exp_bounds(Fraction(bound), _BITS)[0]
            for a, b in zip(one, other, strict=True):
                assert a << _BITS <= ceiling * b, f"pair {lower + i}, {lower + j}"


def assert_alias_table_is_the_distribution(distribution):
    """Check that the sampled table gives each output exactly its integer weight."""
    alias = distribution.alias
    share = 1 << (distribution.bits - alias.column_bits)
    drop = distribution.bits - alias.column_bits - THRESHOLD_BITS
    columns = 1 << alias.column_bits
    for i, row in enumerate(distribution.weights):
        mass = [0] * columns
        for column in range(columns):
            threshold, other = alias.thresholds[i][column], alias.aliases[i][column]
            assert 0 <= threshold <= share
            mass[column] += threshold
            mass[other] += share - threshold
            entry = int(alias.packed[i * columns + column])
            assert entry & 0xFFFF == other
            assert entry >> 16 == min(threshold >> drop, 2**THRESHOLD_BITS - 1)
        assert mass[: len(row)] == list(row)
        assert not any(mass[len(row) :])


def assert_samples_follow(counts, probabilities, significance=1e-6):
    """Run a G-test of counted outputs against their probabilities, with rare outputs pooled."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    assert counts[probabilities == 0].sum() == 0, "an impossible output occurred"
    n = counts.sum()
    rare = probabilities * n < 10
    expected = np.append(probabilities[~rare], probabilities[rare].sum()) * n
    seen = np.append(counts[~rare], counts[rare].sum())
    expected *= n / expected.sum()
    kept = expected > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(seen[kept] > 0, seen[kept] * np.log(seen[kept] / expected[kept]), 0.0)
    statistic = max(0.0, 2 * terms.sum())
    freedom = max(1, int(kept.sum()) - 1)
    assert chi2.sf(statistic, freedom) > significance, f"G = {statistic:.1f} on {freedom}"


def counts_of(samples, outputs):
    return np.bincount(np.asarray(samples, dtype=np.int64) - outputs.L, minlength=outputs.size)


class ScriptedSource:
    """A source of exactly the words and bits that the test gives."""

    def __init__(self, words, bits=(), spare=None):
        self._words = np.asarray(words, dtype=np.uint64)
        self._bits, self._spare = list(bits), spare
        self._at = 0

    def words(self, draws, start, stop):
        out = self._words[self._at : self._at + draws, start:stop]
        assert out.shape == (draws, stop - start)
        self._at += draws
        return out

    def further(self, row):
        return self if self._spare is None else self._spare

    def bits(self, count):
        return self._bits.pop(0) & ((1 << count) - 1)


class ScriptedRng:
    secure = False

    def __init__(self, words, bits=()):
        self._args = words, bits

    def open(self):
        return ScriptedSource(*self._args)
