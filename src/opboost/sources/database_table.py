"""A table or query of a database, read in passes that must all find the same rows.

A pass sees one snapshot of the database.  Besides the columns, it reads a hash of each whole row,
which the database computes; the digest of these hashes, in order, identifies the rows.  After the
first pass, each later pass compares digests before it yields the first row, and again at the end.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from opboost.errors import ConfigError, DataError
from opboost.sources.source_uri import FORMS, SourceUri

Run = Callable[[str], pa.RecordBatchReader]
"""A function that runs a query in a pass's snapshot."""

ROW = '"opboost row"'
"""The name of a whole row in our queries."""

HASH = '"opboost hash"'
"""The name of a row's hash in our queries."""


class PassDigest(NamedTuple):
    """How many rows a pass read, and the digest of their hashes in order."""

    rows: int
    digest: str


class RowHashes:
    """A running digest of the row hashes of a pass, in order.

    >>> one, two = RowHashes(), RowHashes()
    >>> one.add(pa.array([1, 2, 3])), two.add(pa.array([1])), two.add(pa.array([2, 3]))
    (None, None, None)
    >>> one.digest() == two.digest()
    True
    """

    def __init__(self) -> None:
        self._rows, self._hash = 0, hashlib.sha256()

    def add(self, hashes: pa.Array) -> None:
        """Add the hashes of the next rows."""
        self._rows += len(hashes)
        self._hash.update(hashes.to_numpy(zero_copy_only=False).tobytes())

    def digest(self) -> PassDigest:
        """Return the digest of all rows so far."""
        return PassDigest(self._rows, self._hash.hexdigest())


class DatabaseTable(ABC):
    """A table or query of a database, with the digest of its first pass.

    Subclasses connect to a database and know its SQL.
    """

    def __init__(self, uri: SourceUri) -> None:
        if not {"table", "query"} & set(uri.options):
            raise ConfigError(
                f"The URI of the table ({uri.scheme}) names neither a table nor a query. "
                f"Write it like {FORMS[uri.scheme]}, or with query=SELECT ..."
            )
        self.uri = uri
        self._seen: PassDigest | None = None
        table = uri.options.get("table")
        if table is None:
            self._query = uri.options["query"].rstrip("; \t\r\n")
        else:
            self._query = "SELECT * FROM " + ".".join(map(quoted, table.split(".")))

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Run]:
        """Connect, and keep one snapshot of the database until the block ends."""

    @abstractmethod
    def fault(self, error: Exception) -> DataError:
        """Return the error to raise for an error of the driver."""

    row_hash: str
    """The SQL expression for the hash of :data:`ROW`."""

    driver_errors: tuple[type[Exception], ...] = (pa.ArrowException, OSError)
    """The errors that a driver may raise while it reads."""

    @abstractmethod
    def sql_type(self, field: pa.Field) -> str:
        """Return the type to which a column is cast so that it can be read; empty for none."""

    @property
    def name(self) -> str:
        """The table's name in messages."""
        table = self.uri.options.get("table")
        return f"the query to {self.uri}" if table is None else f"table {table} of {self.uri}"

    @property
    def asked(self) -> str:
        """``"table"`` or ``"query"``, whichever the URI has."""
        return "table" if "table" in self.uri.options else "query"

    @property
    def stem(self) -> str:
        """A base name for files about the table."""
        return self.uri.options.get("table", "table").rsplit(".", 1)[-1]

    def stated_from(self, folder: Path) -> str:
        """Return the URI as a TOML file in ``folder`` states it."""
        return self.uri.text

    @property
    def rows(self) -> int:
        """The number of rows after the first pass; 0 before."""
        return 0 if self._seen is None else self._seen.rows

    def __str__(self) -> str:
        return str(self.uri)

    def column_names(self) -> list[str]:
        """Return the names of the columns without reading a row."""
        with self._reading() as run:
            return list(self._schema(run).names)

    def fingerprint(self) -> tuple[str, int, str]:
        """Return what reveals a change of the table, as of the first pass."""
        if self._seen is None:
            with self._reading() as run:
                self._seen = self._digest(run)
        return str(self), self._seen.rows, self._seen.digest

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows, or some of their columns, in the database's order, one batch at a time.

        Rows that differ from those of an earlier pass are refused.
        """
        with self._reading() as run:
            schema = self._schema(run)
            if self._seen is not None and self._digest(run) != self._seen:
                raise self._changed()
            wanted = schema.names if columns is None else columns
            chosen = ", ".join(self._column(schema.field(name)) for name in wanted)
            comma = ", " if chosen else ""
            hashes = RowHashes()
            for batch in run(f"SELECT {chosen}{comma}{self._hashed()}"):
                hashes.add(batch.column(batch.num_columns - 1))
                plain = pa.Table.from_batches([batch]).drop_columns([HASH.strip('"')])
                yield plain.replace_schema_metadata(None)
            if self._seen is not None and hashes.digest() != self._seen:
                raise self._changed()
            self._seen = hashes.digest()

    @contextmanager
    def _reading(self) -> Iterator[Run]:
        try:
            with self.snapshot() as run:
                yield run
        except self.driver_errors as error:
            raise self.fault(error) from None

    def _schema(self, run: Run) -> pa.Schema:
        schema = run(f"SELECT * FROM ({self._query}\n) {ROW} LIMIT 0").schema
        if len(set(schema.names)) < len(schema.names):
            twice = next(n for n in schema.names if schema.names.count(n) > 1)
            raise DataError(
                f"Column {twice!r} occurs twice in {self.name}",
                hint="Give each column of the query a name of its own: SELECT a.id, b.id AS b_id.",
            )
        return schema

    def _hashed(self) -> str:
        return f"{self.row_hash} AS {HASH} FROM ({self._query}\n) {ROW}"

    def _digest(self, run: Run) -> PassDigest:
        hashes = RowHashes()
        for batch in run(f"SELECT {self._hashed()}"):
            hashes.add(batch.column(0))
        return hashes.digest()

    def _column(self, field: pa.Field) -> str:
        name, kind = quoted(field.name), self.sql_type(field)
        return f"{ROW}.{name}::{kind} AS {name}" if kind else f"{ROW}.{name}"

    def _changed(self) -> DataError:
        return DataError(
            f"The rows of {self.name}, or their order, changed between two passes",
            hint="Read from a table that nobody writes to, or add ORDER BY to the query, and "
            "start again.",
        )


def quoted(name: str) -> str:
    """Return a name quoted for SQL, whatever characters it has.

    >>> quoted('my "own" table')
    '"my ""own"" table"'
    """
    return '"' + name.replace('"', '""') + '"'


def is_plain(kind: pa.DataType) -> bool:
    """Return whether a type is common to all tables: Boolean, number, text, date or time."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )
