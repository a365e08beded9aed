"""``opboost bench peers``: other systems for vertical boosting, in one run on the same rows.

Each peer has its own environment (``library_peers.py``), a process with a time limit and, where the
system allows it, a network namespace, so that its loopback carries only its own bytes.  A peer that
cannot be installed or run gets a row with the reason and, if any, figures measured elsewhere.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost_lab.bench import federation
from opboost_lab.bench.library_peers import SCRIPTS, Peer, PeerError, answered

SIZE = federation.Size(30_000, 10, 4, 1)
QUICK = federation.Size(5_000, 10, 4, 1)
TREES = 80
EXTRAPOLATED_FROM = (1, 3)
"""The tree counts of two jobs; the difference of their costs gives the cost of a tree."""
PARAMS = {
    "max_depth": 3,
    "eta": 0.1,
    "objective": "binary:logistic",
    "tree_method": "hist",
    "nthread": 1,
}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The figures of a system on another machine, and its ratio to plain XGBoost there."""

    seconds: float
    ratio: float
    bytes: int | None = None
    extrapolated: bool = False


@dataclass(frozen=True, slots=True)
class FederatedPeer:
    """A system to compare with: what it protects, whom one must trust, how to install and run it.

    A system without a script is only installed, to see whether that works.
    """

    name: str
    protects: str
    trust: str
    script: str = ""
    requirements: tuple[str, ...] = ()
    """If empty, it runs in this environment."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    run: Literal["repeated", "once", "extrapolated"] = "repeated"
    python: str = ""
    """The version of Python that it needs, if not this one."""
    needs: str = ""
    """What it needs from the operating system, in a sentence."""
    heavy: bool = False
    """Whether it takes many minutes and gigabytes, so that it is tried only on request."""
    encrypts: bool = False
    elsewhere: Elsewhere | None = None


def _listed() -> tuple[FederatedPeer, ...]:
    text = resources.files(__package__).joinpath("federated_peers.toml").read_text("utf-8")
    found = []
    for about in tomllib.loads(text)["peer"]:
        about["requirements"] = tuple(about.get("requirements", ()))
        if "elsewhere" in about:
            about["elsewhere"] = Elsewhere(**about["elsewhere"])
        found.append(FederatedPeer(**about))
    return tuple(found)


PEERS = _listed()
PLAIN, ALONE = PEERS[:2]
OPBOOST, DP_EBM = PEERS[3], PEERS[6]


@dataclass(frozen=True, slots=True)
class Rows:
    """Training and test rows, the label party's ``own`` columns first, with declared bounds."""

    X: FloatArray
    y: IntArray
    X_test: FloatArray
    y_test: IntArray
    own: int
    bounds: FloatArray
    nominal: BoolArray


def synthetic(size: federation.Size = SIZE) -> Rows:
    """Return rows in which a booster gains from every column."""
    columns = size.own + size.theirs
    bounds = np.tile([-4.0, 4.0], (columns, 1))
    return Rows(*federation.data(size), size.own, bounds, np.zeros(columns, bool))


def adult() -> Rows:
    """Return Adult: the label party holds the categories as codes, the feature party 5 numbers."""
    import pyarrow as pa

    from opboost_lab.data import datasets

    data = datasets.adult()
    whole = pa.concat_tables([data.train, data.test])
    own = [n for n in whole.column_names if n not in data.bounds and n != data.label]

    def numbers(name: str) -> FloatArray:
        values = whole.column(name).to_numpy()
        coded = values if name in data.bounds else np.unique(values, return_inverse=True)[1]
        return coded.astype(np.float64)

    X = np.column_stack([numbers(name) for name in (*own, *data.bounds)])
    y, cut = numbers(data.label).astype(np.int64), data.train.num_rows
    bounds = np.array([*((0.0, numbers(name).max()) for name in own), *data.bounds.values()])
    nominal = np.arange(len(bounds)) < len(own)
    return Rows(X[:cut], y[:cut], X[cut:], y[cut:], len(own), bounds, nominal)


@dataclass(frozen=True, slots=True)
class Ran:
    """The figures of a peer, or why it did not run."""

    peer: FederatedPeer
    version: str = ""
    seconds: float = 0.0
    """Median of the repeats; extrapolated if the peer says so."""
    plain: float = 0.0
    """Seconds of plain XGBoost, measured just before and just after; 0 if it fails."""
    bytes: int | None = None
    apart: bool = False
    """Whether ``bytes`` counts only the peer's loopback, not all traffic on the machine's."""
    auc: dict[str, list[float]] = field(default_factory=dict)
    """By table, the AUC of each repeat; of a model of few trees if the time is extrapolated."""
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        """The time over that of plain XGBoost."""
        return self.seconds / self.plain if self.plain else None


