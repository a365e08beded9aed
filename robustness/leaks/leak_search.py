"""Search for raw values and IDs wherever a job leaves bytes: network, logs, errors, files.

Jobs, some of which fail, run as real processes on values that occur nowhere by chance.  The search
looks for these values in every form it knows.
"""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, write_federation
from opboost_lab.counting_proxy import CountingProxy
from robustness.bundle_office import Office
from robustness.leaks import leak_markers
from robustness.leaks.capture import Capture
from robustness.leaks.leak_markers import ODD_NUMBER, ODD_TEXT, Found, Tables, unpacked
from robustness.party_processes import StartedParties, wait_for

PARTIES = ("shop", "telco")
BOUNDS = dict.fromkeys(("income", "basket", "calls", "age"), (0.0, 100.0))


def federation_of(folder: Path, tables: Tables) -> LocalFederation:
    """Write the parties' files."""
    own, theirs = tables.tables[LABEL_PARTY], {p: tables.tables[p] for p in PARTIES}
    booster = {"num_boost_round": 5, "max_depth": 3, "nthread": 1}
    settings: Any = {"epsilon": 2.0, "booster": booster, "limits": {"minimum_rows": 50}}
    return write_federation(folder, own, "price", theirs, BOUNDS, **settings)


class Places:
    """The places where a job left bytes, and how its processes ended."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, folder / "said"
        self.said.mkdir()
        self.wire: list[tuple[str, bytes]] = []
        self.ended: dict[str, int] = {}


class Job(StartedParties):
    """The parties of a federation as processes, with a record of their messages and traffic."""

    def __init__(self, federation: LocalFederation, *, plain: bool, captured: bool = False) -> None:
        super().__init__(federation)
        self.places = Places(self.folder)
        self._more = ["--insecure-plaintext-on-loopback"] if plain else []
        self._stack = contextlib.ExitStack()
        self._relays = {p: CountingProxy(self.address, keep=True) for p in PARTIES}
        self.where = {party: relay.address for party, relay in self._relays.items()}
        self._capture = Capture(self.address, self.folder / "capture.pcapng") if captured else None
        (self.folder / "tmp").mkdir()

    def __enter__(self) -> Self:
        for watching in (self._capture, *self._relays.values()):
            if watching is not None:
                self._stack.enter_context(watching)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._stack.close()
        wire = self.places.wire
        for party, relay in self._relays.items():
            wire += [(f"wire of {party}", bytes(s)) for s in relay.sent + relay.received]
        if self._capture is not None:
            wire += [("captured wire", stream) for stream in self._capture.streams()]

    def start(self, party: str) -> None:
        command = self.command(party, *self._more)
        own = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        with (self.places.said / party).open("a") as out:
            self.processes[party] = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=own
            )

    def wait(self, *parties: str, seconds: float = 240.0) -> None:
        """Wait until these parties have ended; note -1 as the status of one that has not."""
        end = time.monotonic() + seconds
        for party in parties:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes[party].wait(max(0.1, end - time.monotonic()))
            status = self.processes[party].poll()
            self.places.ended[party] = -1 if status is None else status


class Bundles(Office):
    """A job by bundles, with every command as a process whose messages are recorded."""

    def __init__(self, federation: LocalFederation) -> None:
        super().__init__(federation, processes=True)
        self.places = Places(federation.folder)

    def tried(self, party, verb, *given, to=None):
        done = super().tried(party, verb, *given, to=to)
        name = f"{party}-{verb}-{len(given)}"
        (self.places.said / name).write_text(done.stdout + done.stderr)
        self.places.ended[name] = done.returncode
        return done


def search_places(places: Places, tables: Tables) -> list[Found]:
    """Return every value that was found where it must not be."""
    search, short = tables.search, tables.short_search
    found: list[Found] = []
    for name, stream in places.wire:
        readable = b"HTTP/2.0" in stream[:24] or stream[3:4] == b"\4"
        bodies = leak_markers.http2_bodies(stream) if readable else b""
        for where, data in (*unpacked(name, stream), *unpacked(f"{name}, bodies", bodies)):
            found += search.found(where, data)
        found += short.found(f"{name}, bodies", bodies)
    for name, data in _files(places.folder, LABEL_PARTY, *PARTIES, "said", "tmp", "out"):
        party = name.split("/", 1)[0]
        found += [
            one
            for one in search.found(name, data)
            # The label party's model may hold thresholds of the label party's own columns.
            if not (party == LABEL_PARTY and one.what == f"value of {LABEL_PARTY}")
        ]
    return found


def _files(folder: Path, *parts: str) -> Iterator[tuple[str, bytes]]:
    """Yield all files except the parties' own tables, unpacked."""
    for part in parts:
        for file in sorted((folder / part).rglob("*")):
            if file.is_file() and not file.name.startswith("table."):
                yield from unpacked(str(file.relative_to(folder)), file.read_bytes())


