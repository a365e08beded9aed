"""``opboost bench load``: many feature parties send large tables to one label party at once.

All parties are processes with mutual TLS.  They first desensitise their columns.  Then the label
party restarts with empty party folders, each party is stopped once its schema has arrived, and all
continue at the same moment, so that only the sending is timed.  For comparison, plain Flight calls
send the same bytes before and after, each to a server that has just started, like the label
party's; their median time counts.  Rows need no matching (docs/alignment.md has its cost).
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from opboost.demo.local_federation import (
    LABEL_PARTY,
    LocalFederation,
    free_port,
    started_process,
    wait_for_address,
    write_federation,
)
from opboost.errors import OpBoostError
from opboost.runtime.child_processes import python_command
from opboost_lab.bench.process_usage import child_of, peak_mb

LABEL_SERVER = "opboost.transport.label.label_server"
LIMIT_MB = 1024
"""The label server's ``memory_mb``, which is the default."""

PLAIN_CALLS = 3
"""Plain Flight calls before all parties send, and as many after."""

PATIENCE = 900.0
"""Seconds after which a run is given up."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many feature parties send how many rows and columns each."""

    parties: int
    rows: int
    columns: int


LOAD = Load(8, 1_000_000, 10)
QUICK = Load(4, 50_000, 5)


@dataclass(frozen=True, slots=True)
class Result:
    """The figures; a party's seconds run from the common start to the last column's answer."""

    load: Load
    preparing: float
    parties: dict[str, float]
    bytes: int
    training: float
    gate_mb: float
    label_mb: float
    flight: float
    """Seconds for the same bytes by a plain Flight call: the median of ``2 * PLAIN_CALLS``."""

    @property
    def sending(self) -> float:
        """Seconds until all columns had arrived."""
        return max(self.parties.values())

    @property
    def starved(self) -> float:
        """The slowest party's seconds over the fastest's."""
        return max(self.parties.values()) / min(self.parties.values())

    @property
    def values_a_second(self) -> float:
        """Values received, checked and stored per second."""
        load = self.load
        return load.parties * load.rows * load.columns / self.sending

    @property
    def over_flight(self) -> float:
        """The time of sending, over that of a plain Flight call."""
        return self.sending / self.flight


def run(load: Load) -> Result:
    """Prepare, send, train a few trees, and send the same bytes by plain Flight calls."""
    with tempfile.TemporaryDirectory() as folder:
        federation = _federation(Path(folder), load)
        started = time.perf_counter()
        _prepared(federation)
        preparing = time.perf_counter() - started
        files = sorted(Path(folder).glob("party-*/state/*/*.arrow"))
        plain = [by_flight(files) for _ in range(PLAIN_CALLS)]
        gate_mb, label_mb, begun = _sent(federation)
        plain += [by_flight(files) for _ in range(PLAIN_CALLS)]
        ends = {name: _end(federation, name) for name in federation.parties}
        (model,) = (federation.folder / LABEL_PARTY / "state").glob("*/manifest.json")
        training = model.stat().st_mtime - max(ends.values())
        return Result(
            load,
            preparing,
            {name: end - begun for name, end in ends.items()},
            sum(file.stat().st_size for file in files),
            training,
            gate_mb,
            label_mb,
            median(plain),
        )


def _federation(folder: Path, load: Load) -> LocalFederation:
    rng = np.random.default_rng(0)
    ids = pa.array([f"p{i:08d}" for i in range(load.rows)])
    tables, score = {}, np.zeros(load.rows)
    for p in range(load.parties):
        X = rng.normal(size=(load.columns, load.rows))
        score += X[0]
        names = [f"x{p}-{j}" for j in range(load.columns)]
        tables[f"party-{p + 1}"] = pa.table(dict(zip(names, X, strict=True))).append_column(
            "id", ids
        )
    y = pa.array((score > 0).astype(np.int64))
    bounds = {n: (-4.0, 4.0) for table in tables.values() for n in table.column_names if n != "id"}
    federation = write_federation(
        folder,
        pa.table({"id": ids, "y": y}),
        "y",
        tables,
        bounds,
        epsilon=0.64,
        booster={"num_boost_round": 5, "max_depth": 3},
        align="given",
    )
    config = federation.config(LABEL_PARTY)
    text = config.read_text().replace("[booster]", "[booster]\ndenoise = false")
    text = re.sub(r"listen = .*", f'listen = "127.0.0.1:{free_port()}"', text)
    config.write_text(text + f"\n[limits]\nmemory_mb = {LIMIT_MB}\n")
    return federation