def run(
    peers: tuple[FederatedPeer, ...],
    tables: Mapping[str, Rows],
    *,
    repeats: int = 1,
    heavy: bool = False,
    measured: Mapping[str, Ran] = MappingProxyType({}),
    install_limit: float = 300.0,
    run_limit: float = 600.0,
    plain_runs: int = 3,
) -> Iterator[Ran]:
    """Run the peers one after the other; a failing peer does not stop the others.

    Times are those of the first table; the others only add accuracy.  ``measured`` holds results
    of an earlier run by the name of the peer; these peers do not run again.
    """
    for peer in peers:
        if peer.name in measured:
            yield measured[peer.name]
            continue
        if peer.heavy and not heavy:
            yield Ran(peer, problem="not tried, because it takes long: --all-peers tries it")
            continue
        try:
            yield _one(
                peer, _interpreter(peer, install_limit), tables, repeats, run_limit, plain_runs
            )
        except PeerError as error:
            yield Ran(peer, problem=". ".join(filter(None, (str(error), peer.needs))))


def _interpreter(peer: FederatedPeer, limit: float) -> Path:
    if not peer.requirements:
        return Path(sys.executable)
    home = "federated-" + re.split(r"[^\w-]", peer.requirements[0])[0]
    python = Peer(home, peer.requirements, peer.script, peer.python).environment(limit)
    if not peer.script:
        raise PeerError("was installed, but there is no script that runs it")
    return python


def _one(
    peer: FederatedPeer,
    python: Path,
    tables: Mapping[str, Rows],
    repeats: int,
    limit: float,
    plain_runs: int,
) -> Ran:
    often = repeats if peer.run == "repeated" else 1
    counts = EXTRAPOLATED_FROM if peer.run == "extrapolated" else (TREES,) * often
    first, *others = tables
    before = 0.0 if peer == PLAIN else _plain(tables[first], limit, plain_runs)
    jobs = [_job(peer, python, tables[first], trees, limit) for trees in counts]
    seconds = _figure([job["seconds"] for job in jobs], peer)
    plain = seconds if peer == PLAIN else (before + _plain(tables[first], limit, plain_runs)) / 2
    auc = {first: [job["auc"] for job in jobs if job["trees"] == counts[-1]]}
    for name in others if peer.run == "repeated" else ():
        again = [_job(peer, python, tables[name], TREES, limit) for _ in range(often)]
        auc[name] = [job["auc"] for job in again]
    last = jobs[-1]
    sent = None if last["bytes"] is None else round(_figure([job["bytes"] for job in jobs], peer))
    return Ran(peer, last["version"], seconds, plain, sent, last["apart"], auc)


def _plain(rows: Rows, limit: float, runs: int) -> float:
    """Return the seconds of plain XGBoost now: a machine's speed changes during a long run."""
    with contextlib.suppress(PeerError):
        jobs = [_job(PLAIN, Path(sys.executable), rows, TREES, limit) for _ in range(runs)]
        return _figure([job["seconds"] for job in jobs], PLAIN)
    return 0.0


def _figure(values: list[float], peer: FederatedPeer) -> float:
    """Return the median of repeats, or the figure of all trees, extrapolated from two jobs."""
    if peer.run != "extrapolated":
        return statistics.median(values)
    few, more = EXTRAPOLATED_FROM
    return values[0] + (TREES - few) * (values[1] - values[0]) / (more - few)


def _job(peer: FederatedPeer, python: Path, rows: Rows, trees: int, limit: float) -> Any:
    """Train in a separate process; return version, seconds, bytes and the AUC of the model."""
    from sklearn.metrics import roc_auc_score

    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.npz", Path(folder) / "chances.npy"
        kept = {name: getattr(rows, name) for name in ("X", "y", "X_test", "bounds", "nominal")}
        np.savez(table, **kept)
        request = {"data": str(table), "out": str(out), "own": rows.own, "trees": trees}
        request |= {"params": PARAMS, **peer.settings}
        command = [str(python), str(SCRIPTS / "loopback.py"), str(SCRIPTS / peer.script)]
        try:
            answer = answered(command, request, limit, table.parent)
            auc = float(roc_auc_score(rows.y_test, np.load(out).reshape(-1)))
        except PeerError as error:
            raise PeerError(f"{error} (trees: {trees})") from None
        except (ValueError, OSError) as error:
            raise PeerError(f"predicted nothing that can be scored: {error}") from None
    return {**answer, "auc": auc, "trees": trees}
