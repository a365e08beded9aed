"""Count the bytes that each party sends in a whole job, in the channel between them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.columns.codebook import CodedColumn
from opboost.columns.private_column import PrivateColumn
from opboost.demo.local_federation import run_federation, write_federation
from opboost.grid import Domain, NumericMapping
from opboost.parties.channel import MemoryChannel, Weigh
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Farewell, Schema, SplitQuery, Welcome, encode
from opboost_lab.accuracy import GRID, PARAMS
from opboost_lab.counting_proxy import CountingProxy
from opboost_lab.reproduce.measures.cost_tables import CostTable, cost_table
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json


class CountingChannel(MemoryChannel):
    """A channel in memory that also counts the label party's bytes and the entropy of codes."""

    def __init__(self, party: FeatureParty) -> None:
        super().__init__(party)
        self.asked = 0
        self.cuts = 0
        self.entropy = 0.0
        self.codes = 0
        self._job = ""

    def open(self, welcome: Welcome, weigh: Weigh | None = None) -> Schema:
        """Count the welcome."""
        self.asked += len(encode(welcome))
        self._job = welcome.job
        return super().open(welcome, weigh)

    def columns(self) -> Iterator[tuple[ColumnHead, CodedColumn]]:
        """Count each column's stream and the entropy of its codes."""
        before = self.sent
        for head, column in super().columns():
            self.entropy += entropy_bytes(column.codes)
            self.codes = self.sent - before
            yield head, column

    def ask(self, query: SplitQuery) -> None:
        """Count the split query and the cuts that it names."""
        self.asked += len(encode(query))
        self.cuts += sum(len(c.codes) for c in query.columns)
        super().ask(query)

    def close(self) -> None:
        """Count the farewell."""
        self.asked += len(encode(Farewell(self._job)))
        super().close()


def entropy_bytes(codes: IntArray) -> float:
    """Return the bytes that an ideal coder needs for these codes.

    >>> entropy_bytes(np.array([0, 1] * 8))
    2.0
    """
    counts = np.bincount(codes)
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum() * len(codes) / 8)


def traffic(
    name: str, booster: str, method: Json, epsilon: float, bundled: bool, rows: int | None = None
) -> Json:
    """Run a whole job in memory, with the bytes that a network would carry."""
    table = cost_table(name, bundled, rows)
    return job_traffic(table, Method(**method), epsilon, booster, PARAMS[booster])


def job_traffic(
    table: CostTable,
    method: Method,
    epsilon: float,
    booster: str,
    params: dict[str, Any],
    domain: Domain = GRID,
) -> Json:
    """Run a job; return the bytes by party, and what they hold."""
    mechanism = method.mechanism(domain, epsilon)
    mapping: Any = "cells" if method.kind == "ours" else "paper"
    columns = [
        PrivateColumn(c, NumericMapping(domain, bounds, mapping=mapping), mechanism)
        for c, bounds in table.bounds.items()
    ]
    task: Any = "regress" if table.task == "regression" else "classify"
    with tempfile.TemporaryDirectory() as folder:
        channel = CountingChannel(FeatureParty(table.private, columns, state=Path(folder)))
        label = LabelParty(
            table.own,
            table.y,
            booster=booster,
            booster_params={**params, "nthread": 1} if booster == "xgboost" else params,
            denoise=False,
            random_state=0,
            task=task,
            ask="used",  # as the paper does
            held_out=0,
        )
        label.train([channel])
    return {
        "a": channel.asked,
        "b": channel.sent,
        "codes": channel.codes,
        "entropy": channel.entropy,
        "cuts": channel.cuts,
        "values": table.private.num_rows * table.private.num_columns,
    }


def networked(name: str, epsilon: float, bundled: bool) -> Json:
    """Run the job by Clamp-map as processes over mutual TLS, and count bytes on the socket."""
    table = cost_table(name, bundled)
    ids = pa.array([f"p{i:08d}" for i in range(len(table.y))])
    own = table.own if table.own is not None else pa.table({"id": ids})
    label = own if "id" in own.column_names else own.append_column("id", ids)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        federation = write_federation(
            Path(folder),
            label.append_column("y", pa.array(table.y)),
            "y",
            {"shop": table.private.append_column("id", ids)},
            table.bounds,
            epsilon=epsilon,
            booster={"num_boost_round": 80, "max_depth": 3, "eta": 0.1, "nthread": 1},
            align="given",
        )
        relays: list[CountingProxy] = []

        def between(name: str, address: str) -> str:
            relays.append(stack.enter_context(CountingProxy(address)))
            return relays[0].address

        run_federation(federation, between=between)
        return {"a": relays[0].down, "b": relays[0].up}
