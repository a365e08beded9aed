"""Count how often the same rows are released, in this process and in its worker processes.

The losses of releases of the same rows add up, whichever code makes them: a search that refits,
code that works on a copy of the table, a worker of joblib or Dask.  Each process counts releases in
memory, by a keyed hash of each row's private values.  The counts only serve to state the guarantee:
no noise depends on them.

Each row counts as one person. A row that occurs twice in one table counts once for that release: if
both rows are about the same person, the release reveals twice what is counted. A row in which one
value has changed counts as a new row, so its earlier losses are not added.

Every pickled estimator carries the key of the hashes and the name of a folder for reports. Both
belong to the process that pickled it or, if that is a worker, to the process to which the worker
reports. A process that unpickles the estimator on the same machine, or a forked child, writes its
counts into that folder. Only the user can read the folder. It is removed when the process ends, but
not if the process is killed. It holds the hashes, but not their key: anyone who has both the folder
and a pickle can test guesses of whole rows, and can recover rows of few columns with few values by
trying them all.
"""

from __future__ import annotations

import atexit
import io
import json
import multiprocessing
import os
import secrets
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost._typing import BoolArray, IntArray, Words
from opboost.budgets.release_terms import Terms
from opboost.errors import DataError
from opboost.storage import atomic_files

CHILD = (
    "another process started this one or sent it estimators: releases in other processes are not "
    "counted"
)
SENT = (
    "copies of estimators were sent to other processes: releases there are counted only if those "
    "processes are on this machine and report back"
)
LOST = "reports of other processes are lost: the releases in them are not counted"

UNDESCRIBED = "in another process, by a mechanism that no file describes"


@dataclass(frozen=True, slots=True)
class Home:
    """Where other processes report their releases to one process.

    ``token`` names the folder for reports; ``secret`` is the key of the rows' hashes.
    """

    token: str
    secret: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Home:
        """Return a home with a new token and secret, which no other process knows."""
        return cls(secrets.token_hex(16), secrets.token_bytes(32))

    @property
    def folder(self) -> Path:
        """The folder for reports, which exists while reports are expected."""
        return Path(tempfile.gettempdir()) / f"opboost-releases-{self.token}"

    def is_open(self) -> bool:
        """Return whether the folder exists on this machine and belongs to this user."""
        try:
            info = self.folder.stat(follow_symlinks=False)
        except OSError:
            return False
        ours = not hasattr(os, "getuid") or info.st_uid == os.getuid()
        return stat.S_ISDIR(info.st_mode) and ours

    def keys(self, sums: Words) -> Words:
        """Return the distinct keyed hashes of rows, sorted: the AES of one block per row.

        ``sums`` are the rows' hashes without a key.  Equal rows of a table have one hash, so a
        release counts once for all of them.
        """
        blocks = np.zeros((len(sums), 2), dtype=np.uint64)
        blocks[:, 0] = sums
        cipher = Cipher(algorithms.AES256(self.secret), modes.ECB()).encryptor()
        return distinct_words(np.frombuffer(cipher.update(blocks.tobytes()), np.uint64)[::2])


def distinct_words(words: Words) -> Words:
    """Return the distinct words, sorted; ``np.unique`` hashes first, which is far slower.

    >>> distinct_words(np.array([7, 3, 7], dtype=np.uint64)).tolist()
    [3, 7]
    """
    found = np.sort(words)
    fresh = np.append(True, found[1:] != found[:-1])[: len(found)]
    return np.asarray(found[fresh])


