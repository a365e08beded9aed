"""Cases in worker processes: whatever ends, hangs or bloats a worker is counted, with its bytes.

A worker writes each case to a slate, a file that both sides map, before it feeds it to the decoder.
When a worker dies (a fault in native code) or takes too long, the slate still tells which bytes did
it; a new worker goes on with the next case.
"""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import multiprocessing
import os
import shutil
import struct
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

from robustness.fuzz.mutate import MAX_CASE_BYTES
from robustness.fuzz.target import SECONDS, FuzzDrill, Target, judged

CHUNK = 20_000
"""Cases that a worker is given at a time."""

LEAST = 5_000
"""Cases of every target in a large run, if it is not too slow for so many."""

FEW = 20
"""Crashes of one target after which it is given up: they are the same few."""

_SLATE = struct.Struct("<qq")


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


@dataclass(frozen=True, slots=True)
class _Chunk:
    target: Target
    first: int
    count: int


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
    chunks = [
        _Chunk(target, first, min(CHUNK, counts[target.name] - first))
        for target in sorted(targets, key=lambda t: counts[t.name])  # slow ones have few, and begin
        for first in range(0, counts[target.name], CHUNK)
    ]
    with tempfile.TemporaryDirectory(dir=_memory_disk()) as home:
        crew = _Crew(seed, Path(home), say)
        return crew.through(chunks, workers or os.cpu_count() or 1)


def _memory_disk() -> str | None:
    """Where files cost no disk, if there is such a place."""
    place = Path("/dev/shm")
    return str(place) if os.access(place, os.W_OK) else None


@dataclass(slots=True)
class _Hand:
    """One worker, as the parent sees it."""

    process: Any
    pipe: Connection
    slate: mmap.mmap
    home: Path
    chunk: _Chunk | None = None
    began: float = 0.0
    seen: tuple[int, float] = (-1, 0.0)
    ended: bool = False

    def written(self) -> tuple[int, bytes]:
        """The case under way and its bytes."""
        case, size = _SLATE.unpack_from(self.slate, 0)
        return case, bytes(self.slate[_SLATE.size : _SLATE.size + size])

    def hangs(self) -> bool:
        """Whether the same case has been under way for too long."""
        assert self.chunk is not None
        case, now = _SLATE.unpack_from(self.slate, 0)[0], time.monotonic()
        if case != self.seen[0]:
            self.seen = (case, now)
        return case >= 0 and now - self.seen[1] > self.chunk.target.seconds


