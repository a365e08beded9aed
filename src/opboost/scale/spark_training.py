"""XGBoost on a Spark cluster: executors read the codes, and the label party gets a stock model."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from opboost._typing import BoolArray
from opboost.boosting.booster import BLOCK_CODES, Blocks, Problem
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.row_blocks import CutBlocks, RowBlocks
from opboost.errors import ParameterError
from opboost.runtime.extras import needs_extra

with needs_extra("boost,spark", "Training on Spark"):
    from opboost.boosting.xgboost_backend import TrainedXGBoost, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKS_PER_CORE = 2
"""Blocks of rows that each core of the session processes before their sums are added up."""

_NAMES = {"seed": "random_state", "eta": "learning_rate"}
"""The names of some of XGBoost's parameters in Spark's estimators."""

_SETTLED = ("num_class", "nthread", "n_jobs")
"""Parameters that Spark's estimators or the session set themselves."""


@dataclass(frozen=True)
class SparkXGBoost:
    """A booster for ``op.LabelParty`` and the estimators: ``xgboost.spark`` on a session.

    The codes are written to ``folder`` as Parquet, block by block, and executors read them from
    there; all of them must be able to reach it.

    Args:
        session: A ``SparkSession``, whose workers have this Python (``PYSPARK_PYTHON``).
        params: XGBoost's own parameters, as ``booster_params``.
        workers: The number of tasks that train together.
        folder: Where the codes are stored during training; by default a temporary folder, which
            suits a session on one machine.

    If rows are denoised, each step of EM is one pass of the executors over them.  As with
    :class:`DaskXGBoost`, the trees equal those of one machine up to the rounding of sums.

    ::

        session = SparkSession.builder.master("local[2]").getOrCreate()
        bank = op.LabelParty(None, y, booster=SparkXGBoost(session, {"max_depth": 3}))
    """

    session: SparkSession = field(repr=False)
    params: dict[str, Any] = field(default_factory=dict)
    workers: int = 2
    folder: str | Path | None = field(default=None, repr=False)

    def train(self, problem: Problem) -> TrainedXGBoost:
        """Write the rows, train on the session's workers, and fetch the model."""
        if problem.eval_set is not None:
            raise ParameterError("XGBoost on Spark takes no eval_set. Leave early stopping out.")
        with needs_extra("boost,spark", "Training on Spark"):
            from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor
        kind = SparkXGBRegressor if problem.task == "regression" else SparkXGBClassifier
        names = [f"f{j}" for j in range(problem.X.shape[1])]
        weight = {} if problem.weight is None else {"weight_col": "weight"}
        estimator = kind(
            features_col=names,
            label_col="label",
            num_workers=self.workers,
            **weight,
            **self._params(problem),
        )
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="opboost-") as folder:
            _write(problem, names, Path(folder))
            rows = self.session.read.parquet(Path(folder).as_uri())
            booster = estimator.fit(rows).get_booster()
        booster.feature_names = None
        return TrainedXGBoost(booster, problem.task, len(names))

    @contextmanager
    def spread_rows(self, blocks: CutBlocks) -> Iterator[RowBlocks]:
        """Write the encoded rows to the folder; executors pass over them in every step of EM."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="opboost-") as folder:
            for k in range(len(blocks.slices)):
                (Path(folder) / f"block-{k}").write_bytes(pickle.dumps(blocks.block(k)))
            yield SparkBlocks(self.session, blocks, Path(folder))

    def _params(self, problem: Problem) -> dict[str, Any]:
        found, rounds = settings(problem, self.params)
        if "objective" not in self.params:
            del found["objective"]
        for name in _SETTLED:
            found.pop(name, None)
        return {"n_estimators": rounds, **{_NAMES.get(n, n): v for n, v in found.items()}}


@dataclass(frozen=True, eq=False)
class SparkBlocks:
    """Blocks of rows in a folder that all executors of a session can reach."""

    session: SparkSession
    blocks: CutBlocks
    folder: Path

    @property
    def slices(self) -> Sequence[slice]:
        """The rows of the table that each block holds."""
        return self.blocks.slices

    def block(self, k: int) -> EncodedRows:
        """Return one block, from its source."""
        return self.blocks.block(k)

    def map(self, work: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        """Let executors work on the blocks, a few per core at a time; yield results in order."""
        (self.folder / "work").write_bytes(pickle.dumps(work))
        wave = BLOCKS_PER_CORE * self.session.sparkContext.defaultParallelism
        given = enumerate(zip(*each, strict=True)) if each else ((k, ()) for k in self._numbers())
        while numbers := list(islice(given, wave)):
            for k, arguments in numbers:
                (self.folder / f"given-{k}").write_bytes(pickle.dumps(arguments))
            yield from self._wave([k for k, _ in numbers])

    def _numbers(self) -> range:
        return range(len(self.slices))

    def _wave(self, numbers: list[int]) -> Iterator[Any]:
        folder = self.folder

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    found = _applied(folder, number)
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([number], pa.int64()), pa.array([found], pa.binary())],
                        names=["number", "found"],
                    )

        first, count = numbers[0], len(numbers)
        rows = self.session.range(first, first + count, numPartitions=count)
        answers = rows.mapInArrow(work, "number long, found binary").collect()
        for answer in sorted(answers, key=lambda row: row.number):
            yield pickle.loads(answer.found)

    def where(self, keep: BoolArray) -> EncodedRows:
        """Return the marked rows of the table in memory."""
        return self.blocks.where(keep)


def _applied(folder: Path, number: int) -> bytes:
    """Return the result of the work on one block, on an executor."""
    work, rows, given = (
        pickle.loads((folder / name).read_bytes())
        for name in ("work", f"block-{number}", f"given-{number}")
    )
    return pickle.dumps(work(rows, *given))


def _write(problem: Problem, names: list[str], folder: Path) -> None:
    """Write one file per block, with features, label and weight."""
    for number, here in enumerate(_blocks(problem)):
        rows = problem.rows(here).astype(np.float32)
        columns = dict(zip(names, rows.T, strict=True)) | {"label": problem.y[here].astype(float)}
        if problem.weight is not None:
            columns["weight"] = problem.weight[here]
        arrays = {name: pa.array(np.ascontiguousarray(c)) for name, c in columns.items()}
        pa.parquet.write_table(pa.table(arrays), folder / f"{number:06d}.parquet")


def _blocks(problem: Problem) -> Iterator[slice]:
    if isinstance(problem.X, Blocks):
        return iter(problem.X)
    rows, columns = problem.X.shape
    step = max(1, BLOCK_CODES // max(1, columns))
    return (slice(a, min(a + step, rows)) for a in range(0, rows, step))
