"""Servers that the tests of sources share; each is started once, when a test needs it."""

from __future__ import annotations

import pytest

from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.s3_server import KEY, SECRET, s3_server


@pytest.fixture(scope="session")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def s3():
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch, tmp_path):
    """Set the environment of a user who follows the page, and nothing else."""
    for name in ("PGUSER", "PGHOST", "PGSSLMODE", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "no-pgpass"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
