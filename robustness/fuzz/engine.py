"""Cases in worker processes: whatever ends, hangs or bloats a worker is counted, with its bytes.

Each target has a worker of its own.  It writes each case to a slate, a file that both sides map,
before it feeds it to the decoder.  When a worker dies (a fault in native code) or takes too long,
the slate still tells which bytes did it; a new worker goes on with the next case.
"""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import multiprocessing
import os
import struct
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from unittest import mock

from robustness.fuzz.mutate import MAX_CASE_BYTES
from robustness.fuzz.target import FuzzDrill, Target, judged

LEAST = 5_000
"""Cases of every target in a large run, if it is not too slow for so many."""

FEW = 20
"""Crashes of one target after which it is given up: they are the same few."""

STATUS_LOST = 255
"""Exit status that multiprocessing reports if the fork server lost the worker's own status."""


@dataclass(frozen=True, slots=True)
class Crash:
    """What broke the contract, and the bytes that did it."""

    target: str
    case: int
    words: str
    data: bytes

    @property
    def kind(self) -> str:
        """Crashes of one kind have one cause, as far as can be told."""
        head, _, place = self.words.partition(" [")
        return f"{head.split(':')[0]} [{place}" if place else self.words


@dataclass(frozen=True, slots=True)
class Result:
    """How many cases each target had, and what broke the contract."""

    seed: int
    cases: dict[str, int]
    crashes: tuple[Crash, ...]
    seconds: dict[str, float]

    @property
    def total(self) -> int:
        """All cases."""
        return sum(self.cases.values())


def rng_of(seed: int, target: str, case: int) -> Random:
    """The randomness of one case."""
    name = int.from_bytes(hashlib.sha256(f"{seed} {target}".encode()).digest()[:6], "big")
    return Random((name << 40) | case)


