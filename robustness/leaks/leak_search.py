"""A search for raw values and IDs wherever a job leaves bytes: wires, logs, errors, files.

``python -m robustness.leaks.leak_search --seed 7`` runs whole jobs with values that occur nowhere
by chance, jobs that fail among them, as real processes, and looks for those values in every form
it knows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, free_port, write_federation
from opboost_lab.counting_proxy import CountingProxy
from robustness.leaks.capture import Capture
from robustness.leaks.leak_markers import (
    Found,
    Search,
    forms_of_number,
    forms_of_text,
    http2_bodies,
    short_forms_of_number,
    unpacked,
)

COMMON, ALONE = 80, 20
"""Rows that all parties have, and rows that each has alone."""

PARTIES = ("shop", "telco")
BOUNDS = {
    "income": (0.0, 100.0),
    "basket": (0.0, 100.0),
    "calls": (0.0, 100.0),
    "age": (0.0, 100.0),
}
ODD_TEXT = "zq7-canary-Xylophon"
ODD_NUMBER = 8123.447192953717
RUNNING = -1
"""In place of an exit status: the process had to be stopped."""

PLAIN = "--insecure-plaintext-on-loopback"


@dataclass(frozen=True)
class Tables:
    """What each party holds, and the patterns that stand for it."""

    tables: dict[str, pa.Table]

    @cached_property
    def search(self) -> Search:
        """For all IDs and all values of all parties."""
        return Search(self._patterns())

    @cached_property
    def short_search(self) -> Search:
        """For the four-byte forms of a few values."""
        patterns = (
            (f"value of {party}", form, pattern)
            for party in self.tables
            for value in self._numbers(party)[:30]
            for form, pattern in short_forms_of_number(value)
        )
        return Search(patterns, 4)

    def _patterns(self) -> Iterator[tuple[str, str, bytes]]:
        ids = {str(v) for t in self.tables.values() for v in t.column("id").to_pylist()}
        for identifier in sorted(ids):
            for form, pattern in forms_of_text(identifier):
                yield "ID", form, pattern
        for party in self.tables:
            for value in self._numbers(party):
                for form, pattern in forms_of_number(value):
                    yield f"value of {party}", form, pattern
        for form, pattern in (*forms_of_text(ODD_TEXT), *forms_of_number(ODD_NUMBER)):
            yield "odd value", form, pattern

    def _numbers(self, party: str) -> list[float]:
        table = self.tables[party]
        return [v for name in table.column_names if name != "id" for v in table[name].to_pylist()]


def made_tables(seed: int) -> Tables:
    """Tables of IDs and values that occur nowhere by chance; one party holds its IDs as numbers."""
    rng = np.random.default_rng(seed)
    count = COMMON + 3 * ALONE
    ids = 10**14 + rng.choice(8 * 10**14, count, replace=False)

    def rows(k: int) -> np.ndarray:
        mine = np.r_[0:COMMON, COMMON + k * ALONE : COMMON + (k + 1) * ALONE]
        return ids[rng.permutation(mine)]

    def numbers() -> pa.Array:
        return pa.array(rng.uniform(10, 90, COMMON + ALONE))

    texts = [pa.array(rows(k).astype(str).tolist()) for k in range(2)]
    bank = pa.table({"id": texts[0], "age": numbers(), "price": numbers()})
    shop = pa.table({"id": texts[1], "income": numbers(), "basket": numbers()})
    telco = pa.table({"id": pa.array(rows(2)), "calls": numbers()})
    return Tables({LABEL_PARTY: bank, "shop": shop, "telco": telco})


@dataclass
class Places:
    """Where bytes came to lie."""

    wire: list[tuple[str, bytes]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    ended: dict[str, int] = field(default_factory=dict)


def federation_of(folder: Path, tables: Tables, **settings: object) -> LocalFederation:
    """The parties' files."""
    held = tables.tables
    return write_federation(
        folder,
        held[LABEL_PARTY],
        "price",
        {p: held[p] for p in PARTIES},
        BOUNDS,
        epsilon=2.0,
        booster={"num_boost_round": 5, "max_depth": 3, "nthread": 1},
        limits={"minimum_rows": 50},
        **settings,
    )


class Job:
    """The parties of a scene as processes, whose words and bytes are kept."""

    def __init__(self, federation: LocalFederation, *, plain: bool, captured: bool = False) -> None:
        self.federation, self.more = federation, [PLAIN] if plain else []
        self._capture: Capture | None = None
        self._captured = captured
        self.places = Places(folder=federation.folder)
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._files: dict[str, Path] = {}
        self._stack = contextlib.ExitStack()
        self._relays: dict[str, CountingProxy] = {}
        self._port = free_port()
        config = federation.config(LABEL_PARTY)
        config.write_text(config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{self._port}"))
        (federation.folder / "tmp").mkdir(exist_ok=True)

    def __enter__(self) -> Job:
        if self._captured:
            file = self.federation.folder / "capture.pcapng"
            self._capture = self._stack.enter_context(Capture(self._port, file))
        for party in PARTIES:
            relay = CountingProxy(f"127.0.0.1:{self._port}", keep=True)
            self._relays[party] = self._stack.enter_context(relay)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(20)
        self._stack.close()
        for party, relay in self._relays.items():
            self.places.wire += [(f"wire of {party}", bytes(stream)) for stream in relay.kept]
        if self._capture is not None:
            self.places.wire += [("captured wire", stream) for stream in self._capture.streams()]

    def start(self, party: str, *more: str) -> subprocess.Popen[str]:
        """Start a party; what it says goes to a file, as a service's words go to a journal."""
        command = [*self.federation.command(party), *self.more, *more]
        if party != LABEL_PARTY:
            command += ["--connect", self._relays[party].address]
        said = self.federation.folder / "said" / f"{party}-{len(self._files)}.txt"
        said.parent.mkdir(exist_ok=True)
        self._files[str(said)] = said
        environment = {**os.environ, "TMPDIR": str(self.federation.folder / "tmp")}
        with said.open("w") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, text=True, env=environment
            )
        self.processes[party] = process
        return process

    def start_all(self) -> None:
        """Start every party."""
        for party in (LABEL_PARTY, *PARTIES):
            self.start(party)

    def wait(self, *parties: str, seconds: float = 240.0) -> None:
        """Until these have ended."""
        end = time.monotonic() + seconds
        for party in parties:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes[party].wait(max(0.1, end - time.monotonic()))
            status = self.processes[party].poll()
            self.places.ended[party] = RUNNING if status is None else status

    def wait_for(self, pattern: str, seconds: float = 240.0) -> None:
        """Until a file of the label party's is there."""
        end = time.monotonic() + seconds
        while not list((self.federation.folder / LABEL_PARTY).glob(pattern)):
            if time.monotonic() > end:
                raise TimeoutError(f"{pattern} did not appear.")
            time.sleep(0.02)


def search_places(places: Places, tables: Tables) -> list[Found]:
    """Everything that lies where it must not."""
    search, short = tables.search, tables.short_search
    found: list[Found] = []
    for name, stream in places.wire:
        plain = http2_bodies(stream) if b"HTTP/2.0" in stream[:24] or stream[3:4] == b"\4" else b""
        for where, data in (*unpacked(name, stream), *unpacked(f"{name}, bodies", plain)):
            found += search.found(where, data)
        found += short.found(f"{name}, bodies", plain)
    for name, data in _files(places.folder, LABEL_PARTY, *PARTIES, "said", "tmp", "out"):
        party = name.split("/", 1)[0]
        found += [
            one
            for one in search.found(name, data)
            # A model of the label party's own columns holds thresholds of them: they are its own.
            if not (party == LABEL_PARTY and one.what == f"value of {LABEL_PARTY}")
        ]
    return found


def _files(folder: Path, *parts: str) -> Iterator[tuple[str, bytes]]:
    """All files but the parties' own tables, unpacked."""
    for part in parts:
        for file in sorted((folder / part).rglob("*")):
            if file.is_file() and not file.name.startswith("table."):
                yield from unpacked(str(file.relative_to(folder)), file.read_bytes())


def whole_job(job: Job) -> None:
    """All goes well."""
    job.start_all()
    job.wait(LABEL_PARTY, *PARTIES)


