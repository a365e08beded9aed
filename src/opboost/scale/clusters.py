"""The cluster that works on a table: the caller's if there is one, else one on this machine.

A cluster that is started here runs any code that it is sent, so nobody else may reach it: it
listens only on loopback, requires a key that only this process and its workers hold, and shows no
dashboard.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opboost.runtime.child_processes import safe_path
from opboost.runtime.extras import needs_extra

LOOPBACK = "127.0.0.1"


@contextmanager
def dask_client(workers: int | None) -> Iterator[Any]:
    """Yield the current Dask client, or that of the environment, or that of a local cluster."""
    with needs_extra("dask", "Work on Dask"):
        import dask
        from distributed import Client, default_client
    try:
        running = default_client()
    except ValueError:
        running = None
    if running is not None:
        yield running
        return
    if dask.config.get("scheduler-address", None):
        with Client() as client:
            yield client
        return
    with _local_dask(workers) as client:
        yield client


@contextmanager
def _local_dask(workers: int | None) -> Iterator[Any]:
    """Yield a client of a Dask cluster that is started and stopped here."""
    import dask
    from distributed import Client, LocalCluster, Security

    with _scratch(dask.config.get("temporary-directory", None)) as scratch:
        settings = {
            "temporary-directory": scratch,
            # Each node has an HTTP server even without a dashboard; leave it without pages.
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
        }
        with (
            safe_path,
            dask.config.set(settings),
            LocalCluster(
                workers,
                threads_per_worker=1,
                host=LOOPBACK,
                protocol="tls://",
                security=Security.temporary(),
                dashboard_address=None,
                # Without this the HTTP server insists on port 8787.
                scheduler_kwargs={"dashboard_address": f"{LOOPBACK}:0"},
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


@contextmanager
def _scratch(inside: str | None) -> Iterator[str]:
    """Yield a private folder for the data that a Dask cluster spills.

    Dask would share one folder between all users of the machine, and look for modules there.
    """
    with tempfile.TemporaryDirectory(
        prefix="opboost-", dir=inside, ignore_cleanup_errors=True
    ) as folder:
        try:
            yield folder
        finally:
            sys.path[:] = [place for place in sys.path if not place.startswith(folder)]


@contextmanager
def spark_session(workers: int | None) -> Iterator[Any]:
    """Yield the active Spark session, or else a local one."""
    with needs_extra("spark", "Work on Spark"):
        from pyspark.sql import SparkSession
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("opboost")
    if not os.environ.get("SPARK_REMOTE") and not os.environ.get("MASTER"):
        builder = builder.master(f"local[{workers or '*'}]")
        for setting, value in LOCAL_SPARK.items():
            builder = builder.config(setting, value)
    with safe_path:
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


LOCAL_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.authenticate": "true",  # with a secret that a local session makes for itself
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