def planned(targets: Sequence[Target], cases: int) -> dict[str, int]:
    """How many cases each target gets, ``cases`` in all or a few more."""
    counts = {t.name: min(t.most, LEAST, max(1, cases // len(targets))) for t in targets}
    while (left := cases - sum(counts.values())) > 0:
        open_ = [t for t in targets if counts[t.name] < t.most]
        if not open_:
            break
        shares = sum(t.share for t in open_)
        for t in open_:
            more = -int(-left * t.share // shares)
            counts[t.name] = min(t.most, counts[t.name] + max(1, more))
    return counts


def run(
    targets: Sequence[Target],
    cases: int,
    seed: int,
    *,
    workers: int | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> Result:
    """Feed ``cases`` cases to the targets; everything follows from ``seed`` but fresh keys."""
    counts = planned(targets, cases)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["robustness.preloaded", "robustness.fuzz.targets"])
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE"):
        forkserver.ensure_running()  # loads the libraries once; a worker is a fork of it
    slow_first = sorted(targets, key=lambda t: counts[t.name])  # slow ones have few cases
    with (
        tempfile.TemporaryDirectory(dir=_memory_disk()) as home,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
    ):
        feeds = [
            _Feed(target, counts[target.name], seed, Path(home) / str(number), say)
            for number, target in enumerate(slow_first)
        ]
        for _ in pool.map(_Feed.run, feeds):
            pass
    return Result(
        seed,
        {feed.target.name: feed.fed for feed in feeds},
        tuple(crash for feed in feeds for crash in feed.crashes),
        {feed.target.name: feed.seconds for feed in feeds},
    )


def _memory_disk() -> str | None:
    """Where files cost no disk, if there is such a place."""
    place = Path("/dev/shm")
    return str(place) if os.access(place, os.W_OK) else None


class _Slate:
    """The case under way and its bytes, in a file that a worker and its parent map."""

    _HEAD = struct.Struct("<qq")

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(self._HEAD.size + MAX_CASE_BYTES))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)

    def write(self, case: int, data: bytes = b"") -> None:
        """Note a case; without bytes, that it is being made, or that there is none (-1)."""
        self._map[self._HEAD.size : self._HEAD.size + len(data)] = data
        self._HEAD.pack_into(self._map, 0, case, len(data))

    def read(self) -> tuple[int, bytes]:
        case, size = self._HEAD.unpack_from(self._map, 0)
        return case, bytes(self._map[self._HEAD.size : self._HEAD.size + size])


class _Feed:
    """One target: the cases that it was fed, in one worker after the other, and what they did."""

    def __init__(
        self, target: Target, count: int, seed: int, home: Path, say: Callable[[str], None]
    ) -> None:
        self.target, self.fed, self.seconds = target, 0, 0.0
        self.crashes: list[Crash] = []
        self._ended = False
        self._count, self._seed, self._home, self._say = count, seed, home, say

    def run(self) -> None:
        began, workers = time.monotonic(), 0
        while self.fed < self._count and len(self.crashes) < FEW:
            home = self._home / str(workers)
            home.mkdir(parents=True)
            self._with_worker(home)
            workers += 1
        self.seconds = time.monotonic() - began
        self._say(f"{self.target.name}: {self.fed:,} cases in {self.seconds:.1f} s")

    def _with_worker(self, home: Path) -> None:
        """Let a worker feed the cases that are left, until it has done so, dies or hangs."""
        slate = _Slate(home / "slate")
        slate.write(-1)
        self._ended = False
        context = multiprocessing.get_context("forkserver")
        pipe, theirs = context.Pipe(duplex=False)
        cases = range(self.fed, self._count)
        process = context.Process(
            target=_work, args=(theirs, home, self.target, cases, self._seed), daemon=True
        )
        process.start()
        theirs.close()
        hanging = self._heard(pipe, slate)
        if hanging:
            process.kill()
        process.join()
        lost = self._ended and process.exitcode == STATUS_LOST
        if process.exitcode == 0 or lost:
            self.fed = self._count
            return
        case, data = slate.read()
        if case < 0:
            said = (home / "fault.log").read_text()[-500:]
            self._note(Crash(self.target.name, -1, f"the worker ended before a case: {said}", b""))
            self.fed = self._count
            return
        seconds, status = self.target.seconds, process.exitcode
        why = f"hangs for {seconds:g} s" if hanging else f"dies with {status}"
        self._note(Crash(self.target.name, case, f"{why} [{_fault(home)}]", data))
        self.fed = case + 1

    def _heard(self, pipe: Connection, slate: _Slate) -> bool:
        """Take down crashes until the worker ends, or hangs: whether it does."""
        known, since = -1, time.monotonic()
        while True:
            if pipe.poll(0.2):
                try:
                    crash = pipe.recv()
                except EOFError:
                    return False
                if crash is None:
                    self._ended = True
                else:
                    self._note(crash)
            case, now = slate.read()[0], time.monotonic()
            if case != known or case < 0:
                known, since = case, now
            if now - since > self.target.seconds:
                return True

    def _note(self, crash: Crash) -> None:
        self.crashes.append(crash)
        self._say(f"CRASH {crash.target} case {crash.case}: {crash.words}")


def _fault(home: Path) -> str:
    """The innermost places that the interpreter knew of when native code failed."""
    lines = (home / "fault.log").read_text().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File")]
    return " < ".join(place.rpartition("/")[2] for place in places[:3])


def _work(pipe: Connection, home: Path, target: Target, cases: range, seed: int) -> None:
    """The worker's life: crashes go into the pipe; too many of them end it."""
    with (home / "fault.log").open("w") as log:
        faulthandler.enable(log)
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        drill = target.prepare(home)
        _limit_memory()
        for found, crash in enumerate(_crashes(target, drill, cases, seed, home), 1):
            pipe.send(crash)
            if found >= FEW:
                break
    pipe.send(None)  # the last case is over


def _crashes(
    target: Target, drill: FuzzDrill, cases: range, seed: int, home: Path
) -> Iterator[Crash]:
    slate, memory = _Slate(home / "slate"), _Memory()
    memory.forget()
    for case in cases:
        slate.write(case)
        data = drill.make(rng_of(seed, target.name, case))[:MAX_CASE_BYTES]
        slate.write(case, data)
        before = memory.peak()
        words = judged(target, drill, data)
        more = memory.peak() - before
        if more > target.memory + 64 * len(data):
            words = words or f"takes {more:,} bytes for {len(data):,} []"
            memory.forget()
        if words:
            yield Crash(target.name, case, words, data)


class _Memory:
    """The most memory that this process had since it was last asked to forget.

    Not ``getrusage``: that begins with what the parent had when it started this process.
    """

    def __init__(self) -> None:
        try:
            self._status = os.open("/proc/self/status", os.O_RDONLY)
        except OSError:
            self._status = -1  # no such file on this system: memory is not looked at

    def peak(self) -> int:
        """In bytes."""
        if self._status < 0:
            return 0
        _, _, rest = os.pread(self._status, 4096, 0).partition(b"VmHWM:")
        return int(rest.split(None, 1)[0]) * 1024

    def forget(self) -> None:
        """Begin anew from what is used now."""
        if self._status >= 0:
            Path("/proc/self/clear_refs").write_text("5")


def _limit_memory() -> None:
    """Let no case take more than a gigabyte beyond what the worker has."""
    try:
        import resource

        status = Path("/proc/self/status").read_text().splitlines()
    except (ImportError, OSError):
        return
    now = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (now + 2**30, hard))
