"""``opboost bench sampling``: desensitising against numpy, other libraries and plain AES."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import opboost as op
from opboost._typing import IntArray
from opboost_lab.bench.library_peers import SAMPLING, Peer

EPSILONS = (0.08, 1.28)
GRIDS = (10, 100, 1024, 2**40)
SIZES = (10**5, 10**7)
REPEATS = 5
PEER_VALUES = {"opendp": 50_000, "diffprivlib": 50_000, "python-dp": 100_000}
"""Peers take microseconds per value, so they get shorter columns; times are per value."""


@dataclass(frozen=True, slots=True)
class Case:
    """A level, a grid size and the number of values."""

    epsilon: float
    cells: int
    values: int

    @property
    def grid(self) -> op.Domain:
        """The grid 1..cells."""
        return op.Domain(1, self.cells)

    def column(self) -> IntArray:
        """Return uniform values in the grid's narrowest type; speed does not depend on them."""
        generator = np.random.default_rng(1)
        return generator.integers(1, self.cells + 1, self.values).astype(self.grid.dtype())


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds of processor time per value: the median of the repeats, and their range."""

    name: str
    median: float
    fastest: float
    slowest: float
    problem: str = ""

    @property
    def per_second(self) -> float:
        """Values per second on one core."""
        return 1e9 / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """All timings of one case; ``others`` are mechanisms that do not use the grid."""

    case: Case
    aes: Timing
    numpy: Timing
    peers: tuple[Timing, ...]
    ours: tuple[Timing, ...]
    others: tuple[Timing, ...]

    def peer(self, name: str) -> Timing:
        """Return one peer's timing."""
        return next(t for t in self.peers if t.name == name)


def mechanisms(case: Case) -> dict[str, op.Mechanism]:
    """Return every mechanism at the case's level and grid."""
    grid, epsilon = case.grid, case.epsilon
    theta = max(2, min(case.cells // 10, 100))
    return {
        "Clamp-map": op.ClampMap(grid, epsilon),
        "Global-map": op.GlobalMap(grid, epsilon),
        "Adj-map": op.AdjMap(grid, epsilon, theta=theta, alpha=1.0),
        "Local-map": op.LocalMap(grid, epsilon=epsilon, theta=theta),
        "Randomised response": op.RandomizedResponse(grid, epsilon),
        "Piecewise": op.Piecewise(grid, epsilon),
    }


def others(case: Case, x: IntArray) -> dict[str, Callable[[], object]]:
    """Return mechanisms without a grid, and unary encoding, which draws a bit per category."""
    wide = x.astype(np.int64)
    adj = op.AdjLaplace(eps_prt=case.epsilon, eps_ner=case.epsilon, theta=10)
    work: dict[str, Callable[[], object]] = {
        "Discrete Laplace": partial(op.DiscreteLaplace(case.epsilon).sample, wide, threads=1),
        "Adj-Laplace": partial(adj.sample, wide, threads=1),
    }
    if case.cells * case.values <= 10**8:
        unary = op.UnaryEncoding(range(case.cells), case.epsilon)
        work[f"Unary, {case.cells} bits"] = partial(unary.sample_positions, wide - 1)
    return work


def cases(
    epsilons: tuple[float, ...] = EPSILONS,
    grids: tuple[int, ...] = GRIDS,
    sizes: tuple[int, ...] = SIZES,
) -> list[Case]:
    """Return every combination."""
    return [Case(e, g, n) for g in grids for e in epsilons for n in sizes]


def run(chosen: list[Case], repeats: int = REPEATS, peers: bool = True) -> Iterator[Result]:
    """Time case by case; a peer is timed once per level and grid."""
    known: dict[tuple[float, int], tuple[Timing, ...]] = {}
    for case in chosen:
        key = case.epsilon, case.cells
        if key not in known:
            known[key] = tuple(_peer(p, case, repeats) for p in SAMPLING) if peers else ()
        x = case.column()
        ours = []
        for name, mechanism in mechanisms(case).items():
            mechanism.sample(x[:100])  # compile, and build the distribution
            ours.append(_timed(name, case, repeats, partial(mechanism.sample, x, threads=1)))
        yield Result(
            case,
            _timed("AES-256-CTR", case, repeats, _aes(case.values)),
            _timed("numpy, insecure", case, repeats, _numpy(case, x)),
            known[key],
            tuple(ours),
            tuple(_timed(name, case, repeats, work) for name, work in others(case, x).items()),
        )


def _timed(name: str, case: Case, repeats: int, work: Callable[[], object]) -> Timing:
    """Time work; short work is repeated within a measurement for the clock's resolution."""
    loops = max(1, 200_000 // case.values)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(loops):
            work()
        times.append((time.process_time() - start) / loops / case.values * 1e9)
    return _spread(name, times)


def _aes(values: int) -> Callable[[], object]:
    """Return work that only produces keystream, in pieces of 128 KiB."""
    piece = 16_384 * 8
    zeros, room = bytes(piece), bytearray(piece + 16)
    cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()

    def work() -> None:
        for start in range(0, values * 8, piece):
            cipher.update_into(memoryview(zeros)[: min(piece, values * 8 - start)], room)

    return work


def _numpy(case: Case, x: IntArray) -> Callable[[], object]:
    """Return the obvious numpy code, which is neither secure nor exact."""
    generator = np.random.default_rng(1)
    p = -np.expm1(-case.epsilon)
    wide = x.astype(np.int64)

    def work() -> object:
        n = case.values
        noise = generator.geometric(p, n) - generator.geometric(p, n)
        return np.clip(wide + noise, 1, case.cells)

    return work


def _peer(peer: Peer, case: Case, repeats: int) -> Timing:
    request = {"peer": peer.name, "values": PEER_VALUES[peer.name], "repeats": repeats}
    request |= {"epsilon": case.epsilon, "lower": 1, "upper": case.cells}
    answer = peer.timed(request)
    if answer.problem:
        return Timing(answer.name, 0.0, 0.0, 0.0, answer.problem)
    return _spread(answer.name, [s / answer.values * 1e9 for s in answer.seconds])


def _spread(name: str, times: list[float]) -> Timing:
    return Timing(name, statistics.median(times), min(times), max(times))
