"""Run cases in worker processes; count cases that kill, hang or bloat a worker, and keep them.

Each target has its own worker.  The worker writes each case to shared memory before it feeds the
case to the decoder.  If the worker dies (a fault in native code) or takes too long, the shared
memory still holds the bytes that did it, and a new worker continues with the next case.
"""

import faulthandler
import hashlib
import multiprocessing
import os
import pickle
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from unittest import mock

from opboost_lab.bench.process_usage import forget_peak, peak_mb
from robustness.fuzz.mutate import MAX_CASE_BYTES
from robustness.fuzz.target import FuzzDrill, Target, judged

FORKSERVER = multiprocessing.get_context("forkserver")

LEAST = 5_000
"""The minimum number of cases per target in a large run, unless the target is too slow for it."""

FEW = 20
"""Crashes after which the engine gives up on a target, because they repeat."""

PREPARING, OVER = -1, -2
"""Values instead of a case number: before the first case, and after the last one."""

SLATE_BYTES = 4 * MAX_CASE_BYTES
"""The size of the shared memory: enough for a case whose parts are spoilt separately."""

STATUS_LOST = 255
"""Exit status that multiprocessing reports if the fork server lost the worker's own status."""


@dataclass(frozen=True, slots=True)
class Crash:
    """How a case broke the contract, and its bytes."""

    target: str
    case: int
    words: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """The number of cases of each target, and the crashes."""

    cases: dict[str, int]
    crashes: tuple[Crash, ...]

    @property
    def total(self) -> int:
        return sum(self.cases.values())


def rng_of(seed: int, target: str, case: int) -> Random:
    """Return the random generator of one case."""
    name = int.from_bytes(hashlib.sha256(f"{seed} {target}".encode()).digest()[:6], "big")
    return Random((name << 40) | case)


def planned(targets: Sequence[Target], cases: int) -> dict[str, int]:
    """Return how many cases each target gets, ``cases`` in all or a few more."""
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
    """Feed ``cases`` cases to the targets; ``seed`` determines everything but fresh keys."""
    counts = planned(targets, cases)
    FORKSERVER.set_forkserver_preload(["robustness.preloaded", "robustness.fuzz.targets"])
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE"):
        forkserver.ensure_running()  # loads the libraries once; a worker is a fork of it
    slow_first = sorted(targets, key=lambda t: counts[t.name])  # slow ones have few cases
    memory_disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(dir=memory_disk) as home,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
    ):
        feeds = [
            _Feed(target, counts[target.name], seed, Path(home) / str(number), say)
            for number, target in enumerate(slow_first)
        ]
        list(pool.map(_Feed.run, feeds))
    return Result(
        {feed.target.name: feed.fed for feed in feeds},
        tuple(crash for feed in feeds for crash in feed.crashes),
    )


class _Slate:
    """The current case and its bytes, in memory that a worker and its parent share."""

    def __init__(self) -> None:
        self._head = FORKSERVER.RawArray("q", [PREPARING, 0])
        self._data = FORKSERVER.RawArray("c", SLATE_BYTES)

    def write(self, case: int, data: bytes = b"") -> None:
        """Note a case, first without its bytes, while it is being made."""
        self._data[: len(data)] = data
        self._head[:] = case, len(data)

    def read(self) -> tuple[int, bytes]:
        case, size = self._head
        return case, self._data[:size]


@dataclass
class _Feed:
    """One target: the cases fed to it so far, by one worker after another, and its crashes."""

    target: Target
    count: int
    seed: int
    home: Path
    say: Callable[[str], None]
    fed: int = 0
    crashes: list[Crash] = field(default_factory=list)

    def run(self) -> None:
        began = time.monotonic()
        while self.fed < self.count and len(self.crashes) < FEW:
            home = self.home / str(self.fed)
            home.mkdir(parents=True)
            self._with_worker(home)
        self.say(f"{self.target.name}: {self.fed:,} cases in {time.monotonic() - began:.1f} s")

    def _with_worker(self, home: Path) -> None:
        """Let a worker feed the remaining cases until it has finished, dies or hangs."""
        slate = _Slate()
        cases = range(self.fed, self.count)
        process = FORKSERVER.Process(
            target=_work, args=(slate, home, self.target, cases, self.seed), daemon=True
        )
        process.start()
        hangs = self._watched(process, slate)
        for file in sorted(home.glob("crash-*")):
            self._note(pickle.loads(file.read_bytes()))
        case, data = slate.read()
        if process.exitcode == 0 or (case == OVER and process.exitcode == STATUS_LOST):
            self.fed = self.count
            return
        fault = (home / "fault.log").read_text()
        if hangs:
            why = f"hangs for {self.target.seconds:g} s [{_innermost(fault)}]"
        elif case < 0:
            why = f"the worker ended outside a case: {fault[-500:]}"
        else:
            why = f"dies with {process.exitcode} [{_innermost(fault)}]"
        self._note(Crash(self.target.name, case, why, data))
        self.fed = case + 1 if case >= 0 else self.count

    def _watched(self, process: BaseProcess, slate: _Slate) -> bool:
        """Wait for a worker, and kill it if a case takes too long; return whether one did."""
        known, since = PREPARING, time.monotonic()
        while process.is_alive():
            process.join(0.2)
            case, now = slate.read()[0], time.monotonic()
            if case != known or case < 0:
                known, since = case, now
            if now - since > self.target.seconds:
                process.kill()
                process.join()
                return True
        return False

    def _note(self, crash: Crash) -> None:
        self.crashes.append(crash)
        self.say(f"CRASH {crash.target} case {crash.case}: {crash.words}")


def _innermost(fault: str) -> str:
    """Return the innermost Python frames at the time when native code failed."""
    places = [line.strip() for line in fault.splitlines() if line.strip().startswith("File")]
    return " < ".join(place.rpartition("/")[2] for place in places[:3])


def _work(slate: _Slate, home: Path, target: Target, cases: range, seed: int) -> None:
    """Feed cases in a worker; write each crash to a file, and stop if there are too many."""
    with (home / "fault.log").open("w") as log:
        faulthandler.enable(log)
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        drill = target.prepare(home)
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (used + 2**30, hard))  # a gigabyte more
        for crash in islice(_crashes(target, drill, cases, seed, slate), FEW):
            (home / f"crash-{crash.case:09d}").write_bytes(pickle.dumps(crash))
    slate.write(OVER)


def _crashes(
    target: Target, drill: FuzzDrill, cases: range, seed: int, slate: _Slate
) -> Iterator[Crash]:
    forget_peak("self")
    for case in cases:
        slate.write(case)
        data = drill.make(rng_of(seed, target.name, case))[:SLATE_BYTES]
        slate.write(case, data)
        # ``getrusage`` would not do: its peak includes the memory that the parent had at the fork.
        before = peak_mb("self")
        words = judged(target, drill, data)
        more = round((peak_mb("self") - before) * 1_024_000)  # a thousand kB of 1,024 bytes
        if more > target.memory + 64 * len(data):
            words = words or f"takes {more:,} bytes for an input of {len(data):,} []"
            forget_peak("self")
        if words:
            yield Crash(target.name, case, words, data)
