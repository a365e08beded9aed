"""A real PostgreSQL on loopback, with a temporary cluster of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "reader", "geheim-7731"
_START_SECONDS = 60


@dataclass(frozen=True)
class PostgresServer:
    """A running server; clients must know the password."""

    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def uri(self, rest: str) -> str:
        return f"postgresql://{USER}@{self.address}/postgres?{rest}"

    def execute(self, *statements: str) -> None:
        import adbc_driver_postgresql.dbapi as driver

        uri = f"postgresql://{USER}:{PASSWORD}@{self.address}/postgres"
        with driver.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ingest(self, name: str, table) -> None:
        import adbc_driver_postgresql.dbapi as driver

        uri = f"postgresql://{USER}:{PASSWORD}@{self.address}/postgres"
        with driver.connect(uri) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="create")
            connection.commit()


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs, which Debian keeps off the PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for place in [*([Path(found).resolve().parent] if found else []), *places]:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    pytest.skip("no PostgreSQL here (looked for initdb): apt-get install postgresql to run this")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server with an empty database; not as root, because PostgreSQL refuses that."""
    programs = _programs()
    other = {"user": "nobody", "group": "nogroup", "extra_groups": []} if not os.geteuid() else {}
    with tempfile.TemporaryDirectory(prefix="opboost-pg-") as place, socket.socket() as probe:
        folder = Path(place)
        (folder / "password").write_text(PASSWORD)
        if other:
            shutil.chown(folder, "nobody", "nogroup")
            (folder / "password").chmod(0o644)
        subprocess.run(
            [
                programs / "initdb",
                *("-D", folder / "data", "-U", USER, "-A", "scram-sha-256", "--no-sync"),
                *("--pwfile", folder / "password", "-E", "UTF8", "--locale", "C"),
            ],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            **other,
        )
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        process = subprocess.Popen(
            [
                programs / "postgres",
                *("-D", folder / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1"),
                *("-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=16MB"),
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **other,
        )
        server = PostgresServer(port)
        try:
            _wait_for(server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(server: PostgresServer) -> None:
    import adbc_driver_postgresql.dbapi as driver

    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            server.execute("SELECT 1")
        except driver.Error:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
