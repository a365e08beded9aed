"""Draw clean rows from a fitted model, given outputs and labels, or only outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.denoise.column_pairs import Pairing
from opboost.denoise.encoded_rows import Codes, EncodedRows
from opboost.denoise.label_groups import Groups
from opboost.denoise.latent_classes import Mixture
from opboost.randomness.splitmix64 import splitmix64


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Outputs of rows: codes of columns with a noise matrix and of own columns, and unary bits."""

    codes: Codes
    bits: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: BoolArray | IntArray) -> Outputs:
        return Outputs(self.codes[rows], self.bits[rows])

    def tokens(self) -> Codes:
        """Return a number for each row that depends only on the row's outputs."""
        found = np.zeros(len(self), dtype=np.uint64)
        for block in (self.codes, self.bits):
            for j in range(block.shape[1]):
                found = splitmix64(found ^ block[:, j].astype(np.uint64))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Drawn clean rows: states of columns with a noise matrix, categories of unary columns."""

    cells: Codes
    categories: Codes


@dataclass(frozen=True, slots=True, eq=False)
class JointDistribution:
    """The joint distribution of clean rows and labels, for rows whose label is not known."""

    member: Mixture
    pairing: Pairing
    share: FloatArray

    @classmethod
    def of(cls, member: Mixture, pairing: Pairing, groups: Groups) -> JointDistribution:
        """Build it from a model; each group has the share of rows that it had in the fit."""
        count = groups.sizes() + 1e-9
        return cls(member, pairing, count / count.sum())

    def chances(self, outputs: Outputs) -> FloatArray:
        """Return ``[row, group]``: P(group | outputs).  Cost: a pass over the rows per group."""
        score = np.tile(np.log(self.share), (len(outputs), 1))
        codes = self.pairing.paired(outputs.codes)
        count = len(self.share)
        rows = EncodedRows.of(codes, outputs.bits, np.zeros(len(outputs), np.int64), count)
        for g in range(count):
            score[:, g] += self.member.likelihoods(rows.as_group(g))[:, 0]
        score = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(score / score.sum(axis=1, keepdims=True))

    def guesses(self, outputs: Outputs, chance: FloatArray, times: int, seed: int) -> States:
        """Draw ``times`` guesses per row, stacked: first a group by its chance, then a clean row.

        A row's guesses depend on the seed and on the row's outputs, not on its position.
        """
        tokens = outputs.tokens()
        start = splitmix64(tokens ^ np.uint64(seed)).astype(np.float64) / 2.0**64
        want = (start[:, None] + np.arange(times)) / times
        ladder = chance.cumsum(axis=1)
        group = (want[:, :, None] > ladder[:, None, :]).sum(axis=2)
        group = group.reshape(-1).clip(0, chance.shape[1] - 1)
        many = np.repeat(np.arange(len(outputs)), times)
        number = np.tile(np.arange(times, dtype=np.uint64), len(outputs))
        again = splitmix64(tokens[many] ^ splitmix64(number))
        return drawn(self.member, self.pairing, outputs[many], group, 0, seed, again)


def drawn(
    member: Mixture,
    pairs: Pairing,
    outputs: Outputs,
    group: IntArray,
    number: int,
    seed: int,
    tokens: Codes | None = None,
) -> States:
    """Draw once from one model, for rows of these groups; tokens default to the rows' positions."""
    rows = EncodedRows.of(pairs.paired(outputs.codes), outputs.bits, group, len(member.pi))
    return drawn_rows(rows, member, pairs, number, seed, tokens)


def drawn_rows(
    rows: EncodedRows,
    member: Mixture,
    pairs: Pairing,
    number: int,
    seed: int,
    tokens: Codes | None = None,
) -> States:
    """Draw once for encoded rows; the states are returned in the order of the table."""
    space = pairs.paired_space()
    key = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
    most = max((c.states for c in space.channels), default=1)
    cells = np.zeros((len(rows), len(space.channels)), np.min_scalar_type(most))
    largest = max((b.states for b in space.bits), default=1)
    categories = np.zeros((len(rows), len(space.bits)), np.min_scalar_type(largest))
    if tokens is None:
        tokens = np.arange(len(rows), dtype=np.uint64)
    member.draw(rows, tokens, len(space.channels), key, cells, categories)
    return States(pairs.parted(cells), categories)