class Table(NamedTuple):
    """How often each row was released; ``keys`` are the keyed hashes of the rows, sorted."""

    keys: Words = np.zeros(0, dtype=np.uint64)
    counts: IntArray = np.zeros(0, dtype=np.int32)

    def plus(self, keys: Words) -> Table:
        """Return this table with one more release of the rows with these hashes."""
        place, found = self._find(keys)
        counts = self.counts.copy()
        counts[place[found]] += 1
        fresh, place = keys[~found], place[~found]
        return Table(np.insert(self.keys, place, fresh), np.insert(counts, place, 1))

    def of(self, keys: Words) -> IntArray:
        """Return how often each row with these hashes was released."""
        place, found = self._find(keys)
        counts = np.zeros(len(keys), dtype=np.int64)
        counts[found] = self.counts[place[found]]
        return counts

    def _find(self, keys: Words) -> tuple[IntArray, BoolArray]:
        place = np.searchsorted(self.keys, keys)
        found = np.zeros(len(keys), dtype=np.bool_)
        inside = place < len(self.keys)
        found[inside] = self.keys[place[inside]] == keys[inside]
        return place, found


@dataclass(slots=True)
class Tally:
    """This process's releases by their terms, with rows hashed under the key of one home."""

    home: Home
    tables: dict[Terms, Table] = field(default_factory=dict)
    parent: int | None = None  # the id of the home's owner, if this process was forked from it

    def add(self, terms: Terms, sums: Words) -> Words:
        """Count one release, and return the keyed hashes of its rows; ``sums`` have no key."""
        keys = self.home.keys(sums)
        self.tables[terms] = self.tables.get(terms, Table()).plus(keys)
        return keys

    def report(self, terms: Terms, process: str) -> bool:
        """Write the counts of releases under these terms into the home's folder.

        Return False if the folder is gone, because the process that owns it has ended.
        """
        if self.parent is not None and _is_alive(self.parent):
            self.home.folder.mkdir(mode=0o700, exist_ok=True)
        if not self.home.is_open():
            return False
        number = list(self.tables).index(terms)
        out = io.BytesIO()
        table = self.tables[terms]
        np.savez(
            out, keys=table.keys, counts=table.counts, terms=np.frombuffer(_described(terms), "u1")
        )
        try:
            atomic_files.write(
                self.home.folder / f"{process}-{number}.npz", out.getvalue(), mode=0o600
            )
        except FileNotFoundError:  # the process that owns the home has just ended
            return False
        return True


