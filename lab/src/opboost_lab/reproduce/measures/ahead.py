"""AHEAD (Du et al., CCS 2021, arXiv 2110.07505): range queries from an adaptive tree, by local DP.

Each user reports in one layer of the tree, with the whole ε, by unary encoding over the leaves at
that time.  A leaf whose share could be mere noise is not divided further.  This is our own code
from the method's description.  ``"coded"`` weights a node against its children as the authors' code
does, ``"textbook"`` by inverse variances (Hay et al., VLDB 2010), which keep the root at one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from opboost._typing import FloatArray, IntArray

Weights = Literal["coded", "textbook"]
BRANCHES = 2
KEEP = 0.5
"""The chance that a set bit stays set, in optimised unary encoding."""


@dataclass(slots=True, eq=False)
class Node:
    """The cells ``begin..end−1``, their share, and the number of estimates averaged in it."""

    begin: int
    end: int
    share: float = 0.0
    count: float = 0.0
    divisible: bool = True
    children: list[Node] = field(default_factory=list)

    def divide(self) -> list[Node]:
        """Divide the cells into equal parts."""
        step = (self.end - self.begin) // BRANCHES
        self.children = [
            Node(self.begin + k * step, self.begin + (k + 1) * step) for k in range(BRANCHES)
        ]
        return self.children


def flip_chance(epsilon: float) -> float:
    """Return the chance that an unset bit is reported as set: 1 / (1 + e^ε)."""
    rate = math.exp(-epsilon)
    return rate / (1 + rate)


def threshold(epsilon: float, users: int, layers: int) -> float:
    """Return the share below which no node is divided: √((b+1) · variance of a layer's estimate).

    >>> round(threshold(1.0, 100_000, 10), 4), round(threshold(0.1, 100_000, 10), 3)
    (0.0332, 0.346)
    """
    rate = math.exp(-epsilon)
    variance = 4 * rate / ((users / layers) * (1 - rate) ** 2)
    return math.sqrt((BRANCHES + 1) * variance)


def grow(counts: IntArray, epsilon: float, rng: np.random.Generator) -> Node:
    """Return the tree after all layers have reported; the number of cells is a power of two."""
    cells, users = len(counts), int(counts.sum())
    layers = round(math.log(cells, BRANCHES))
    floor = threshold(epsilon, users, layers)
    root = Node(0, cells, 1.0, 1.0)
    leaves = [root]
    left = counts.astype(np.int64)
    for layer in range(layers):
        reporting = rng.binomial(left, 1 / (layers - layer))
        left = left - reporting
        grown: list[Node] = []
        for leaf in leaves:
            if leaf.divisible and layer > 0 and leaf.share < floor:
                leaf.divisible = False
            grown += leaf.divide() if leaf.divisible else [leaf]
        leaves = grown
        shares = normalised(_reports(reporting, leaves, epsilon, rng))
        for leaf, share in zip(leaves, shares, strict=True):
            leaf.share = (leaf.count * leaf.share + float(share)) / (leaf.count + 1)
            leaf.count += 1
    return root


def _reports(
    reporting: IntArray, leaves: list[Node], epsilon: float, rng: np.random.Generator
) -> FloatArray:
    """Return unbiased shares of the leaves, from the bits of this layer's users."""
    users = int(reporting.sum())
    rise = np.concatenate([[0], reporting.cumsum()])
    held = np.array([rise[leaf.end] - rise[leaf.begin] for leaf in leaves])
    flip = flip_chance(epsilon)
    bits = rng.binomial(held, KEEP) + rng.binomial(users - held, flip)
    return np.asarray((bits / max(users, 1) - flip) / (KEEP - flip))


def normalised(shares: FloatArray) -> FloatArray:
    """Return the shares with negative ones set to 0 and the others shifted, once, to sum to one.

    >>> normalised(np.array([0.7, 0.5, -0.1])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    positive = shares > 0
    if not positive.any():
        return np.full(len(shares), 1 / len(shares))
    kept = np.where(positive, shares, 0.0)
    return np.where(positive, kept + (1 - kept.sum()) / positive.sum(), 0.0)


def weighed(node: Node, weights: Weights, *, root: bool = True) -> tuple[Node, float]:
    """Return a copy of the tree, with inner nodes weighted against their children from below.

    The second value is the number of estimates that the share of its root is now worth.
    """
    if not node.children:
        return Node(node.begin, node.end, node.share, node.count), node.count
    parts = [weighed(child, weights, root=False) for child in node.children]
    children = [part for part, _ in parts]
    below = sum(1 / worth for _, worth in parts)
    if weights == "coded":
        spread = 1 / node.count + below
        own = spread / (spread + 1)
        worth = 1 / own
    elif root:
        own, worth = 1.0, math.inf
    else:
        own = below / (1 / node.count + below)
        worth = node.count + 1 / below
    share = own * node.share + (1 - own) * sum(child.share for child in children)
    return Node(node.begin, node.end, share, worth, True, children), worth


def answers(root: Node, queries: IntArray) -> FloatArray:
    """Return the shares of ranges, ends included, from the largest nodes inside them.

    Inside a leaf, the share is spread evenly.
    """
    begin, end = queries[:, 0], queries[:, 1] + 1
    out = np.zeros(len(queries))
    waiting = [(root, np.ones(len(queries), dtype=bool))]
    while waiting:
        node, open_ = waiting.pop()
        if node.children:
            inside = open_ & (begin <= node.begin) & (node.end <= end)
            out[inside] += node.share
            rest = open_ & ~inside
            if rest.any():
                waiting += [(child, rest) for child in node.children]
        else:
            shared = np.minimum(end, node.end) - np.maximum(begin, node.begin)
            out += open_ * node.share * np.maximum(shared, 0) / (node.end - node.begin)
    return out
