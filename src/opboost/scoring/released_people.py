"""Find people in stored releases by their ID, and score them without asking their party.

The index holds keyed digests of IDs, under a key that lives as long as the process; no ID stays in
memory.  The server checks the manifest before each request: once `opboost ledger forget` has
removed a person from the folder, the next request no longer finds them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import id_array, id_bytes
from opboost.errors import ColumnError, ConfigError, DataError, OpBoostError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.files.read_tables import column_names, pieces
from opboost.files.stored_release import MANIFEST, Manifest, StoredRelease, noise_of, read_manifest
from opboost.parties.message_checks import ends
from opboost.promises import Guarantee
from opboost.scoring.refusals import DOES_NOT_FIT, NOT_READY, NOT_THERE, RequestRefused
from opboost.training.column_screening import LEFT_OUT
from opboost.training.released_columns import ReleasedColumn, from_sample, rows_of

ABSENT = -1
"""The row number of an ID that is not in the index."""


@dataclass(frozen=True, slots=True, eq=False)
class IdIndex:
    """An index from IDs to rows, by keyed digests of 128 bits."""

    key: bytes
    first: np.ndarray[Any, np.dtype[np.uint64]]
    second: np.ndarray[Any, np.dtype[np.uint64]]
    rows: IntArray

    @classmethod
    def of(cls, ids: Sequence[bytes]) -> IdIndex:
        """Return an index of IDs; refuse a repeated ID.

        >>> IdIndex.of([b"ann", b"bob"]).find([b"bob", b"eve"]).tolist()
        [1, -1]
        """
        while True:
            key = secrets.token_bytes(32)
            words = _digests(ids, key)
            order = np.lexsort((words[:, 1], words[:, 0]))
            found = words[order]
            same = found[1:] == found[:-1]
            if same.all(axis=1).any():
                raise DataError(
                    "An ID occurs in two rows, so it does not identify a person",
                    hint="Give the columns that do: --id branch --id number.",
                )
            # The search needs distinct first words; if two are equal, try another key.
            if not same[:, 0].any():
                return cls(key, found[:, 0], found[:, 1], order)

    def find(self, ids: Sequence[bytes]) -> IntArray:
        """Return the row of each ID, or ``ABSENT`` if the index does not hold it."""
        words = _digests(ids, self.key)
        place = np.searchsorted(self.first, words[:, 0]).clip(0, len(self.rows) - 1)
        there = (self.first[place] == words[:, 0]) & (self.second[place] == words[:, 1])
        return np.where(there, self.rows[place], ABSENT)


def _digests(ids: Sequence[bytes], key: bytes) -> np.ndarray[Any, np.dtype[np.uint64]]:
    whole = b"".join(hashlib.blake2b(i, key=key, digest_size=16).digest() for i in ids)
    return np.frombuffer(whole, dtype=np.uint64).reshape(-1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class PeopleOfFolder:
    """One stored release in memory: its columns, its people, and the state of its manifest."""

    columns: tuple[ReleasedColumn, ...]
    index: IdIndex
    seen: tuple[int, int, int]


class ReleasedPeople:
    """The people of stored releases, one folder for each party.

    A person can be scored if every folder has a row with a released value about them.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        ids: Sequence[str],
        estimator: OpBoostClassifier | OpBoostRegressor,
    ) -> None:
        if not ids:
            raise ConfigError(
                "--released needs --id: the column of the stored release that names the person, "
                "such as --id customer."
            )
        self.ids, self._estimator = tuple(ids), estimator
        self._lock = threading.Lock()
        self.ready = True
        manifests = {folder: _manifest(folder) for folder in folders}
        self._wanted = _shared_out(estimator.private_columns_, manifests)
        self._people = {folder: self._read(folder) for folder in folders}

    def __len__(self) -> int:
        return min(len(people.index.rows) for people in self._people.values())

    def check(self) -> None:
        """Reread folders whose manifest has changed; refuse requests while one cannot be read."""
        with self._lock:
            for folder, people in self._people.items():
                try:
                    if _seen(folder) != people.seen:
                        self._people[folder] = self._read(folder)
                except (OpBoostError, OSError):
                    self.ready = False
                    raise RequestRefused(
                        NOT_READY,
                        "The stored release is being changed or is damaged. Try again; if that "
                        "does not help, restore the original folder.",
                    ) from None
            self.ready = True

    def released(self, ids: Sequence[Sequence[Any]]) -> list[ReleasedColumn]:
        """Return some people's released columns, in the model's order; refuse an unknown person.

        ``ids`` holds one list per ID column.
        """
        self.check()
        try:
            keys = id_bytes(ids, self.ids, spelling="canonical")
        except DataError as error:
            raise RequestRefused(DOES_NOT_FIT, error.logged) from None
        found: dict[Hashable, ReleasedColumn] = {}
        for people in list(self._people.values()):
            rows = people.index.find(keys)
            if (rows == ABSENT).any():
                place, many = int(np.argmax(rows == ABSENT)), int((rows == ABSENT).sum())
                raise RequestRefused(
                    NOT_THERE,
                    f"No stored release contains the person of rows[{place}]. People missing: "
                    f"{many} of {len(keys)}. Leave them out, or ask their party to release them.",
                )
            found |= {c.private.name: c for c in rows_of(people.columns, rows)}
        return [found[c.name] for c in self._estimator.private_columns_]

    def _read(self, folder: Path) -> PeopleOfFolder:
        """Read a stored release; refuse it unless it is complete and has the model's noise."""
        seen, manifest = _seen(folder), _manifest(folder)
        wanted = self._wanted[folder]
        _check_noise(folder, manifest, wanted)
        share = self._sent_share(folder, manifest)
        stored = StoredRelease(folder, manifest, wanted, gaps=True)
        stored.check_parts()
        released = (str(n) for c in wanted for n in c.release_names())
        needed = list(dict.fromkeys([*self.ids, *released]))
        for part in manifest.parts:
            for name in needed:
                if name not in column_names(folder / part):
                    raise ColumnError(
                        name,
                        f"is not in the stored release {folder}",
                        hint="Release the columns of the training, and the ID: in TOML [table] "
                        'public = ["customer"].',
                    )
        table = pa.concat_tables(
            piece for part in manifest.parts for piece in pieces(folder / part, columns=needed)
        )
        columns = {c.name: _columns_of(stored, c, table) for c in wanted}
        there = _there(wanted, columns, sampled=manifest.columns_per_row is not None)
        ids = id_array(table, self.ids, spelling="canonical").filter(pa.array(there)).to_pylist()
        kept = {name: [c.where(there) for c in found] for name, found in columns.items()}
        if not ids:
            raise DataError(f"The stored release {folder} holds no released values")
        return PeopleOfFolder(tuple(from_sample(wanted, kept, share)), IdIndex.of(ids), seen)

    def _sent_share(self, folder: Path, manifest: Manifest) -> float:
        """Return the share of people who send each column; it must be the share in training."""
        count = len(manifest.noise) or len(self._wanted[folder])
        share = 1.0 if manifest.columns_per_row is None else manifest.columns_per_row / count
        known = self._estimator.sent_shares_ or {}
        for column in self._wanted[folder]:
            if known.get(column.name, LEFT_OUT) not in (LEFT_OUT, share):
                raise DataError(
                    f"{folder}: people send a different share of their columns than in training",
                    hint="Train on a release with this columns_per_row under [budget].",
                )
        return share


def _seen(folder: Path) -> tuple[int, int, int]:
    about = (folder / MANIFEST).stat()
    return about.st_mtime_ns, about.st_ino, about.st_size


def _manifest(folder: Path) -> Manifest:
    if not (folder / MANIFEST).is_file():
        raise DataError(
            f"{folder} holds no stored release: it has no {MANIFEST}",
            hint="Give a folder that opboost desensitize --engine local made.",
        )
    return read_manifest(folder)


def _shared_out(
    private: Sequence[PrivateColumn], manifests: dict[Path, Manifest]
) -> dict[Path, tuple[PrivateColumn, ...]]:
    """Return the model's columns in each folder; every column must be in exactly one folder."""
    held = {folder: _names_in(folder, manifest) for folder, manifest in manifests.items()}
    found: dict[Path, list[PrivateColumn]] = {folder: [] for folder in manifests}
    for column in private:
        places = [
            f for f, names in held.items() if {str(n) for n in column.release_names()} <= names
        ]
        if len(places) != 1:
            what = "is in no stored release" if not places else "is in two stored releases"
            raise ColumnError(
                column.name,
                f"of the model {what}",
                hint="Give --released once for each party, with the columns of the training "
                "under the names that they have in the model.",
            )
        found[places[0]].append(column)
    for folder, columns in found.items():
        if not columns:
            raise DataError(f"The stored release {folder} has no column of the model")
    return {folder: tuple(columns) for folder, columns in found.items()}


