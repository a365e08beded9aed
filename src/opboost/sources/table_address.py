"""The address of a table: a path, or a source that a URI names."""

from __future__ import annotations

from pathlib import Path

from opboost.sources.database_table import DatabaseTable
from opboost.sources.duckdb_table import DuckDbTable
from opboost.sources.postgres_table import PostgresTable
from opboost.sources.s3_table import S3File, S3Table
from opboost.sources.source_uri import SourceUri, is_uri

Source = DatabaseTable | S3Table
"""A table that is not a local file; it remembers its first pass."""

TableAddress = Path | Source
"""Where a table is."""

TableFile = Path | S3File | DatabaseTable
"""One of a table's files; a database table counts as one file."""


def table_address(text: str | Path, base: Path = Path()) -> TableAddress:
    """Return the address of a table; relative paths start at ``base``.  Nothing is opened.

    >>> table_address("people.csv", Path("data")).as_posix()
    'data/people.csv'
    >>> print(table_address("duckdb:shop.duckdb?table=people").name)
    table people of shop.duckdb
    """
    if isinstance(text, Path) or not is_uri(text):
        return base / text
    uri = SourceUri.of(text)
    if uri.scheme == "duckdb":
        return DuckDbTable(uri, base)
    return PostgresTable(uri) if uri.scheme == "postgresql" else S3Table(uri)


def may_be_read(table: TableAddress) -> bool:
    """Return whether a path exists; True for a source, which only reading can check."""
    return not isinstance(table, Path) or table.exists()