class Register:
    """The releases that this process counts: its own, and those that others report to it."""

    def __init__(self, own: Tally | None = None, others: list[Tally] | None = None) -> None:
        self._own = own or Tally(Home.fresh())
        self._others = {tally.home.token: tally for tally in others or []}
        self._process = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._sent = self._opened = self._lost = False
        self._is_child = bool(others)

    def note(self, terms: Terms, sums: Words) -> Words:
        """Count a release here and in every home to which this process reports.

        Return the keyed hashes of the rows.  If a home exists but the report cannot be written
        there, refuse the release, because the count of that home's process would lack it.
        """
        with self._lock:
            for token, tally in list(self._others.items()):
                tally.add(terms, sums)
                try:
                    reported = tally.report(terms, self._process)
                except OSError as error:
                    raise DataError(
                        f"The release cannot be counted: {tally.home.folder} cannot be written "
                        f"({os.strerror(error.errno or 0)})",
                        hint="Free some space there, or set TMPDIR to another folder.",
                    ) from None
                if not reported:
                    del self._others[token]
            return self._own.add(terms, sums)

    def counts(self, keys: Words) -> dict[Terms, IntArray]:
        """Return, by terms, how often each row with these hashes was released.

        This includes releases that other processes reported.
        """
        with self._lock:
            tables = [*self._own.tables.items(), *self._reports()]
            found: dict[Terms, IntArray] = {}
            for terms, table in tables:
                counts = table.of(keys)
                if counts.any():
                    found[terms] = found.get(terms, np.zeros_like(counts)) + counts
            return found

    def notes(self, terms: Terms) -> list[str]:
        """Return sentences that say which releases the counts leave out.

        ``terms`` are those of the estimator whose guarantee is stated.
        """
        with self._lock:
            said = []
            if self._is_child or multiprocessing.current_process().name != "MainProcess":
                said.append(CHILD)
            known = {*self._own.tables, *(reported for reported, _ in self._reports())}
            if self._sent:
                said.append(SENT)
            if self._lost or (self._opened and not self._own.home.is_open()):
                said.append(LOST)
        beside = {n for t in known if t.names != terms.names for n in t.names & terms.names}
        if beside:
            names = ", ".join(map(repr, sorted(beside)))
            said.append(f"releases of {names} together with other private columns are not counted")
        return said

    def _reports(self) -> Iterator[tuple[Terms, Table]]:
        """Yield the counts that other processes reported to this one, with their terms."""
        for file in sorted(self._own.home.folder.glob("[!.]*.npz")):
            try:
                with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
                    terms = Terms.from_dict(json.loads(arrays["terms"].tobytes()))
                    table = Table(arrays["keys"], arrays["counts"])
            except (OSError, ValueError, KeyError, BadZipFile):  # damaged, or gone
                self._lost = True
                continue
            yield terms, table

    def leave(self) -> Home | None:
        """Note that an estimator is pickled, and return the home to which its copy should report.

        In a worker process, this is the home to which the worker itself reports.  Return None if no
        folder for reports can be made.
        """
        with self._lock:
            if self._others and not self._sent:
                return next(iter(self._others.values())).home
            self._sent = True
            with suppress(OSError):  # a machine without a temporary folder can still pickle
                if not self._opened:
                    self._own.home.folder.mkdir(mode=0o700, exist_ok=True)
                    self._opened = True
                return self._own.home
            return None

    def arrive(self, home: Home | None) -> None:
        """Note that an estimator was unpickled; ``home`` is the one that its pickle names.

        If another process made the pickle, report to that home from now on, while it is open.
        """
        with self._lock:
            if home is not None and home.token == self._own.home.token:
                return
            self._is_child = True
            if home is not None and home.is_open():
                self._others.setdefault(home.token, Tally(home))

    def forked(self, parent: int) -> Register:
        """Return the register of a forked child.

        The child starts with its parent's counts.  It reports to its parent, and to every home to
        which its parent reported.
        """
        own, inherited = self._own, [Tally(t.home, parent=t.parent) for t in self._others.values()]
        copy = Tally(Home(Home.fresh().token, own.home.secret), own.tables)
        return Register(copy, [*inherited, Tally(own.home, parent=parent)])

    def close(self) -> None:
        """Remove the folder for reports."""
        shutil.rmtree(self._own.home.folder, ignore_errors=True)


def _described(terms: Terms) -> bytes:
    try:
        return json.dumps(terms.to_dict(), default=str).encode()
    except DataError:  # a user's own mechanism
        return json.dumps(Terms((), lacking=UNDESCRIBED).to_dict()).encode()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_register, _pid = Register(), os.getpid()


def register() -> Register:
    """Return this process's register."""
    _forked()  # in case this process was forked without running the hook below
    return _register


def begin_anew() -> None:
    """Forget all counts and stop reporting, as if this process had just started.

    This is for tests, and for children that are forked only because that starts them faster.
    """
    global _register, _pid
    register().close()
    _register, _pid = Register(), os.getpid()


def _forked() -> None:
    """Give this process its own register if it is a forked child."""
    global _register, _pid
    if os.getpid() != _pid:
        _register, _pid = _register.forked(_pid), os.getpid()


atexit.register(lambda: _register.close())
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forked)


class Travels:
    """A mixin for estimators: their pickles say where copies report their releases."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state if _stays() else {**state, "_home": register().leave()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_home" in state:
            register().arrive(state["_home"])
        rest = {name: value for name, value in state.items() if name != "_home"}
        super().__setstate__(rest)  # type: ignore[misc]


def _stays() -> bool:
    """Return whether a pickle stays in this process: for ``copy``, or for joblib's hash.

    The hash must be the same in every process: if ``joblib.Memory`` keeps a release on disk,
    another run must find the release there instead of drawing again.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in ("copy", "joblib.hashing"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
