"""The cost of the protocol: the paper's two theorems on overhead, as counts."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations and bits, without the constants that a machine adds."""

    draws: int
    training_steps: int
    replaced_nodes: int
    codes_bits: int
    query_bits: int
    answer_bits: int

    @property
    def total_bits(self) -> int:
        """All bits that the parties send."""
        return self.codes_bits + self.query_bits + self.answer_bits


def protocol_cost(
    rows: int, features: int, feature_parties: int, trees: int, layers: int, cells: int
) -> Cost:
    """Return the paper's overheads: N rows, r features per party, m−1 parties, T trees of L layers.

    Codes are counted at log₂ of the number of cells that can occur, not at log₂ N as in the paper:
    a column on a grid has no more codes than cells.

    >>> cost = protocol_cost(26_048, 5, 1, trees=80, layers=3, cells=10)
    >>> cost.draws, cost.replaced_nodes, cost.codes_bits // 8
    (130240, 560, 65120)
    """
    nodes = (2**layers - 1) * trees
    code_bits = max(1, math.ceil(math.log2(min(cells, rows))))
    value_bits = max(1, math.ceil(math.log2(cells)))
    values = rows * features * feature_parties
    return Cost(
        draws=values,
        training_steps=rows * trees,
        replaced_nodes=nodes,
        codes_bits=values * code_bits,
        query_bits=nodes * code_bits,
        answer_bits=nodes * value_bits,
    )