class _Crew:
    """The workers, and what they found."""

    def __init__(self, seed: int, home: Path, say: Callable[[str], None]) -> None:
        self._seed, self._home, self._say = seed, home, say
        self._context = multiprocessing.get_context("spawn")
        self._count = 0
        self._cases: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._crashes: list[Crash] = []

    def through(self, chunks: list[_Chunk], workers: int) -> Result:
        """Work off all chunks."""
        waiting = list(reversed(chunks))
        hands = [self._hired() for _ in range(min(workers, len(chunks)))]
        try:
            while waiting or any(hand.chunk for hand in hands):
                for place, hand in enumerate(hands):
                    if hand.chunk is None and waiting:
                        self._give(hand, waiting.pop())
                    if self._lost(hand):
                        rest = self._buried(hand)
                        if rest is not None:
                            waiting.append(rest)
                        hands[place] = self._hired()
                for pipe in wait([hand.pipe for hand in hands], timeout=0.2):
                    hand = next(hand for hand in hands if hand.pipe is pipe)
                    self._heard(hand)
        finally:
            for hand in hands:
                hand.process.kill()
                hand.process.join()
        return Result(self._seed, dict(self._cases), tuple(self._crashes), dict(self._seconds))

    def _hired(self) -> _Hand:
        self._count += 1
        home = self._home / f"worker-{self._count}"
        home.mkdir()
        slate = home / "slate"
        slate.write_bytes(bytes(_SLATE.size + MAX_CASE_BYTES))
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work,
            args=(theirs, slate, home, self._seed),
            daemon=True,
        )
        process.start()
        theirs.close()
        with slate.open("r+b") as file:
            return _Hand(process, ours, mmap.mmap(file.fileno(), 0), home)

    def _give(self, hand: _Hand, chunk: _Chunk) -> None:
        if self._given_up(chunk.target.name):
            return
        hand.chunk, hand.began, hand.seen = chunk, time.monotonic(), (-1, 0.0)
        _SLATE.pack_into(hand.slate, 0, -1, 0)
        hand.pipe.send(chunk)

    def _given_up(self, target: str) -> bool:
        return sum(c.target == target for c in self._crashes) >= FEW

    def _lost(self, hand: _Hand) -> bool:
        """Whether a worker died and all that it said was heard, or sits over a case too long."""
        return hand.ended or (hand.chunk is not None and hand.hangs())

    def _buried(self, hand: _Hand) -> _Chunk | None:
        """Count what a worker died of; the cases that are left of its chunk."""
        hanging = not hand.ended
        if not hanging:
            hand.process.join(SECONDS)
        hand.process.kill()
        hand.process.join()
        case, data = hand.written()
        chunk = hand.chunk
        if chunk is None or case < 0:
            log = (
                (hand.home / "fault.log").read_text() if (hand.home / "fault.log").exists() else ""
            )
            name = chunk.target.name if chunk else "?"
            self._note(Crash(name, -1, f"the worker ended before a case: {log[-500:]}", b""))
            return None
        why = (
            f"hangs for {chunk.target.seconds:g} s"
            if hanging
            else f"dies with {hand.process.exitcode}"
        )
        self._note(Crash(chunk.target.name, case, f"{why} [{_fault(hand.home)}]", data))
        self._cases[chunk.target.name] += case + 1 - chunk.first
        shutil.rmtree(hand.home, ignore_errors=True)
        left = chunk.first + chunk.count - case - 1
        return _Chunk(chunk.target, case + 1, left) if left > 0 else None

    def _heard(self, hand: _Hand) -> None:
        try:
            said = hand.pipe.recv()
        except (EOFError, OSError):
            hand.ended = True
            return
        if isinstance(said, Crash):
            self._note(said)
            return
        assert hand.chunk is not None
        self._cases[hand.chunk.target.name] += said
        self._seconds[hand.chunk.target.name] += time.monotonic() - hand.began
        spent = time.monotonic() - hand.began
        self._say(f"{hand.chunk.target.name}: {said:,} cases in {spent:.1f} s")
        hand.chunk = None

    def _note(self, crash: Crash) -> None:
        self._crashes.append(crash)
        self._say(f"CRASH {crash.target} case {crash.case}: {crash.words}")


def _fault(home: Path) -> str:
    """The innermost places that the interpreter knew of when native code failed."""
    file = home / "fault.log"
    lines = file.read_text().splitlines() if file.exists() else []
    places = [line.strip() for line in lines if line.strip().startswith("File")]
    return " < ".join(place.rpartition("/")[2] for place in places[:3])


def _work(pipe: Connection, slate: Path, home: Path, seed: int) -> None:
    """The worker's life: chunks in, crashes and counts out."""
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")  # before a library reads it
    with (home / "fault.log").open("w") as log, slate.open("r+b") as file:
        faulthandler.enable(log)
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        board = mmap.mmap(file.fileno(), 0)
        drills: dict[str, FuzzDrill] = {}
        while True:
            chunk: _Chunk = pipe.recv()
            target = chunk.target
            if target.name not in drills:
                folder = home / f"target-{len(drills)}"
                folder.mkdir()
                drills[target.name] = target.prepare(folder)
            _limit_memory()
            done = chunk.count
            crashes = _crashes(target, drills[target.name], chunk, seed, board)
            for found, crash in enumerate(crashes, 1):
                pipe.send(crash)
                if found >= FEW:
                    done = crash.case + 1 - chunk.first
                    break
            _SLATE.pack_into(board, 0, -1, 0)
            pipe.send(done)


def _crashes(
    target: Target, drill: FuzzDrill, chunk: _Chunk, seed: int, board: mmap.mmap
) -> Iterator[Crash]:
    memory = _Memory()
    memory.forget()
    for case in range(chunk.first, chunk.first + chunk.count):
        _SLATE.pack_into(board, 0, case, 0)
        data = drill.make(rng_of(seed, target.name, case))[:MAX_CASE_BYTES]
        board[_SLATE.size : _SLATE.size + len(data)] = data
        _SLATE.pack_into(board, 0, case, len(data))
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
