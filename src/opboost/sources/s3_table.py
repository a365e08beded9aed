"""CSV and Parquet objects of an S3-compatible store, through pyarrow's own file system."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

from opboost.errors import ConfigError, DataError, MissingPackageError
from opboost.sources.driver_messages import driver_words
from opboost.sources.source_uri import CREDENTIALS, FORMS, SourceUri

CONNECT_TIMEOUT_SECONDS = 10
REQUEST_TIMEOUT_SECONDS = 60
MAX_ATTEMPTS = 3
"""How many times a request is tried if the store does not answer."""

SUFFIXES = (".csv", ".csv.gz", ".parquet")

_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "InvalidAccessKey")
_UNREACHABLE = ("NETWORK_CONNECTION", "curlCode")


@dataclass(frozen=True, slots=True)
class S3File:
    """An object as of the first listing of the table; its ETag reveals a change."""

    uri: SourceUri
    key: str
    """Bucket and key, with a slash between."""
    size: int
    etag: str

    @property
    def name(self) -> str:
        """The last part of the key, which messages show."""
        return self.key.rsplit("/", 1)[-1]

    def fingerprint(self) -> tuple[str, int, str]:
        """Return what reveals a change of the object."""
        return self.key, self.size, self.etag

    def open(self) -> pa.NativeFile:
        """Open the object; refuse it if it changed."""
        try:
            opened = _file_system(self.uri).open_input_file(self.key)
            tag = etag(opened)
        except OSError as error:
            raise fault(self.uri, self.key, error) from None
        if tag != self.etag:
            opened.close()
            raise changed(self.key)
        return opened

    def stream(self) -> pa.NativeFile:
        """Open the object as a stream, decompressed if necessary."""
        opened = self.open()
        return pa.CompressedInputStream(opened, "gzip") if self.key.endswith(".gz") else opened

    def check(self) -> None:
        """Refuse an object that changed while it was read."""
        self.open().close()


class S3Table:
    """An object, or all CSV and Parquet objects under a key, as of their first listing.

    The AWS library finds credentials as it does for every program: AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, or the machine's role.
    """

    def __init__(self, uri: SourceUri) -> None:
        if not uri.host:
            raise ConfigError(
                f"The URI of the table (s3) names no bucket. Write it like {FORMS['s3']}."
            )
        self.uri = uri
        self._key = f"{uri.host}{uri.path}".rstrip("/")
        self._seen: list[S3File] | None = None
        _check_endpoint(_endpoint(uri))

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self._key.rsplit("/", 1)[-1]

    @property
    def stem(self) -> str:
        """A base name for files about the table."""
        return self.name.split(".")[0] or "table"

    def stated_from(self, folder: Path) -> str:
        """Return the URI as a TOML file in ``folder`` states it."""
        return self.uri.text

    def __str__(self) -> str:
        return f"s3://{self._key}"

    def is_single(self) -> bool:
        """Return whether the key names a single object."""
        return [f.key for f in self.files()] == [self._key]

    def files(self) -> list[S3File]:
        """Return the objects, sorted by name; refuse a change since the first listing."""
        try:
            found = self._found()
        except OSError as error:
            raise fault(self.uri, self._key, error) from None
        if self._seen is not None and found != self._seen:
            raise changed(self._key)
        self._seen = found
        return found

    def _found(self) -> list[S3File]:
        system = _file_system(self.uri)
        info = system.get_file_info(self._key)
        if info.type == pa.fs.FileType.File:
            return [self._object(system, info)]
        if info.type == pa.fs.FileType.NotFound:
            system.get_file_info(pa.fs.FileSelector(self.uri.host))  # fails without the bucket
            raise DataError(
                f"{self} does not exist", hint="Give a CSV or Parquet object, or a folder of them."
            )
        listed = system.get_file_info(pa.fs.FileSelector(self._key))
        wanted = sorted((i for i in listed if i.path.endswith(SUFFIXES)), key=lambda i: i.path)
        found = [self._object(system, i) for i in wanted if i.type == pa.fs.FileType.File]
        if not found:
            raise DataError(f"{self} holds no CSV or Parquet object")
        return found

    def _object(self, system: Any, info: Any) -> S3File:
        with system.open_input_file(info.path) as opened:
            return S3File(self.uri, info.path, info.size, etag(opened))


def etag(opened: pa.NativeFile) -> str:
    """Return the ETag under which a store keeps an object."""
    tag: bytes = opened.metadata().get("ETag", b"")
    return tag.decode()


def changed(key: str) -> DataError:
    """Return the error for objects that changed since an earlier pass."""
    return DataError(
        f"s3://{key} changed between two passes",
        hint="Restore it, or give a copy that nobody writes to, and start again.",
    )


def fault(uri: SourceUri, key: str, error: Exception) -> DataError:
    """Return the error to raise for an error of the store, without secrets."""
    words = str(error)
    if "NO_SUCH_BUCKET" in words:
        return DataError(f"There is no bucket {uri.host!r}", hint="Correct the bucket's name.")
    if any(mark in words for mark in _DENIED):
        return DataError(
            f"The store refuses access to s3://{key}",
            hint=f"{CREDENTIALS['s3']}, for a user who may list and read it.",
        )
    if any(mark in words for mark in _UNREACHABLE):
        return DataError(
            f"The store of s3://{key} cannot be reached",
            detail=driver_words(error),
            hint="Correct endpoint= in the URI, or AWS_ENDPOINT_URL.",
        )
    if isinstance(error, FileNotFoundError):
        return DataError(f"s3://{key} does not exist", hint="Correct its name.")
    return DataError(
        f"s3://{key} cannot be read",
        detail=driver_words(error),
        hint="Set region= in the URI or AWS_REGION, if the bucket is in another region.",
    )


def _file_system(uri: SourceUri) -> Any:
    try:
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem
    except ImportError:
        raise MissingPackageError(
            "A table in an S3 store needs a pyarrow built with S3, such as the one from PyPI: run "
            "pip install 'opboost[s3]'."
        ) from None
    settings: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "request_timeout": REQUEST_TIMEOUT_SECONDS,
        "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=MAX_ATTEMPTS),
    }
    if endpoint := _endpoint(uri):
        settings["endpoint_override"] = endpoint
    if region := uri.options.get("region"):
        settings["region"] = region
    if uri.options.get("anonymous") == "true":
        settings["anonymous"] = True
    return S3FileSystem(**settings)


def _endpoint(uri: SourceUri) -> str:
    named = uri.options.get("endpoint")
    return named or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")


def _check_endpoint(endpoint: str) -> None:
    """Refuse an endpoint that would send rows in plaintext.

    >>> _check_endpoint("http://127.0.0.1:9000")
    >>> _check_endpoint("http://store.example")
    Traceback (most recent call last):
    opboost.errors.ConfigError: The endpoint of the S3 store begins with http:// and is not on this
    machine: rows would travel in plaintext. Write https://.
    """
    if not endpoint.startswith("http://"):
        return
    host = urlsplit(endpoint).hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise ConfigError(
            "The endpoint of the S3 store begins with http:// and is not on this machine: rows "
            "would travel in plaintext. Write https://."
        )
