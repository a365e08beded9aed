"""Tests that draws are independent: that rows, calls, threads and forks do not share noise.

The bound on a loss assumes independent draws, and so does every promise about several rows.  Two
columns of outcomes of one value are paired by how they were drawn, and a G-test checks whether one
says anything about the other.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy.special import chdtrc

from opboost._typing import IntArray
from opboost.auditing.audit_targets import AuditTarget, Coding, Record

Pair = tuple[IntArray, IntArray]

_LAGS = (1, 8, 1024, 16_384, 32_768)


def paired_draws(
    target: AuditTarget, value: Any, rows: int
) -> Iterator[tuple[str, Callable[[], Pair]]]:
    """Yield what each pair compares, and a function that draws it."""
    coding = target.coding(value, value)

    def draw() -> IntArray:
        return coding.codes(target.draw(value, rows))

    for lag in _LAGS:
        if 2 * lag <= rows:
            words = "neighbouring rows" if lag == 1 else f"rows {lag:,} apart"
            yield words, lambda lag=lag: _lagged(draw(), lag)  # type: ignore[misc]
    yield "two calls", lambda: (draw(), draw())
    yield "two threads", lambda: _in_threads(draw)
    if hasattr(os, "fork"):
        yield "a process and its forked child", lambda: _forked(draw)
    if isinstance(target, Record) and len(target.columns) > 1:
        yield "two columns of a row", lambda: _columns(target, value, rows)


def chance_of_independence(pair: Pair) -> float:
    """Return the p-value: the chance that independent draws look at least this dependent."""
    a, b = (_classes(codes) for codes in pair)
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    if min(rows, columns) < 2:
        return 1.0
    seen = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / len(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(seen > 0, seen * np.log(seen / expected), 0.0)
    return float(chdtrc((rows - 1) * (columns - 1), max(0.0, 2 * float(terms.sum()))))


def _classes(codes: IntArray) -> IntArray:
    """Group outcomes into classes, each so frequent that a pair is expected 50 times or more."""
    counts = np.bincount(codes)
    often = np.flatnonzero(counts >= np.sqrt(50 * len(codes)))
    place = np.full(len(counts), len(often), dtype=np.int64)
    place[often] = np.arange(len(often))
    rest = len(codes) - int(counts[often].sum())
    if len(often) and rest < np.sqrt(50 * len(codes)):
        place[place == len(often)] = len(often) - 1
    return np.asarray(place[codes], dtype=np.int64)


def _lagged(codes: IntArray, lag: int) -> Pair:
    blocks = codes[: len(codes) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
    return blocks[:, 0].reshape(-1), blocks[:, 1].reshape(-1)


def _in_threads(draw: Callable[[], IntArray]) -> Pair:
    both = threading.Barrier(2)

    def work(_: int) -> IntArray:
        both.wait(60)
        return draw()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(work, range(2))
    return first, second


def _forked(draw: Callable[[], IntArray]) -> Pair:
    draw()  # so that the parent has a stream for the child to inherit
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        try:
            data = draw().astype("<u4").tobytes()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(struct.pack("<q", len(data)) + data)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        own = draw()
        (size,) = struct.unpack("<q", pipe.read(8))
        theirs = np.frombuffer(pipe.read(size), dtype="<u4").astype(np.int64)
    os.waitpid(child, 0)
    return own, theirs


def _columns(record: Record, value: Any, rows: int) -> Pair:
    """Return the draws of rows for which both columns are sent, as chosen by the budget alone."""
    drawn, chosen = record.draw(value, rows)
    parts: tuple[Coding, ...] = record.coding(value, value).parts
    both = chosen[:, 0] & chosen[:, 1]
    if len(parts) < 2 or not both.any():
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return parts[0].codes(drawn[0][both]), parts[1].codes(drawn[1][both])
