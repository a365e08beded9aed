"""Desensitise a table of any size, with processes, on a Dask cluster or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from opboost.columns.private_column import PrivateColumn
from opboost.config import Plan
from opboost.config.schema import plan_of
from opboost.errors import ParameterError
from opboost.files.stored_release import Manifest
from opboost.scale.clusters import dask_client, spark_session
from opboost.scale.engine_task import Work
from opboost.scale.on_dask import DaskFiles, DaskFrame
from opboost.scale.on_processes import Processes
from opboost.scale.on_spark import SparkFiles, SparkFrame
from opboost.scale.release_in_parts import Charge, ReleaseInParts, stored
from opboost.scale.table_tasks import Files
from opboost.sources.table_address import TableAddress, table_address

Engine = Literal["local", "dask", "spark"]


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A stored release; ``outside`` describes the data and stays local.

    ``fresh`` is false if the release already existed and nothing was drawn.
    """

    manifest: Manifest
    fresh: bool = True
    outside: dict[str, int] = field(default_factory=dict)


def desensitize(
    table: Any,
    schema: Plan | str | Path | Sequence[PrivateColumn],
    out: str | Path,
    *,
    ids: str | Sequence[str],
    engine: Engine | None = None,
    workers: int | None = None,
    charge: Charge | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReleaseResult:
    """Desensitise a table into the folder ``out``; repeated tasks or runs draw the same noise.

    Args:
        table: A Dask or Spark DataFrame, or CSV or Parquet files: a path, a folder or a pattern,
            or the URI of a table in a database or a store.
        schema: The declarations of the columns: a TOML file's path, its plan, or columns.
        out: The folder that appears once everything is done; all workers must be able to reach it.
        ids: The column(s) that identify people.  Noise is drawn per person, so each person has one
            row.
        engine: What works on files: ``"local"`` processes (the default), ``"dask"`` or ``"spark"``.
        workers: The number of processes, if this call starts them.
        charge: The ledger to charge, and the recipient.
        progress: Called with the number of finished parts, and the number of all parts.

    After a crash, the same call continues where the last one stopped, with the same noise and a
    single charge.

    >>> import tempfile, pandas as pd
    >>> import opboost as op
    >>> from opboost.config.columns_file import parse
    >>> plan = parse(
    ...     '[mechanism]\\nkind = "clamp-map"\\nepsilon = 0.64\\n'
    ...     '[columns.age]\\nbounds = [17, 90]\\n[table]\\npublic = ["id"]',
    ...     "b.toml",
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     raw, out = Path(place) / "raw.parquet", Path(place) / "released"
    ...     pd.DataFrame({"id": [1, 2, 3], "age": [30, 60, 45]}).to_parquet(raw)
    ...     made = desensitize(raw, plan, out, ids="id")
    ...     made.manifest.rows, pd.read_parquet(out)["id"].tolist()
    (3, [1, 2, 3])
    """
    target, plan = Path(out), plan_of(schema)
    known = stored(target, charge.ledger if charge else None)
    if known is not None:
        return ReleaseResult(known, fresh=False)
    columns = [ids] if isinstance(ids, str) else list(ids)
    with _work(table, engine, workers) as work:
        parts = work.parts
        release = ReleaseInParts(
            target.absolute(), plan, columns, parts=parts, source=work.source, charge=charge
        )
        with release:
            if isinstance(work, Files):
                work.form = plan.data
            release.check(lambda: work.ids(columns))
            missing = release.missing()
            for done, refused in enumerate(work.run(release.block, missing), 1):
                if refused is not None:
                    raise refused
                if progress:
                    progress(parts - len(missing) + done, parts)
            return ReleaseResult(release.commit(), outside=release.outside)


@contextmanager
def _work(table: Any, engine: str | None, workers: int | None) -> Iterator[Work]:
    """Yield the table with the engine that fits it; stop what was started here."""
    module = type(table).__module__.partition(".")[0]
    if module in ("dask", "dask_expr"):
        with dask_client(workers) as client:
            yield DaskFrame(table, client)
    elif module == "pyspark":
        yield SparkFrame(table)
    elif not isinstance(table, str | TableAddress):
        raise ParameterError(
            f"A table is a path, a Dask or a Spark DataFrame; got {type(table).__name__}. "
            "op.Desensitizer takes tables in memory."
        )
    elif engine == "dask":
        with dask_client(workers) as client:
            yield DaskFiles(_address(table), client)
    elif engine == "spark":
        with spark_session(workers) as session:
            yield SparkFiles(_address(table), session)
    elif engine in (None, "local"):
        yield Processes(_address(table), workers)
    else:
        raise ParameterError(f"engine must be 'local', 'dask' or 'spark'; got {engine!r}.")


def _address(table: str | TableAddress) -> TableAddress:
    return table_address(table) if isinstance(table, str) else table