@contextmanager
def _serving(federation: LocalFederation) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with started_process(federation.command(LABEL_PARTY)) as process:
        try:
            yield process, wait_for_address(process)
        finally:
            process.kill()


def _prepared(federation: LocalFederation) -> None:
    """Let all parties desensitise and send, two at a time, and delete what arrived."""
    with _serving(federation) as (_, address):
        for first in range(0, len(federation.parties), 2):
            _joined(federation, federation.parties[first : first + 2], address, "--leave")
    for parties in (federation.folder / LABEL_PARTY / "state").glob("*/parties"):
        shutil.rmtree(parties)
    for trained in (federation.folder / LABEL_PARTY / "state").glob("*/trained-*"):
        shutil.rmtree(trained)


def _sent(federation: LocalFederation) -> tuple[float, float, float]:
    """Let all send at once; return the peaks of label server and label party, and the start."""
    with _serving(federation) as (process, address):
        label_server = child_of(process.pid, LABEL_SERVER) or 0
        peaks, start = [0.0, 0.0], _Start(federation)

        def look(started: Mapping[str, subprocess.Popen[str]]) -> None:
            start.look(started)
            peaks[:] = [
                max(known, peak_mb(number))
                for known, number in zip(peaks, (label_server, process.pid), strict=True)
            ]

        _joined(federation, federation.parties, address, watch=look)
        return peaks[0], peaks[1], start.at


class _Start:
    """Stops each party whose schema has arrived, and continues all parties after the last one."""

    def __init__(self, federation: LocalFederation) -> None:
        (record,) = (federation.folder / LABEL_PARTY / "state").glob("*/job.json")
        self._boxes = record.parent / "parties"
        self._stopped: set[str] = set()
        self.at = 0.0

    def look(self, started: Mapping[str, subprocess.Popen[str]]) -> None:
        if self.at:
            return
        for name, process in started.items():
            if name not in self._stopped and (self._boxes / name / "schema").exists():
                process.send_signal(signal.SIGSTOP)
                self._stopped.add(name)
        if len(self._stopped) == len(started):
            self.at = time.time()
            for process in started.values():
                process.send_signal(signal.SIGCONT)


def _joined(
    federation: LocalFederation,
    parties: Sequence[str],
    address: str,
    *more: str,
    watch: Callable[[Mapping[str, subprocess.Popen[str]]], None] = lambda started: None,
) -> None:
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(
                started_process([*federation.command(name), "--connect", address, *more])
            )
            for name in parties
        }
        end = time.monotonic() + PATIENCE
        try:
            while any(process.poll() is None for process in started.values()):
                watch(started)
                if time.monotonic() > end:
                    raise OpBoostError("The parties did not finish in time.")
                time.sleep(0.005)
        finally:
            for process in started.values():
                process.kill()
        for name, process in started.items():
            _, words = process.communicate()
            if process.returncode:
                raise OpBoostError(f"Party {name!r} failed: {words.strip()}")


def _end(federation: LocalFederation, party: str) -> float:
    """Return when a party last finished sending, by its log, in seconds since 1970."""
    log = (federation.folder / party / "state" / "join.jsonl").read_text().splitlines()
    line = [found for text in log if (found := json.loads(text))["event"] == "sent"][-1]
    return datetime.fromisoformat(line["at"]).timestamp()


_PLAIN = """
import sys
import pyarrow.flight as flight
class Plain(flight.FlightServerBase):
    def do_put(self, context, descriptor, reader, writer):
        for _ in reader:
            pass
server = Plain("grpc+tcp://127.0.0.1:0")
print(server.port, flush=True)
sys.stdin.read()
"""


@contextmanager
def _plain_server() -> Iterator[int]:
    """Run a plain Flight server as a process, and yield its port."""
    with subprocess.Popen(
        python_command("-c", _PLAIN), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def by_flight(files: Sequence[Path]) -> float:
    """Return the seconds that a plain Flight call takes for these files."""
    with _plain_server() as port:
        client = flight.FlightClient(f"grpc+tcp://127.0.0.1:{port}")
        client.wait_for_available()
        started = time.perf_counter()
        for file in files:
            with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
                path = flight.FlightDescriptor.for_path("column")
                writer, _ = client.do_put(path, stream.schema)
                with writer:
                    for batch in stream:
                        writer.write_batch(batch)
        seconds = time.perf_counter() - started
        client.close()
        return seconds
