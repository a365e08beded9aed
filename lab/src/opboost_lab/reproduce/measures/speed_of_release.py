"""Processor seconds to desensitise a column, and to encrypt it while keeping its order."""

from __future__ import annotations

import time

import numpy as np

from opboost._typing import IntArray
from opboost.grid import Domain
from opboost.mechanisms.ope import OrderPreservingEncryption
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json

CELLS = 100


def values(count: int) -> IntArray:
    """Return uniform values of 1..100."""
    return np.random.default_rng(0).integers(1, CELLS + 1, count)


def desensitising(method: Json, epsilon: float, count: int, repeats: int) -> Json:
    """Return seconds: the first column's, which builds the distribution, and the others' median."""
    domain, column = Domain(1, CELLS), values(count)
    chosen = Method(**method)
    chosen.mechanism(domain, 2 * epsilon).sample(column)  # compiles; builds another distribution
    mechanism = chosen.mechanism(domain, epsilon)
    times = []
    for _ in range(1 + repeats):
        started = time.process_time()
        mechanism.sample(column)
        times.append(time.process_time() - started)
    return {"first": times[0], "seconds": float(np.median(times[1:]))}


def encrypting(count: int, sample: int, memo: bool) -> Json:
    """Return the seconds for ``count`` values; without ``memo``, scaled up from ``sample``."""
    timed = count if memo else sample
    cipher = OrderPreservingEncryption(Domain(1, CELLS), memo=memo)
    cipher.sample([1])
    column = values(timed)
    started = time.process_time()
    cipher.sample(column)
    return {"seconds": (time.process_time() - started) * count / timed, "timed": timed}
