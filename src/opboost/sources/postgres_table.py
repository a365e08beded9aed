"""A table or query of a PostgreSQL database, streamed through ADBC."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import quote

import pyarrow as pa

from opboost.errors import ConfigError, DataError
from opboost.runtime.extras import needs_extra
from opboost.sources.database_table import ROW, DatabaseTable, Run, is_plain
from opboost.sources.driver_messages import driver_words
from opboost.sources.source_uri import CREDENTIALS, FORMS, SourceUri

CONNECT_TIMEOUT_SECONDS = 10
"""How long a server may take to answer, unless the URI says otherwise."""

BATCH_BYTES = 4 << 20
"""About how many bytes the driver returns at a time."""

_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
"""Settings that give one snapshot of the database, and the same order of rows each time."""

_REASONS = {
    "42P01": "names a table that does not exist",
    "3F000": "names a schema that does not exist",
    "42703": "names a column that does not exist",
    "42601": "is not valid for PostgreSQL: write one SELECT without a semicolon",
    "42501": "reads what this user is not allowed to read",
    "25006": "writes to the database",
}
"""Why PostgreSQL refuses a query, by SQLSTATE."""

_STATE = re.compile(r"SQLSTATE:? (\w{5})")
_LOGIN = re.compile(r"(?i)authentication|password|role .* does not exist|pg_hba")
_NO_DATABASE = re.compile(r"database \".*\" does not exist")


class PostgresTable(DatabaseTable):
    """A table or query of a PostgreSQL database.

    libpq finds user and password as it does for psql: PGUSER, PGPASSWORD, PGPASSFILE, PGSERVICE.
    A connection to another machine is encrypted unless the URI or PGSSLMODE says otherwise.
    """

    row_hash = f"hashtextextended({ROW}::text, 0)"

    def __init__(self, uri: SourceUri) -> None:
        super().__init__(uri)
        if "/" in uri.path[1:]:
            raise ConfigError(
                f"The URI of the table (postgresql) names a database with a slash. Write it like "
                f"{FORMS['postgresql']}; a schema belongs to the table: table=schema.people."
            )

    @contextmanager
    def snapshot(self) -> Iterator[Run]:
        """Connect, and start a transaction that reads one snapshot of the database."""
        with needs_extra("postgres", "A table in PostgreSQL"):
            import adbc_driver_postgresql.dbapi as driver
        try:
            connection = driver.connect(self._connection_uri(), autocommit=False)
        except driver.Error as error:
            raise self._refused(error) from None
        with closing(connection), ExitStack() as cursors:

            def run(query: str) -> pa.RecordBatchReader:
                cursor = cursors.enter_context(connection.cursor())
                cursor.adbc_statement.set_options(
                    **{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)}
                )
                cursor.execute(query)
                return cursor.fetch_record_batch()

            try:
                with connection.cursor() as cursor:
                    for setting in _SETTINGS:
                        cursor.execute(setting)
                yield run
            except driver.Error as error:
                raise self.fault(error) from None

    def fault(self, error: Exception) -> DataError:
        """Return the error to raise for an error during a transaction."""
        found = _STATE.search(str(error))
        state = found[1] if found else ""
        if state in _REASONS:
            return DataError(
                f"The URI's {self.asked} at {self.uri} {_REASONS[state]}",
                detail=driver_words(error),
                hint=f"Correct {self.asked}= in the URI, or the rights of the user.",
            )
        if "ERROR:" in str(error):
            return DataError(
                f"The URI's {self.asked} at {self.uri} fails while rows are read",
                detail=driver_words(error),
                hint=f"Try the {self.asked} in psql, and correct it.",
            )
        return DataError(
            f"The connection to {self.uri} was lost while rows were read",
            detail=driver_words(error),
            hint="Start again when the server answers.",
        )

    def sql_type(self, field: pa.Field) -> str:
        """Return int8 or float8 for numeric, and text for other types that are not plain."""
        about = field.metadata or {}
        kind = about.get(b"POSTGRESQL:type", about.get(b"ADBC:postgresql:typname"))
        if kind == b"numeric":
            return _numeric(int(about.get(b"POSTGRESQL:typmod", b"-1")))
        if kind == b"money":
            return "numeric::float8"
        return "" if is_plain(field.type) else "text"

    def _connection_uri(self) -> str:
        uri = self.uri
        options = {k: v for k, v in uri.options.items() if k not in ("table", "query")}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            options.setdefault("connect_timeout", str(CONNECT_TIMEOUT_SECONDS))
        if "PGSSLMODE" not in os.environ and not _is_local(uri.host):
            options.setdefault("sslmode", "require")
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
        user = f"{quote(uri.user, safe='')}@" if uri.user else ""
        port = f":{uri.port}" if uri.port else ""
        return f"postgresql://{user}{uri.host}{port}/{quote(uri.path[1:], safe='')}?{asked}"

    def _refused(self, error: Exception) -> DataError:
        words = driver_words(error)
        if _NO_DATABASE.search(words):
            return DataError(f"{self.uri}: there is no such database", hint="Correct its name.")
        if _LOGIN.search(str(error)):
            return DataError(
                f"{self.uri} refuses the login",
                hint=f"Set PGUSER, or write user@ before the host. {CREDENTIALS['postgresql']}.",
            )
        words = words.rsplit("Failed to connect: ", 1)[-1]
        return DataError(
            f"{self.uri} cannot be reached",
            detail=words,
            hint="Correct host and port, and check that the server runs and accepts this machine.",
        )


def _numeric(modifier: int) -> str:
    """Return the type for a numeric column; the modifier encodes its digits and decimals."""
    digits, decimals = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    return "int8" if modifier >= 4 and decimals == 0 and digits <= 18 else "float8"


def _is_local(host: str) -> bool:
    """Return whether a connection stays on this machine: through a socket or loopback.

    >>> _is_local(""), _is_local("localhost"), _is_local("[::1]"), _is_local("db.example")
    (True, True, True, False)
    """
    host = (host or os.environ.get("PGHOST", "") or "localhost").strip("[]")
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
