"""Choose the pairs of values to attack."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any

from opboost.auditing.audit_targets import AuditTarget, InBits, OnGrid, Record, WithGaps
from opboost.grid import Domain
from opboost.mechanisms import Mechanism

_SMALL_GRID_CELLS = 32
"""On grids up to this size, every pair is a candidate."""


def chosen_pairs(target: AuditTarget, most: int, seed: int) -> list[tuple[Any, Any]]:
    """Return at most ``most`` pairs: all if there are few, else revealing ones and random ones."""
    found: dict[tuple[Any, Any], None] = {}
    for pair in islice(_candidates(target, random.Random(seed)), 50 * most):
        found.setdefault(pair)
        if len(found) == most:
            break
    return list(found)


def _candidates(target: AuditTarget, rng: random.Random) -> Iterator[tuple[Any, Any]]:
    if isinstance(target, OnGrid):
        yield from _on_grid(target.mechanism, rng)
    elif isinstance(target, InBits):
        categories = target.mechanism.categories
        yield (categories[0], categories[-1])
        yield from combinations(categories[:_SMALL_GRID_CELLS], 2)
    elif isinstance(target, WithGaps):
        inner = target.mechanism.mechanism
        for cell in (target.mechanism.stand_in, inner.domain.L, inner.domain.R):
            yield (None, cell)
        yield from _on_grid(inner, rng)
    elif isinstance(target, Record):
        yield from _of_record([m.domain for m in target.columns.values()], rng)


def _on_grid(mechanism: Mechanism, rng: random.Random) -> Iterator[tuple[int, int]]:
    grid = mechanism.domain
    middle = (grid.L + grid.R) // 2
    far = _revealing_distance(mechanism)
    yield (grid.L, grid.L + 1)
    yield (grid.L, grid.L + far)
    yield (grid.R - 1, grid.R)
    yield from ((border - 1, border) for border in mechanism.landmarks())
    if middle < grid.R:
        yield (middle, middle + 1)
    yield (grid.R - far, grid.R)
    yield (grid.L, grid.R)
    if grid.size <= _SMALL_GRID_CELLS:
        every = list(combinations(range(grid.L, grid.R + 1), 2))
        rng.shuffle(every)
        yield from every
        return
    while True:
        for distance in (1, far, rng.randint(1, far)):
            start = rng.randint(grid.L, grid.R - distance)
            yield (start, start + distance)


def _revealing_distance(mechanism: Mechanism) -> int:
    """Return a distance at which the promised loss is about two, which samples can still show."""
    grid, guarantee = mechanism.domain, mechanism.guarantee()
    distance, bound = 1, guarantee.bound(grid.L, grid.L + 1)
    while bound < 2 and 2 * distance <= grid.span:
        bound = guarantee.bound(grid.L, grid.L + 2 * distance)
        if math.isfinite(bound):
            distance *= 2
    return distance


def _of_record(
    grids: list[Domain], rng: random.Random
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    lowest, highest = tuple(g.L for g in grids), tuple(g.R for g in grids)
    yield (lowest, highest)
    yield (lowest, tuple(g.L + 1 for g in grids))
    yield (lowest, (highest[0], *lowest[1:]))
    while True:
        x, y = (tuple(rng.randint(g.L, g.R) for g in grids) for _ in range(2))
        if x != y:
            yield (x, y)