def killed(job: Job) -> None:
    """Both sides are killed in the middle and started again."""
    job.start_all()
    job.wait_for("state/*/parties/shop/schema")
    for party in ("shop", LABEL_PARTY):
        job.processes[party].send_signal(signal.SIGKILL)
        job.processes[party].wait(20)
        time.sleep(0.2)
        job.start(party)
    job.wait(LABEL_PARTY, *PARTIES)


def classes(job: Job) -> None:
    """The label is text: its classes, one of them odd, are in the label party's model alone."""
    labels = [ODD_TEXT if i % 2 else "usual" for i in range(COMMON + ALONE)]
    _column("price", lambda v: labels)(job.federation.folder / LABEL_PARTY)
    whole_job(job)


def planted(job: Job) -> None:
    """A leak on purpose: a column whose name, which is announced, is a value to be searched for."""
    home = job.federation.folder / "shop"
    _both(
        _table(
            lambda t: t.rename_columns([ODD_TEXT if n == "income" else n for n in t.column_names])
        ),
        _config('[columns."income"]', f'[columns."{ODD_TEXT}"]'),
    )(home)
    whole_job(job)


def refused(party: str, change: Callable[[Path], None]) -> Callable[[Job], None]:
    """One party's files are changed, and it fails."""

    def run(job: Job) -> None:
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


def _both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def rewrite(home: Path) -> None:
        for change in changes:
            change(home)

    return rewrite


def _as_csv(spoil: Callable[[str], str]) -> Callable[[Path], None]:
    def rewrite(home: Path) -> None:
        pa.csv.write_csv(pa.parquet.read_table(home / "table.parquet"), home / "table.csv")
        (home / "table.parquet").unlink()
        (home / "table.csv").write_text(spoil((home / "table.csv").read_text()))
        _config("table.parquet", "table.csv")(home)

    return rewrite


def _job_file(home: Path) -> None:
    file = home / "job.toml"
    file.write_text(file.read_text() + "# another\n")


def _revoked(home: Path) -> None:
    bank = home.parent / LABEL_PARTY / f"{LABEL_PARTY}.toml"
    bank.write_text(bank.read_text() + "\n[peers.shop]\nrevoked = true\n")


INCOME = '[columns."income"]\nbounds = [0.0, 100.0]\n'
FAILURES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a gap": ("shop", _column("income", lambda v: [None, *v[1:]])),
    "a value out of bounds": (
        "shop",
        _both(
            _column("income", lambda v: [ODD_NUMBER, *v[1:]]),
            _config(INCOME, INCOME + 'outside = "raise"\n'),
        ),
    ),
    "an infinite value": ("shop", _column("income", lambda v: [float("inf"), *v[1:]])),
    "text among numbers": ("shop", _column("income", lambda v: [ODD_TEXT, *map(str, v[1:])])),
    "a category that is not declared": (
        "shop",
        _both(
            _column("income", lambda v: [ODD_TEXT, *["low"] * (len(v) - 1)]),
            _config(INCOME, '[columns."income"]\ncategories = ["low", "high"]\n'),
        ),
    ),
    "a repeated ID": ("shop", _column("id", lambda v: [v[1], *v[1:]])),
    "an ID with a hidden character": (
        "shop",
        _column("id", lambda v: [f"{ODD_TEXT[:5]}\u00ad{ODD_TEXT}", *v[1:]]),
    ),
    "IDs that are floats": ("telco", _column("id", lambda v: [float(x) + 0.5 for x in v])),
    "a row too long in a CSV file": ("shop", _as_csv(lambda t: t + f'"{ODD_TEXT}",1,2,3\n')),
    "text among numbers in a CSV file": (
        "shop",
        _as_csv(lambda t: t + f'"100000000000001",{ODD_TEXT},2\n'),
    ),
    "a column that is not there": ("shop", _table(lambda t: t.drop_columns(["income"]))),
    "another job file": ("shop", _job_file),
    "a revoked party": ("shop", _revoked),
    "too few common rows": ("shop", _config("minimum_rows = 50", "minimum_rows = 5000")),
    "a cap that is reached": ("shop", _config("[grid]", "cap_person = 0.5\n[grid]")),
    "a repeated ID at the label party": (LABEL_PARTY, _column("id", lambda v: [v[1], *v[1:]])),
    "a label with a gap": (LABEL_PARTY, _column("price", lambda v: [None, *v[1:]])),
}
"""What goes wrong, at which party, and how its files are spoilt."""