def whole_job(job: Job) -> None:
    """Run a job without faults."""
    job.start_all()
    job.wait(LABEL_PARTY, *PARTIES)


def killed(job: Job) -> None:
    """Kill both sides during the job and restart them."""
    job.start_all()
    bank = job.federation.folder / LABEL_PARTY
    wait_for(lambda: any(bank.glob("state/*/parties/shop/schema")), 240)
    for party in ("shop", LABEL_PARTY):
        job.kill(party)
        time.sleep(0.2)
        job.start(party)
    job.wait(LABEL_PARTY, *PARTIES)


def classes(job: Job) -> None:
    """Run a job with a text label, whose classes may occur only in the label party's model."""
    labels = [ODD_TEXT if i % 2 else "usual" for i in range(leak_markers.ROWS)]
    _column("price", lambda v: labels)(job.federation.folder / LABEL_PARTY)
    whole_job(job)


def planted(job: Job) -> None:
    """Leak on purpose: announce a column whose name is one of the values searched for."""
    home = job.federation.folder / "shop"
    _table(lambda t: t.rename_columns({"income": ODD_TEXT}))(home)
    _config('[columns."income"]', f'[columns."{ODD_TEXT}"]')(home)
    whole_job(job)


PLAYS = {"whole": whole_job, "killed": killed, "classes": classes, "planted": planted}


def refused(party: str, *changes: Callable[[Path], None]) -> Callable[[Job], None]:
    """Return a job in which one party's files are changed, so that it fails."""

    def run(job: Job) -> None:
        for change in changes:
            change(job.federation.folder / party)
        job.start_all()
        job.wait(party)

    return run


