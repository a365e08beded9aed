"""A table or query of a DuckDB file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from opboost.errors import ConfigError, DataError
from opboost.runtime.extras import needs_extra
from opboost.sources.database_table import ROW, DatabaseTable, Run, is_plain
from opboost.sources.driver_messages import driver_words
from opboost.sources.source_uri import FORMS, SourceUri

BATCH_ROWS = 100_000
"""The number of rows that DuckDB returns at a time."""

MEMORY_LIMIT = "1GB"
"""DuckDB's memory for sorting and joining; beyond it, DuckDB writes to disk next to its file."""

_REASONS = {
    "CatalogException": "names a table or function that does not exist",
    "BinderException": "names a column that does not exist",
    "ParserException": "is not valid for DuckDB: write one SELECT without a semicolon",
    "PermissionException": "reads another file or changes settings, which is not allowed",
}
"""Why DuckDB refuses a query."""

_IN_USE = re.compile(r"(?i)lock|being used by another process")
_NO_DATABASE = re.compile(r"(?i)not a valid DuckDB database file|database does not exist")


class DuckDbTable(DatabaseTable):
    """A table or query of a DuckDB file, which is opened read-only.

    Queries see only that file: DuckDB reads no other file and loads no extension.  A single
    thread reads, so that a query returns its rows in the same order each time.
    """

    row_hash = f"hash({ROW})"

    def __init__(self, uri: SourceUri, base: Path = Path()) -> None:
        super().__init__(uri)
        if uri.host or uri.path in ("", "/"):
            raise ConfigError(
                "The URI of the table (duckdb) names no file. Write three slashes before an "
                f"absolute path ({FORMS['duckdb']}), or none before a relative one "
                "(duckdb:file.duckdb?table=people)."
            )
        self.file = base / uri.path

    def stated_from(self, folder: Path) -> str:
        """Return the URI for a TOML file in ``folder``; a relative path starts at that folder."""
        asked = self.uri.text.partition("?")[2]
        if Path(self.uri.path).is_absolute():
            return self.uri.text
        return f"duckdb:{Path(os.path.relpath(self.file, folder)).as_posix()}?{asked}"

    @contextmanager
    def snapshot(self) -> Iterator[Run]:
        """Open the file; nobody else can write to it while it is open."""
        with needs_extra("duckdb", "A table in a DuckDB file"):
            import duckdb
        if not self.file.is_file():
            raise DataError(f"{self.file} does not exist", hint="Give a DuckDB file.")
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": MEMORY_LIMIT,
            "enable_external_access": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        try:
            connection = duckdb.connect(str(self.file), read_only=True, config=settings)
            with connection:
                yield lambda query: connection.sql(query).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise self.fault(error) from None

    def fault(self, error: Exception) -> DataError:
        """Return the error to raise for an error of DuckDB."""
        words = driver_words(error)
        if _NO_DATABASE.search(words):
            return DataError(f"{self.file} is not a DuckDB file", hint="Give a DuckDB file.")
        if "IO Error" in words and _IN_USE.search(words):
            return DataError(
                f"{self.file} is open in a program that writes to it", hint="Close it there first."
            )
        why = _REASONS.get(type(error).__name__, "cannot be read")
        return DataError(
            f"The URI's {self.asked} at {self.uri} {why}",
            detail=words,
            hint=f"Correct {self.asked}= in the URI.",
        )

    def sql_type(self, field: pa.Field) -> str:
        """Return BIGINT or DOUBLE for decimals, and VARCHAR for other types that are not plain."""
        if pa.types.is_decimal(field.type):
            return "BIGINT" if field.type.scale == 0 and field.type.precision <= 18 else "DOUBLE"
        return "" if is_plain(field.type) else "VARCHAR"