def _names_in(folder: Path, manifest: Manifest) -> set[str]:
    if not manifest.parts:
        raise DataError(f"The stored release {folder} has no parts")
    part = folder / min(manifest.parts)
    if not part.is_file():
        raise DataError(
            f"{part.name} is missing in the stored release {folder}",
            hint="Restore the original folder.",
        )
    return set(column_names(part))


def _check_noise(folder: Path, manifest: Manifest, wanted: Sequence[PrivateColumn]) -> None:
    """Refuse values whose noise differs from what the model was trained for.

    A manifest of version 0.1 records only promises.
    """
    promised = manifest.guarantee.splitlines()
    for column in wanted:
        told = manifest.noise.get(str(column.name))
        if told is None:
            same = f"{column.name}: {_in_version_0_1(column.guarantee())}" in promised
        else:
            same = _json(told) == _json(noise_of(column))
        if not same:
            raise ColumnError(
                column.name,
                f"was released in {folder} with different noise than the model was trained for",
                hint="Train on rows with this declaration, or score a release with the model's.",
            )


_VERSION_0_1_WORDS = (
    (r" per (cell|border)\b", r" a \1"),
    ("; the run is revealed", "; which run is revealed"),
    (
        r"costs (\S+) more than cell (-?\d+) \(then at most (\S+) in all\)",
        r"costs \1 and the way from cell \2 (at most \3 with it)",
    ),
)


def _in_version_0_1(promise: Guarantee) -> str:
    """Return a promise as version 0.1 worded it.

    >>> from opboost import ClampMap, Domain, WithMissing
    >>> _in_version_0_1(WithMissing(ClampMap(Domain(1, 10), 0.32), 0.5, 1).guarantee())
    '0.32-dLDP a cell (at most 2.88 in all); a missing value costs 0.5 and the way from cell 1 \
(at most 3.38 with it)'
    """
    words = str(promise)
    for now, then in _VERSION_0_1_WORDS:
        words = re.sub(now, then, words)
    return words


def _json(plain: object) -> str:
    return json.dumps(plain, sort_keys=True)


def _columns_of(stored: StoredRelease, column: PrivateColumn, table: pa.Table) -> list[OutColumn]:
    """Return a column's released values; check their range, because compiled loops trust them."""
    found = StoredRelease(stored.folder, stored.manifest, (column,), gaps=True).columns(table)
    lower, upper = (0, 1) if column.mapping is None else ends(column)
    for out in found:
        values = out.values if out.missing is None else out.values[~out.missing]
        whole = out.values.dtype.kind in "iu"
        if not whole or (values.size and (values.min() < lower or values.max() > upper)):
            raise ColumnError(
                out.name, f"of the stored release holds values outside {lower} to {upper}"
            )
    return found


def _there(
    wanted: Sequence[PrivateColumn], columns: dict[Hashable, list[OutColumn]], *, sampled: bool
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the rows that hold a released value; a forgotten person's row holds none.

    If a column can report missing values, a row of only missing values may hold such a report.
    """
    gaps = {name: [_gaps(out) for out in found] for name, found in columns.items()}
    plain = [g for c in wanted if c.flagged() is None for g in gaps[c.name]]
    everything = [g for found in gaps.values() for g in found]
    silent = np.logical_and.reduce(everything)
    if sampled:
        return ~silent if len(plain) == len(everything) else np.ones_like(silent)
    if any((g & ~silent).any() for g in plain):
        raise DataError(
            "The stored release lacks some values of a row, although its columns declare no gaps",
            hint="Restore the original folder.",
        )
    return ~silent if plain else np.ones_like(silent)


def _gaps(out: OutColumn) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.zeros(len(out.values), dtype=np.bool_) if out.missing is None else out.missing
