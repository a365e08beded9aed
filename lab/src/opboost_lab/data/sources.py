"""Fetch the data sets into the folder that the experiments read.

A file is downloaded, checked, converted into a CSV table, checked again, and only then stored: the
folder never holds other data than the recorded figures are based on.
"""

import gzip
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pooch
import requests
from urllib3.exceptions import IncompleteRead

from opboost.errors import DataError, ParameterError
from opboost.storage import atomic_files
from opboost_lab.data import conversions
from opboost_lab.toml_data import toml_data

VARIABLE = "OPBOOST_DATA"
PATIENCE = 30.0
"""Seconds that a server may be silent."""
MAX_DOWNLOAD_BYTES = 2**28
"""No source is as large as this."""
CHUNK_BYTES = 2**16

Told = Callable[[str, int, int], None]
"""Called with the file's name, its bytes so far, and its size (0 if unknown)."""


@dataclass(frozen=True, slots=True)
class Download:
    """A publisher's file, with its checksum if the file never changes."""

    url: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A table as the experiments read it: ``name.csv.gz``, and the checksum of its CSV."""

    name: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Source:
    """A data set: what to download, the tables made from it, and the licence."""

    name: str
    title: str
    files: tuple[File, ...]
    downloads: tuple[Download, ...]
    convert: Callable[..., dict[str, bytes]]
    licence: str
    account: str = ""
    """What the user has to do by hand if the publisher requires an account."""

    def missing(self, folder: Path) -> list[File]:
        """Return the tables that are not in a folder."""
        return [f for f in self.files if not path_of(folder, f).is_file()]


def _listed() -> dict[str, Source]:
    return {
        name: Source(
            name,
            about["title"],
            tuple(File(**file) for file in about["files"]),
            tuple(Download(**one) for one in about.get("downloads", ())),
            getattr(conversions, name),
            about["licence"],
            about.get("account", ""),
        )
        for name, about in toml_data("opboost_lab.data", "sources").items()
    }


SOURCES = _listed()
"""The data sets by name, from ``sources.toml``."""


def source(name: str) -> Source:
    """Return the data set with this name."""
    if name not in SOURCES:
        raise ParameterError(f"No data set is called {name!r}. There are: {', '.join(SOURCES)}.")
    return SOURCES[name]


def target() -> Path:
    """Return where data are stored: in the folder that OPBOOST_DATA names, else in the cache."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else cache()


def cache() -> Path:
    """Return the folder for data in the user's cache on this platform."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "opboost" / "data"


def path_of(folder: Path, file: File) -> Path:
    """Return the path of a table in a folder."""
    return folder / f"{file.name}.csv.gz"


def verified(folder: Path, file: File) -> bool:
    """Return whether a table is there and has the right checksum."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path_of(folder, file), "rb") as table:
            while piece := table.read(CHUNK_BYTES):
                digest.update(piece)
    except (OSError, EOFError):
        return False
    return digest.hexdigest() == file.sha256


def fetch(wanted: Source, folder: Path, told: Told, by_hand: Path | None = None) -> list[Path]:
    """Store the checked tables of a data set in a folder, all of them or none.

    ``by_hand`` is the publisher's file, if the user has downloaded it already.
    """
    if by_hand is not None and len(wanted.downloads) > 1:
        raise ParameterError(f"{wanted.name} comes in several files; --file takes one.")
    if by_hand is None and wanted.account:
        raise DataError(f"{wanted.title} cannot be downloaded by itself", hint=wanted.account)
    if by_hand is not None:
        parts = [by_hand.read_bytes()]
    else:
        parts = [_loaded(wanted, d, told) for d in wanted.downloads]
    tables = _converted(wanted, parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = f"Set {VARIABLE} to a folder of yours."
        raise DataError(f"{folder} cannot be made: {error}", hint=hint) from error
    for file in wanted.files:
        packed = gzip.compress(tables[file.name], 6, mtime=0)
        atomic_files.write(path_of(folder, file), packed)
    return [path_of(folder, file) for file in wanted.files]


def _converted(wanted: Source, parts: list[bytes]) -> dict[str, bytes]:
    otherwise = _otherwise(wanted)
    try:
        tables = wanted.convert(*parts)
    except DataError:
        raise
    except Exception as error:
        said = f"What came for {wanted.title} is not what its publisher's file looks like"
        raise DataError(said, detail=repr(error), hint=otherwise) from error
    for file in wanted.files:
        if hashlib.sha256(tables[file.name]).hexdigest() != file.sha256:
            raise DataError(
                f"The table {file.name} made of {wanted.title} has another checksum than the one "
                "that was measured with; nothing was kept",
                hint=otherwise,
            )
    return tables


def _otherwise(wanted: Source) -> str:
    names = " and ".join(f"{f.name}.csv.gz" for f in wanted.files)
    return f"Try again later, or set {VARIABLE} to a folder that holds {names}."


def _loaded(wanted: Source, download: Download, told: Told) -> bytes:
    url, name = download.url, download.url.rsplit("/", 1)[-1]
    known = f"sha256:{download.sha256}" if download.sha256 else None
    loader = pooch.HTTPDownloader(
        progressbar=_Progress(url, name, told),
        chunk_size=CHUNK_BYTES,
        timeout=PATIENCE,
        headers={"User-Agent": "opboost"},
    )
    pooch.get_logger().setLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="opboost-data-") as folder:
            kept = pooch.retrieve(url, known, fname=name, path=folder, downloader=loader)
            return Path(kept).read_bytes()
    except DataError:
        raise
    except (requests.RequestException, OSError, ValueError) as error:
        said, offline = _problem(wanted, url, error)
        hint = f"Are you offline? {_otherwise(wanted)}" if offline else _otherwise(wanted)
        raise DataError(said, hint=hint) from error


class _Progress:
    """Reports the progress of pooch's download, and refuses one that is too large."""

    def __init__(self, url: str, name: str, told: Told) -> None:
        self._url, self._name, self._told = url, name, told
        self.total, self._done = 0, 0

    def update(self, count: int) -> None:
        """Count bytes; pooch reports a full piece even for the last one."""
        self._done += count
        self._told(self._name, min(self._done, self.total or self._done), self.total)
        if self._done > MAX_DOWNLOAD_BYTES:
            raise DataError(f"{self._url} is larger than any data set here; it was not kept")

    def reset(self) -> None:
        """Start again at zero; pooch then counts the whole file at once."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: the bar belongs to the caller."""


def _problem(wanted: Source, url: str, error: Exception) -> tuple[str, bool]:
    """Return why a download failed, and whether there may be no connection."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__context__) is not None:
        causes.append(cause)
    if isinstance(error, requests.HTTPError) and error.response is not None:
        with error.response as answer:
            return f"{url} answered {answer.status_code} ({answer.reason})", False
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        for cause in causes:
            if isinstance(cause, IncompleteRead) and cause.expected is not None:
                got, whole = cause.partial, cause.partial + cause.expected
                return f"{url} broke off after {got:,} of {whole:,} bytes; nothing was kept", False
        return f"{url} broke off; nothing was kept", False
    if isinstance(error, requests.RequestException | OSError):
        return f"{wanted.title} could not be loaded from {url}: {causes[-1]}", True
    said = f"{url} has another checksum than the file that was measured with; nothing was kept"
    return said, False