def bundles(federation: LocalFederation) -> Places:
    """The same job by sealed files, every command a process."""
    places = Places(folder=federation.folder)
    (federation.folder / "said").mkdir()

    def run(party: str, verb: str, *given: str) -> dict[str, str]:
        out = federation.folder / "out" / party
        where = [] if verb == "finish" else ["--to", str(out)]
        before = set(out.glob("*")) if out.exists() else set()
        command = [
            sys.executable,
            "-m",
            "opboost",
            "bundle",
            verb,
            "-c",
            str(federation.config(party)),
        ]
        done = subprocess.run(
            [*command, *given, *where], capture_output=True, text=True, timeout=120
        )
        said = federation.folder / "said" / f"{party}-{verb}-{len(given)}.txt"
        said.write_text(done.stdout + done.stderr)
        places.ended[said.stem] = done.returncode
        new = sorted(set(out.glob("*")) - before) if out.exists() else []
        return {p: str(f) for f in new for p in (*PARTIES, LABEL_PARTY) if f"-{p}." in f.name} or {
            str(i): str(f) for i, f in enumerate(new)
        }

    sent = run(LABEL_PARTY, "align")
    met = [next(iter(run(p, "align", sent[p]).values())) for p in PARTIES]
    sent = run(LABEL_PARTY, "align", *met)
    exports = [next(iter(run(p, "export", sent[p]).values())) for p in PARTIES]
    sent = run(LABEL_PARTY, "split-query", *exports)
    answers = [next(iter(run(p, "answer", sent[p]).values())) for p in PARTIES]
    run(LABEL_PARTY, "finish", *answers)
    return places


@dataclass(frozen=True, slots=True)
class Outcome:
    """One job: whether it ended as it should, and what was found of raw values and IDs."""

    name: str
    as_meant: bool
    ended: str
    searched: int
    found: tuple[Found, ...]


def run_one(name: str, seed: int, *, plain: bool = True, captured: bool = False) -> Outcome:
    """Run one job and search everything that it left."""
    tables = made_tables(seed)
    with tempfile.TemporaryDirectory(prefix="opboost-leaks-") as folder:
        federation = federation_of(Path(folder), tables)
        if name == "by bundles":
            places = bundles(federation)
            as_meant = not any(places.ended.values())
        else:
            plays: dict[str, Callable[[Job], None]] = {
                "whole": whole_job,
                "killed": killed,
                "classes": classes,
                "planted": planted,
            }
            with Job(federation, plain=plain, captured=captured) as job:
                (plays.get(name) or refused(*FAILURES[name]))(job)
            places = job.places
            statuses = places.ended.values()
            as_meant = min(statuses) > 0 if name in FAILURES else not any(statuses)
        found = search_places(places, tables)
        if name == "classes":  # the label party's own words in its own model
            found = [f for f in found if not f.where.startswith(f"{LABEL_PARTY}/model")]
        size = sum(len(s) for _, s in places.wire)
        size += sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
        shutil.rmtree(Path(folder) / "certs", ignore_errors=True)
        last = {f.name: f.read_text()[-300:] for f in sorted((Path(folder) / "said").glob("*"))}
        ended = str(places.ended) if as_meant else f"{places.ended}, last said: {last}"
    return Outcome(name, as_meant, ended, size, tuple(found))


def main() -> None:
    ask = argparse.ArgumentParser()
    ask.add_argument("--seed", type=int, default=int(time.time()))
    ask.add_argument("--only", default=None)
    ask.add_argument("--captured", action="store_true", help="search what tshark sees too")
    asked = ask.parse_args()
    print(f"seed {asked.seed}")
    names = [asked.only] if asked.only else ["whole", "killed", "classes", "by bundles", *FAILURES]
    for name in names:
        for plain in (True, False) if name == "whole" else (True,):
            one = run_one(name, asked.seed, plain=plain, captured=asked.captured)
            print(
                f"{name}: {'as meant' if one.as_meant else 'NOT AS MEANT'}, {one.searched:,} bytes"
            )
            if not one.as_meant:
                print(f"  ended with {one.ended}")
            for found in one.found[:8]:
                print(f"  FOUND {found.what} as {found.form} in {found.where}")


if __name__ == "__main__":
    main()
