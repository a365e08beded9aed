"""Run many small jobs, one after the other, between two long-running parties.

Each job is complete: its own job file, mutual TLS, private set intersection, one release, a model
of three trees and a split query.  Both parties and the label server run in this process, so that
whatever a job leaves behind adds up here.  The ledger and the folders of all jobs stay, too.
"""

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from opboost.config.job_file import load_feature, load_label
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, write_federation
from opboost.transport.feature.join_job import join
from opboost.transport.label.flight_server import LabelServer, Setting
from opboost.transport.label.label_server_process import LabelServerProcess
from opboost.transport.label.run_over_network import serve
from opboost_lab.bench.child_answer import child_answer
from opboost_lab.bench.process_usage import children_of

JOBS = 1000
ROWS = 120
PARTY = "shop"


@dataclass(frozen=True, slots=True)
class Use:
    """The seconds of a job, and what this process holds after it."""

    seconds: float
    memory_kb: float
    descriptors: int
    threads: int
    """Threads that Python started; gRPC's own come and go with the load."""
    children: int
    files: int
    """Temporary files, and unfinished files (``.part``) in the parties' folders."""


class Soak(NamedTuple):
    """What many jobs leave behind; see :func:`summary`."""

    jobs: int
    kb_per_job: float
    descriptors: int
    threads: int
    children: int
    files: int
    slower: float
    """The seconds of a job at the end over those of one at the beginning."""


class ServerInProcess(LabelServerProcess):
    """A label server in this process, where what a job leaves behind stays visible."""

    def __init__(self) -> None:
        self._server: LabelServer | None = None

    def open(self, setting: dict[str, Any]) -> str:
        """Start listening and return the address."""
        self._server = LabelServer(Setting(**{**setting, "job": Path(setting["job"])}))
        self._server.limits.watch(self._server.port)
        return f"127.0.0.1:{self._server.port}"

    def check(self) -> None:
        """Do nothing: there is no process that could have ended."""

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()


def soak(jobs: int, *, as_process: bool = False) -> Soak:
    """Run this many jobs in a new process, and return what they left behind."""
    role = "process" if as_process else "thread"
    found = child_answer("-m", __name__, str(jobs), role, what="The soak")
    return summary([Use(**use) for use in found])


def summary(uses: Sequence[Use]) -> Soak:
    """Compare the first jobs after a warm-up with as many last ones: a tenth of all, at least five.

    Minima are compared, because a thread may end shortly after its job.
    """
    some = min(max(5, len(uses) // 10), len(uses) // 2)
    first, last = uses[some : 2 * some], uses[-some:]
    slope, _ = np.polyfit(range(len(uses) - some), [u.memory_kb for u in uses[some:]], 1)

    def more(figure: str) -> int:
        before, after = (min(getattr(use, figure) for use in part) for part in (first, last))
        return int(after - before)

    slower = median(u.seconds for u in last) / median(u.seconds for u in first)
    kept = last[-1].children, last[-1].files
    return Soak(len(uses), float(slope), more("descriptors"), more("threads"), *kept, slower)


def _run(jobs: int, server: type[LabelServerProcess]) -> Iterator[Use]:
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as temporary,
        ThreadPoolExecutor(1) as feature_side,
    ):
        tempfile.tempdir = temporary
        federation = _federation(Path(folder), jobs)
        for job in range(jobs):
            begun = time.perf_counter()
            _job(federation, f"soak-{job}", server, feature_side)
            yield _use(Path(folder), Path(temporary), time.perf_counter() - begun)
        tempfile.tempdir = None


def _federation(folder: Path, jobs: int) -> LocalFederation:
    rng = np.random.default_rng(0)
    ids = pa.array([f"person-{i:03d}" for i in range(ROWS)])
    label = pa.table({"id": ids, "own": rng.random(ROWS), "ill": rng.integers(0, 2, ROWS)})
    tables = {PARTY: pa.table({"id": ids, "age": rng.random(ROWS), "pay": rng.random(ROWS)})}
    bounds = {"age": (0, 1), "pay": (0, 1)}
    booster = {"num_boost_round": 3, "max_depth": 2, "nthread": 1}
    settings: dict[str, Any] = {"epsilon": 1.0, "booster": booster, "limits": {"repeats": jobs}}
    return write_federation(folder, label, "ill", tables, bounds, **settings)


def _job(
    federation: LocalFederation,
    name: str,
    server: type[LabelServerProcess],
    feature_side: ThreadPoolExecutor,
) -> None:
    """Run one job of both parties, from reading their files to the manifest."""
    for party in (LABEL_PARTY, PARTY):
        file = federation.folder / party / "job.toml"
        lines = file.read_text().splitlines()
        file.write_text("\n".join([lines[0], f'name = "{name}"', *lines[2:]]) + "\n")
    joined: list[Future[dict[str, Any]]] = []

    def opened(address: str) -> None:
        config = load_feature(federation.config(PARTY))
        joined.append(feature_side.submit(join, config, connect=address))

    def watch(where: dict[str, Any]) -> None:
        if joined and joined[0].done():
            joined[0].result()  # a feature party that failed ends the soak

    config = load_label(federation.config(LABEL_PARTY))
    with server() as label_server:
        manifest = serve(config, label_server, opened=opened, watch=watch)
        sent = joined[0].result(60)
    assert manifest["job"] == sent["job"]


def _use(folder: Path, temporary: Path, seconds: float) -> Use:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Use(
        seconds,
        pages * os.sysconf("SC_PAGE_SIZE") / 1000,
        len(os.listdir("/proc/self/fd")),
        sum(not thread.name.startswith("Dummy-") for thread in threading.enumerate()),
        len(children_of(os.getpid())),
        len([*temporary.rglob("*"), *folder.rglob("*.part")]),
    )


if __name__ == "__main__":
    roles = {"process": LabelServerProcess, "thread": ServerInProcess}
    print(json.dumps([asdict(use) for use in _run(int(sys.argv[1]), roles[sys.argv[2]])]))