def _table(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def rewrite(home: Path) -> None:
        file = home / "table.parquet"
        pa.parquet.write_table(change(pa.parquet.read_table(file)), file)

    return rewrite


def _column(name: str, change: Callable[[list], list]) -> Callable[[Path], None]:
    def changed(table: pa.Table) -> pa.Table:
        values = pa.array(change(table[name].to_pylist()))
        return table.set_column(table.column_names.index(name), name, values)

    return _table(changed)


def _config(old: str, new: str) -> Callable[[Path], None]:
    def rewrite(home: Path) -> None:
        file = home / f"{home.name}.toml"
        text = file.read_text()
        if old not in text:
            raise ValueError(f"{old!r} is not in {file.name}.")
        file.write_text(text.replace(old, new))

    return rewrite


def _append(file: Path, text: str) -> None:
    with file.open("a") as end:
        end.write(text)


def _as_csv(row: str) -> Callable[[Path], None]:
    """Make the table a CSV file with one more row."""

    def rewrite(home: Path) -> None:
        pa.csv.write_csv(pa.parquet.read_table(home / "table.parquet"), home / "table.csv")
        (home / "table.parquet").unlink()
        _append(home / "table.csv", row)
        _config("table.parquet", "table.csv")(home)

    return rewrite


REVOKED = "\n[peers.shop]\nrevoked = true\n"
INCOME = '[columns."income"]\nbounds = [0.0, 100.0]\n'
FAILURES: dict[str, tuple[Any, ...]] = {
    "a gap": ("shop", _column("income", lambda v: [None, *v[1:]])),
    "a value out of bounds":
        ("shop", _column("income", lambda v: [ODD_NUMBER, *v[1:]]),
         _config(INCOME, INCOME + 'outside = "raise"\n')),
    "an infinite value": ("shop", _column("income", lambda v: [float("inf"), *v[1:]])),
    "text among numbers": ("shop", _column("income", lambda v: [ODD_TEXT, *map(str, v[1:])])),
    "a category that is not declared":
        ("shop", _column("income", lambda v: [ODD_TEXT, *["low"] * (len(v) - 1)]),
         _config(INCOME, '[columns."income"]\ncategories = ["low", "high"]\n')),
    "a repeated ID": ("shop", _column("id", lambda v: [v[1], *v[1:]])),
    "an ID with a hidden character":
        ("shop", _column("id", lambda v: [f"{ODD_TEXT[:5]}\u00ad{ODD_TEXT}", *v[1:]])),
    "IDs that are floats": ("telco", _column("id", lambda v: [float(x) + 0.5 for x in v])),
    "a row too long in a CSV file": ("shop", _as_csv(f'"{ODD_TEXT}",1,2,3\n')),
    "text among numbers in a CSV file":
        ("shop", _as_csv(f'"100000000000001",{ODD_TEXT},2\n')),
    "a column that is not there": ("shop", _table(lambda t: t.drop_columns(["income"]))),
    "another job file": ("shop", lambda home: _append(home / "job.toml", "# another\n")),
    "a revoked party": ("shop", lambda home: _append(home.parent / "bank/bank.toml", REVOKED)),
    "too few common rows": ("shop", _config("minimum_rows = 50", "minimum_rows = 5000")),
    "a cap that is reached": ("shop", _config("[grid]", "cap_person = 0.5\n[grid]")),
    "a repeated ID at the label party": (LABEL_PARTY, _column("id", lambda v: [v[1], *v[1:]])),
    "a label with a gap": (LABEL_PARTY, _column("price", lambda v: [None, *v[1:]])),
}  # fmt: skip
"""The failing jobs: whose files are changed, and how."""
JOBS = ("by bundles", "whole", "killed", "classes", *FAILURES)
"""Every job that must leave no raw value behind."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job: whether it ended as it should, and which raw values were found."""

    name: str
    as_meant: bool
    ended: str
    searched: int
    found: tuple[Found, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.searched:,} bytes, as meant: {self.as_meant}, {self.ended}"]
        lines += [f"  FOUND {f.what} as {f.form} in {f.where}" for f in self.found[:8]]
        return "\n".join(lines)


def run_one(name: str, seed: int, *, plain: bool = True, captured: bool = False) -> Outcome:
    """Run one job and search everything that it leaves."""
    tables = leak_markers.made_tables(seed)
    with tempfile.TemporaryDirectory(prefix="opboost-leaks-") as folder:
        federation = federation_of(Path(folder), tables)
        if name == "by bundles":
            office = Bundles(federation)
            office.model()
            places = office.places
        else:
            with Job(federation, plain=plain, captured=captured) as job:
                (PLAYS.get(name) or refused(*FAILURES[name]))(job)
            places = job.places
        statuses = places.ended.values()
        as_meant = min(statuses) > 0 if name in FAILURES else not any(statuses)
        found = search_places(places, tables)
        if name == "classes":  # they are the label party's own words
            found = [f for f in found if not f.where.startswith(f"{LABEL_PARTY}/model")]
        size = sum(len(s) for _, s in places.wire)
        size += sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
        last = {f.name: f.read_text()[-300:] for f in sorted(places.said.iterdir())}
        ended = str(places.ended) if as_meant else f"{places.ended}, last said: {last}"
    return Outcome(name, as_meant, ended, size, tuple(found))
