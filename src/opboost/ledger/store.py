"""The ledger: a folder with a chain of entries and their runs, and a key kept elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray, Words
from opboost.columns.row_ids import Spelling
from opboost.errors import ConfigError, DataError, ParameterError, PrivacyError
from opboost.ledger import chain_witness
from opboost.ledger.chain import Chain, Entry
from opboost.ledger.database import is_read_only
from opboost.ledger.key_file import Key, KeyFile
from opboost.ledger.release_members import Members
from opboost.ledger.run_files import Run, RunFile, clear
from opboost.ledger.score_charge import Reads, score_reads
from opboost.storage import atomic_files

T = TypeVar("T")

FORMAT_VERSION = 2
CHAIN_FILE = "ledger.sqlite"
RUNS_FOLDER = "runs"

UNITS_PER_EPSILON = 10**9
"""Levels are counted in billionths, rounded up, so that sums are exact."""

UNBOUNDED = 2**62
"""The amount that a release without a bound spends (Local-map reveals a value's run of cells)."""

REWRITTEN = ("rotate", "merge", "forget")
"""The kinds of entries that rewrite runs."""

Changed = Literal["keep", "redraw"]
"""What happens if a cell's value changes within a period: keep its draw, or redraw it."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that may ever be spent on one person: on one attribute, and in all."""

    attribute: float | None = None
    person: float | None = None

    def __post_init__(self) -> None:
        for name, cap in (("attribute", self.attribute), ("person", self.person)):
            if cap is not None and not 0 < cap < float("inf"):
                raise ParameterError(f"The cap per {name} must be above zero; got {cap!r}.")


class Ledger:
    """A feature party's ledger.

    Args:
        folder: Where the chain and the runs are kept.
        key: The key file, outside that folder.  It is created with a new ledger.
        caps: The most that may be spent on one person, over all recipients, jobs and periods.
        new: Start an empty ledger even if the key exists.
        ids: For a new ledger: with ``"canonical"``, spellings of an ID that differ in case, width
            or surrounding spaces mean one person; with ``"exact"`` they do not.
        changed: For a new ledger: whether a draw is kept when its value changes (``"keep"``) or
            redrawn (``"redraw"``: no bound over time).

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as place:
    ...     home = pathlib.Path(place)
    ...     with Ledger(home / "ledger", home / "keys" / "ledger.key") as ledger:
    ...         [entry.kind for entry in ledger.entries()], ledger.ids, ledger.changed
    (['open'], 'canonical', 'keep')
    """

    def __init__(
        self,
        folder: str | Path,
        key: str | Path,
        caps: Caps | None = None,
        *,
        new: bool = False,
        ids: Spelling | None = None,
        changed: Changed | None = None,
    ) -> None:
        self.folder, self.caps = Path(folder), caps or Caps()
        self.key_path = Path(key)
        KeyFile.check_place(self.key_path, self.folder)
        self._check_there(new)  # before anything is created, even in an empty mount point
        read_only = is_read_only(self.folder / CHAIN_FILE)
        if not read_only:
            _make_private(self.folder)
        self._files: dict[str, RunFile] = {}
        with nullcontext() if read_only else atomic_files.waiting(self.folder / "creating"):
            is_new = self._check_there(new)
            self._chain = Chain(self.folder / CHAIN_FILE)
            try:
                self._open(is_new, ids, changed)
            except BaseException:
                self._chain.close()
                raise

    def _check_there(self, new: bool) -> bool:
        """Return whether to make a new ledger; refuse a lost ledger, or ``new`` if one exists."""
        there = (self.folder / CHAIN_FILE).exists()
        if not there and self.key_path.exists() and not new:
            raise chain_witness.missing(self.folder, self.key_path)
        if there and new:
            raise ConfigError(
                f"There is a ledger in {self.folder} already. Leave out --new-ledger."
            )
        return not there

    def _open(self, is_new: bool, ids: Spelling | None, changed: Changed | None) -> None:
        if is_new:
            chain_witness.beside(self.key_path).unlink(missing_ok=True)
        first = self._chain.entry(0)
        if first is not None:
            self._check_format(first)
        self._check_length()
        self._keys = KeyFile.read(self.key_path, self.folder, new=first is None)
        if first is None:
            about = {"ids": ids or "canonical", "changed": changed or "keep"}
            body = {"format": FORMAT_VERSION, "identity": self._keys.oldest.name, **about}
            with self.writing():
                first = self.append("open", body)
        begun = first.body
        if first.kind != "open" or not _is_begun(begun):
            raise first.damaged()
        self._check_keys(begun["identity"])
        self.ids: Spelling = begun["ids"]
        _check_setting("ids", ids, self.ids, "It is chosen when a ledger is created.")
        later = "It can change only with a new period: run opboost ledger renew."
        _check_setting("changed", changed, self.changed, later)

    def _check_format(self, first: Entry) -> None:
        found = first.body.get("format")
        if found == 1 or self._chain.has_table("noise"):
            raise ConfigError(
                f"The ledger in {self.folder} has format 1, of version 0.1; this release reads "
                f"format {FORMAT_VERSION}. Run: opboost ledger migrate -c FILE --table TABLE"
            )
        if found != FORMAT_VERSION:
            raise ConfigError(
                f"The ledger in {self.folder} has format {found}; this release reads format "
                f"{FORMAT_VERSION}. Use the release that wrote it."
            )

    def _check_length(self) -> None:
        for file in (self.folder / chain_witness.FOLDER_NOTE, chain_witness.beside(self.key_path)):
            before = chain_witness.noted(file)
            if before is not None:
                entry = self.entry(before.number)
                if entry is None or entry.hash != before.hash:
                    raise chain_witness.shorter(self.folder, before)

    def _check_keys(self, identity: str) -> None:
        for name in self._chain.key_names():
            if self._keys.named(name) is None:
                raise PrivacyError(
                    f"The ledger was written under key {name}, which the key file does not hold. "
                    "Without it, people would not be recognised, and their values would be "
                    "released again. Restore it."
                )
        if identity != self._keys.oldest.name:
            raise PrivacyError(
                f"The last line of {self.key_path} is not the key under which the ledger knows "
                "people: everyone would count as a new person. Restore that line."
            )

    def close(self) -> None:
        """Close the files."""
        self._files.clear()
        self._chain.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # The chain

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Append all entries inside the block in one transaction."""
        with self._chain.writing():
            yield
        if (added := self._chain.added) is not None:
            head = chain_witness.ChainHead(added.number, added.hash)
            chain_witness.note(self.folder / chain_witness.FOLDER_NOTE, head)
            chain_witness.note_beside(self.key_path, head)

    def append(self, kind: str, body: dict[str, Any]) -> Entry:
        """Append a new entry; call this only within :meth:`writing`."""
        return self._chain.append(self.key, kind, body)

    def head(self) -> Entry:
        """Return the last entry."""
        found = self._chain.head()
        assert found is not None, "a ledger begins with an entry"
        return found

    def entry(self, number: int) -> Entry | None:
        """Return the entry with a number; None if the chain is shorter."""
        return self._chain.entry(number)

    def entries(self, *kinds: str) -> Iterator[Entry]:
        """Return all entries, or those of some kinds, from the first on."""
        return self._chain.entries(*kinds)

    def sound(self) -> list[str]:
        """Return what SQLite itself finds wrong with the chain's file."""
        return self._chain.sound()

    def score_reads(self) -> Reads:
        """Return all scores that were ever reserved, and the attributes that each reads."""
        return score_reads(self._chain)

    def open_reservations(self) -> list[Entry]:
        """Return the reservations that were neither committed nor aborted."""
        closed = {e.body["reservation"] for e in self.entries("commit", "abort")}
        return [e for e in self.entries("reserve") if e.number not in closed]

    def consistently(self, read: Callable[[], T]) -> T:
        """Return what ``read`` finds in one consistent state, whatever other processes write.

        Files are removed or overwritten only after an entry that names their replacements
        (``REWRITTEN``).  So what was read is consistent if no such entry was added in the meantime;
        otherwise it is read again.  Readers and writers never wait for each other.
        """
        if self._chain.is_busy:
            return read()
        while True:
            before = self._chain.last_of(*REWRITTEN)
            try:
                with self._chain.reading():
                    found = read()
            except (DataError, FileNotFoundError):
                if self._chain.last_of(*REWRITTEN) == before:
                    raise
            else:
                if self._chain.last_of(*REWRITTEN) == before:
                    return found
            self._files.clear()

    # Keys and people

    @property
    def key(self) -> Key:
        """The key for new entries and stored names."""
        return self._keys.newest

    def key_of(self, name: str) -> Key | None:
        """Return the key with a name, or None."""
        return self._keys.named(name)

    def people(self, ids: pa.LargeBinaryArray | Sequence[bytes]) -> Words:
        """Return people's names, two words each; ``ids`` are bytes, spelt as ``self.ids`` says."""
        array = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.large_binary())
        return self._keys.oldest.people(array)

    def handles(self, people: Words) -> Words:
        """Return the encrypted names of people, as the current runs store them."""
        return self.storage_key.handles(people)

    def sampling_words(self, people: Words, attributes: list[str]) -> Words:
        """Return a uniform word per person (row) and attribute (column), fixed within a period."""
        key, period = self._keys.oldest, self.period
        return np.column_stack([key.sampling_words(people, a, period) for a in attributes])

    def tags(self, attribute: str, mechanism: str, people: Words, states: IntArray) -> Words:
        """Return a word per person that identifies the value of a cell."""
        return self._keys.oldest.tags(attribute, mechanism, people, states)

    @property
    def storage_key(self) -> Key:
        """The key that encrypts the stored names: the one that was newest at the last rotation."""
        name = next((e.body["to"] for e in self._reversed(*REWRITTEN)), None)
        name = name or self._reversed("open", "migrate")[0].key
        found = self._keys.named(name)
        assert found is not None, "all keys of entries are known"
        return found

    def _reversed(self, *kinds: str) -> list[Entry]:
        return list(self.entries(*kinds))[::-1]

    # Periods

    @property
    def changed(self) -> Changed:
        """Whether a draw is kept when its value changes."""
        last = self._reversed("open", "renew")[0]
        if (found := _changed(last.body)) is None:
            raise last.damaged()
        return found

    @property
    def period(self) -> int:
        """The number of full renewals so far."""
        return sum(not e.body["attribute"] for e in self.entries("renew"))

    def renewed(self) -> dict[str, int]:
        """Return the entry that began each attribute's period; the key '' is for all others."""
        found = {"": -1}
        for entry in self.entries("renew"):
            attribute = entry.body["attribute"]
            found = {**found, attribute: entry.number} if attribute else {"": entry.number}
        return found

    # Runs

    @property
    def runs_folder(self) -> Path:
        """The folder of the runs."""
        return self.folder / RUNS_FOLDER

    def runs(self) -> list[Run]:
        """Return the runs that the chain currently names, oldest draws first."""
        live: dict[str, Run] = {}
        for entry in self.entries("commit", "migrate", *REWRITTEN):
            body = entry.body
            for name in body.get("gone", []):
                live.pop(name, None)
            for plain in body["runs"]:
                try:
                    run = Run.of_json(plain)
                except (ValueError, TypeError):
                    raise entry.damaged() from None
                live[run.file] = run
        return sorted(live.values(), key=lambda run: run.committed)

    def members(self) -> dict[int, Members]:
        """Return, by the entry of a release, which people of earlier runs it included."""
        found: dict[int, Members] = {}
        for entry in self.entries("commit", *REWRITTEN):
            try:
                for number, plain in entry.body["members"]:
                    found[number] = Members.of_json(plain)
            except (ValueError, TypeError):
                raise entry.damaged() from None
        return found

    def tombstones(self) -> Words:
        """Return the handles of forgotten people, sorted by their first word."""
        stones: list[str] = []
        for entry in self.entries(*REWRITTEN):
            stones = entry.body["tombstones"]
        data = b"".join(bytes.fromhex(stone) for stone in stones)
        found = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
        return found[np.argsort(found[:, 0])]

    def run_file(self, run: Run) -> RunFile:
        """Return a run's file, which is checked when it is first read."""
        if run.file not in self._files:
            file = RunFile(run, self.runs_folder / run.file)
            file.check()
            self._files[run.file] = file
        return self._files[run.file]

    def forget_files(self, names: Sequence[str]) -> None:
        """Drop the readers of files that are about to be removed."""
        for name in names:
            self._files.pop(name, None)

    def new_run_path(self) -> Path:
        """Return a path for the next file, with a number above all earlier ones."""
        _make_private(self.runs_folder)
        numbers = [int(run.file) for run in self.runs()]
        numbers += [int(m.file) for m in self.members().values()]
        numbers += [int(p.name) for p in self.runs_folder.glob("[0-9]*") if p.name.isdigit()]
        return self.runs_folder / f"{max(numbers, default=0) + 1:06d}"

    def clear(self, *, wipe: bool = False) -> None:
        """Remove files that no entry names; call this only while no other process draws.

        With ``wipe``, they are overwritten first.
        """
        named = {run.file for run in self.runs()} | {m.file for m in self.members().values()}
        clear(self.runs_folder, named, wipe=wipe)


def _is_begun(body: dict[str, Any]) -> bool:
    named = isinstance(body.get("identity"), str)
    return named and body.get("ids") in get_args(Spelling) and _changed(body) is not None


def _changed(body: dict[str, Any]) -> Changed | None:
    found: Changed | None = body.get("changed")
    return found if found in get_args(Changed) else None


def _check_setting(name: str, wanted: str | None, found: str, how: str) -> None:
    if wanted is not None and wanted != found:
        raise ConfigError(
            f'[ledger] says {name} = "{wanted}", but the ledger was created with "{found}". {how}'
        )


def _make_private(folder: Path) -> None:
    """Make a folder and the files in it readable by the owner only, whatever the umask."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "posix":
        return
    _restrict(folder, 0o700)
    for path in folder.iterdir():
        if path.is_file():
            _restrict(path, 0o600)


def _restrict(path: Path, mode: int) -> None:
    """Deny others access to a file or folder, unless another process has removed it."""
    try:
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)
    except FileNotFoundError:
        return
    except PermissionError:
        raise ConfigError(
            f"{path} can be read by others, and this user cannot change that. Run the command as "
            f"its owner, or: chmod {mode:o} {path}"
        ) from None
