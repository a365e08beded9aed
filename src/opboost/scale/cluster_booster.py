"""The booster of a configuration that names a cluster under ``[booster]``.

The connection is opened on first use and stays open until :meth:`ClusterBooster.close`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opboost.boosting.booster import Booster, Problem, Trained
from opboost.config.sections import BoosterSection, ClusterEngine
from opboost.denoise.row_blocks import CutBlocks, RowBlocks
from opboost.errors import ParameterError, PeerError, in_words
from opboost.runtime.extras import needs_extra
from opboost.scale.clusters import LOCAL_SPARK

ANSWER_TIMEOUT_SECONDS = 10.0
"""A cluster that has not answered by then counts as not running."""

SPARK_TASKS = 2
"""The number of tasks that train together on Spark, unless the configuration sets it."""


@dataclass(frozen=True)
class ClusterBooster:
    """XGBoost on the cluster at an address.

    >>> ClusterBooster("dask", "tcp://127.0.0.1:1").check()
    Traceback (most recent call last):
    opboost.errors.PeerError: The Dask scheduler at tcp://127.0.0.1:1 does not answer ([Errno 111]
    Connection refused). Start it, or correct address under [booster].
    """

    engine: ClusterEngine
    address: str = field(repr=False)
    params: dict[str, Any] = field(default_factory=dict)
    workers: int | None = None
    folder: Path | None = field(default=None, repr=False)
    _connected: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def check(self) -> None:
        """Refuse a cluster that cannot be used, before any party releases data for the job."""
        self._booster()

    def close(self) -> None:
        """Close the connection, if there is one."""
        while self._connected:
            booster = self._connected.pop()
            if self.engine == "dask":
                booster.client.close()
            else:
                booster.session.stop()

    def train(self, problem: Problem) -> Trained:
        """Train on the cluster."""
        found: Trained = self._booster().train(problem)
        return found

    def spread_rows(self, blocks: CutBlocks) -> AbstractContextManager[RowBlocks]:
        """Hand encoded rows to the cluster's workers."""
        found: AbstractContextManager[RowBlocks] = self._booster().spread_rows(blocks)
        return found

    def _booster(self) -> Any:
        if not self._connected:
            made = self._on_dask() if self.engine == "dask" else self._on_spark()
            self._connected.append(made)
        return self._connected[0]

    def _on_dask(self) -> Any:
        with needs_extra("boost,dask", "[booster] engine = 'dask'"):
            from distributed import Client

            from opboost.scale.dask_training import DaskXGBoost, workers_of
        _check_answer("The Dask scheduler", self.address, [self.address])
        try:
            # A client would wait forever for a program that accepts connections but sends nothing.
            asyncio.run(asyncio.wait_for(_dask_identity(self.address), ANSWER_TIMEOUT_SECONDS))
            client = Client(self.address, timeout=ANSWER_TIMEOUT_SECONDS)
        except Exception as error:  # another program's bytes can raise anything
            raise _silent("The Dask scheduler", self.address, error) from None
        try:
            workers_of(client)
        except PeerError:
            client.close()
            raise
        return DaskXGBoost(client, self.params)

    def _on_spark(self) -> Any:
        with needs_extra("boost,spark", "[booster] engine = 'spark'"):
            from pyspark.sql import SparkSession

            from opboost.scale.spark_training import SparkXGBoost
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            raise ParameterError(
                "[booster] engine = 'spark' needs Java 17, which is not on the path. Install it, "
                "or set JAVA_HOME."
            )
        if self.address.startswith("spark://"):
            masters = [f"spark://{m}" for m in self.address.removeprefix("spark://").split(",")]
            _check_answer("The Spark master", self.address, masters)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("opboost").master(self.address)
        builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
        for setting, value in LOCAL_SPARK.items() if self.address.startswith("local") else ():
            builder = builder.config(setting, value)
        try:
            session = builder.getOrCreate()
        except Exception as error:  # py4j passes on whatever Java threw
            raise _silent("Spark", self.address, error) from None
        return SparkXGBoost(session, self.params, self.workers or SPARK_TASKS, self.folder)


async def _dask_identity(address: str) -> None:
    """Ask the scheduler at an address for its identity."""
    from distributed import Security
    from distributed.core import rpc

    secrets = Security().get_connection_args("client")
    async with rpc(address, connection_args=secrets) as scheduler:
        await scheduler.identity()


@contextmanager
def connected_booster(section: BoosterSection) -> Iterator[str | Booster]:
    """Yield the booster of a configuration, on a cluster that answers; then disconnect."""
    booster = booster_of(section)
    if not isinstance(booster, ClusterBooster):
        yield booster
        return
    try:
        booster.check()
        yield booster
    finally:
        booster.close()


def booster_of(section: BoosterSection) -> str | Booster:
    """Return a configuration's booster: a library's name, or a booster on a cluster."""
    if section.engine == "local":
        return section.kind
    assert section.address is not None
    folder = None if section.folder is None else Path(section.folder)
    params = dict(section.params)
    return ClusterBooster(section.engine, section.address, params, section.workers, folder)


def _check_answer(what: str, address: str, places: list[str]) -> None:
    """Refuse a cluster if none of its addresses accepts a connection."""
    problem: Exception | None = None
    for place in places:
        parts = urlsplit(place)
        try:
            where = (parts.hostname or "", parts.port or 0)
            with socket.create_connection(where, timeout=ANSWER_TIMEOUT_SECONDS):
                return
        except (OSError, ValueError) as error:
            problem = error
    assert problem is not None
    raise _silent(what, address, problem)


def _silent(what: str, address: str, error: BaseException) -> PeerError:
    words = in_words(error) or type(error).__name__
    return PeerError(
        f"{what} at {address} does not answer ({words}). Start it, or correct address under "
        "[booster]."
    )
