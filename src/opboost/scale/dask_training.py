"""XGBoost on a Dask cluster: workers hold the codes, and the label party gets a stock model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from opboost._typing import BoolArray
from opboost.boosting.booster import BLOCK_CODES, Problem
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.row_blocks import CutBlocks, RowBlocks
from opboost.errors import ParameterError, PeerError
from opboost.runtime.extras import needs_extra

with needs_extra("boost,dask", "Training on Dask"):
    import dask.array as da
    from dask import delayed
    from xgboost import dask as dxgb

    from opboost.boosting.xgboost_backend import TrainedXGBoost, settings

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class DaskXGBoost:
    """A booster for ``op.LabelParty`` and the estimators: ``xgboost.dask`` on a client's cluster.

    Every worker holds about the same number of rows, as codes of one or two bytes.  With
    ``memory="external"``, the label party reads them from disk block by block and passes them on.
    If rows are denoised, each step of EM is one pass of the workers over their rows.

    Args:
        client: A ``distributed.Client``.
        params: XGBoost's own parameters, as ``booster_params``.
        parts: The number of row ranges per worker; with more ranges, messages are smaller.

    The same rows on the same number of workers give the same trees.  With another number, XGBoost
    promises only a best effort, because sums of gradients are rounded in another order.  All
    workers bin codes alike, so trees differ only where two splits are equally good.

    >>> import numpy as np, opboost as op
    >>> from distributed import Client
    >>> from opboost.scale.dask_training import DaskXGBoost
    >>> codes = np.random.default_rng(0).integers(0, 10, (500, 2))
    >>> m = op.ClampMap(op.Domain(0, 9), epsilon=2.0)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     booster = DaskXGBoost(client, {"n_estimators": 5})
    ...     clf = op.OpBoostClassifier(m, bounds=(-0.5, 9.5), booster=booster, denoise=False)
    ...     model = clf.fit(codes, codes[:, 0] > 4).model_
    >>> model.num_boosted_rounds()
    5
    """

    client: Client = field(repr=False)
    params: dict[str, Any] = field(default_factory=dict)
    parts: int = 2

    def train(self, problem: Problem) -> TrainedXGBoost:
        """Spread the rows over the workers, train there, and fetch the model."""
        params, rounds = settings(problem, self.params)
        if params.get("tree_method", "hist") not in ("hist", "auto"):
            raise ParameterError("XGBoost on a cluster needs bins: leave tree_method at 'hist'.")
        parts = _Parts(self.client, problem.X.shape, self.parts)
        data = dxgb.DaskQuantileDMatrix(
            self.client,
            parts.spread(problem.rows),
            parts.spread(_of(problem.y)),
            weight=None if problem.weight is None else parts.spread(_of(problem.weight)),
            max_bin=int(params.get("max_bin", 256)),
        )
        evals = []
        if problem.eval_set is not None:
            X, y = problem.eval_set
            held = _Parts(self.client, X.shape, self.parts)
            matrix = dxgb.DaskDMatrix(self.client, held.spread(_of(X)), held.spread(_of(y)))
            evals = [(matrix, "eval")]
        out = dxgb.train(
            self.client,
            params,
            data,
            num_boost_round=rounds,
            evals=evals,
            early_stopping_rounds=problem.early_stopping,
            verbose_eval=False,
        )
        booster = out["booster"]
        if problem.early_stopping is not None:
            booster = booster[: booster.best_iteration + 1]
        return TrainedXGBoost(booster, problem.task, problem.X.shape[1])

    @contextmanager
    def spread_rows(self, blocks: CutBlocks) -> Iterator[RowBlocks]:
        """Send the encoded rows to the workers, which then pass over them in every step of EM."""
        workers = workers_of(self.client)
        futures = [
            self.client.scatter(blocks.block(k), workers=[workers[k % len(workers)]], hash=False)
            for k in range(len(blocks.slices))
        ]
        yield DaskBlocks(self.client, blocks, futures)


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """Blocks of rows that the workers of a Dask cluster hold."""

    client: Client
    blocks: CutBlocks
    futures: list[Any]

    @property
    def slices(self) -> Sequence[slice]:
        """The rows of the table that each block holds."""
        return self.blocks.slices

    def block(self, k: int) -> EncodedRows:
        """Return one block, from its source."""
        return self.blocks.block(k)

    def map(self, work: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        """Let each worker work on its blocks; yield the results in order."""
        shared = self.client.scatter(work, broadcast=True, hash=False)
        tasks = deque(
            self.client.submit(_applied, shared, *given, pure=False)
            for given in zip(self.futures, *each, strict=True)
        )
        while tasks:
            yield tasks.popleft().result()

    def where(self, keep: BoolArray) -> EncodedRows:
        """Return the marked rows of the table in memory."""
        return self.blocks.where(keep)


def _applied(work: Callable[..., Any], *given: Any) -> Any:
    return work(*given)


def workers_of(client: Client) -> list[str]:
    """Return the addresses of a cluster's workers; refuse a cluster without workers."""
    found = sorted(client.scheduler_info(n_workers=-1)["workers"])
    if not found:
        raise PeerError(
            "The Dask cluster has no workers. Start one: dask worker, with its scheduler's address."
        )
    return found


class _Parts:
    """Ranges of rows, equally many per worker, none larger than a block."""

    def __init__(self, client: Client, shape: tuple[int, ...], a_worker: int) -> None:
        rows, columns = shape
        self._client = client
        self._workers = workers_of(client)
        least = -(-rows * max(1, columns) // BLOCK_CODES)
        a_worker = max(a_worker, -(-least // len(self._workers)))
        edges = np.linspace(0, rows, min(rows, a_worker * len(self._workers)) + 1).astype(int)
        self._runs = [slice(a, b) for a, b in pairwise(edges.tolist())]

    def spread(self, read: Callable[[slice], np.ndarray[Any, Any]]) -> da.Array:
        """Send the rows to the workers one part after the other; return them as a Dask array."""
        arrays = []
        for number, run in enumerate(self._runs):
            part = read(run)
            worker = self._workers[number % len(self._workers)]
            sent = self._client.scatter(part, workers=[worker], hash=False)
            arrays.append(da.from_delayed(delayed(sent), part.shape, part.dtype))
        return da.concatenate(arrays)


def _of(rows: np.ndarray[Any, Any]) -> Callable[[slice], np.ndarray[Any, Any]]:
    return lambda here: rows[here]
