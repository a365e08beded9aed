"""``opboost bench peers``: vertical federated boosting by others, in one run on the same rows.

Each peer has an environment of its own (``peers.py``) and, where the system allows it, a network of
its own, so that the bytes on its loopback are its bytes.  A peer that does not install or does not
run is FAILED, with the reason; nothing is taken from elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost_lab.bench.federation import Size, data
from opboost_lab.bench.library_peers import Peer

SIZE = Size(30_000, 10, 4, 1)
QUICK = Size(5_000, 10, 4, 1)
TREES = 80
EPSILON = 0.64
PARAMS = {
    "max_depth": 3,
    "eta": 0.1,
    "objective": "binary:logistic",
    "tree_method": "hist",
    "nthread": 1,
}


@dataclass(frozen=True, slots=True)
class FederatedPeer:
    """A system to compare with: what it protects, the script that runs it, what to install.

    One without a script is installed, to see whether it can be, and not run.
    """

    name: str
    protects: str
    script: str
    requirements: tuple[str, ...] = ()
    """Empty: it runs in this environment."""
    heavy: bool = False
    """Its installation takes many minutes and gigabytes, so it is tried when asked for only."""


PLAIN = FederatedPeer("plain XGBoost", "nothing", "fed_plain.py")
OPBOOST = FederatedPeer("OpBoost", "noise", "fed_opboost.py")
PEERS = (
    PLAIN,
    OPBOOST,
    FederatedPeer("XGBoost vertical", "nothing", "fed_xgboost.py", ("xgboost>=3,<3.4",)),
    FederatedPeer(
        "NVFlare",
        "nothing",
        "fed_nvflare.py",
        ("nvflare==2.9.*", "xgboost>=3,<3.4", "tensorboard"),
    ),
    FederatedPeer("FedTree", "nothing", "fed_fedtree.py", ("fedtree", "numpy<2", "scikit-learn")),
    FederatedPeer("SecretFlow", "HE, MPC", "", ("secretflow",), heavy=True),
    FederatedPeer("FATE", "HE", "", ("pyfate", "fate-client"), heavy=True),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a peer took, or why it did not run."""

    peer: FederatedPeer
    version: str = ""
    seconds: float = 0.0
    bytes: int | None = None
    apart: bool = False
    """Bytes are of its own loopback; if not, of all that ran on this machine meanwhile."""
    memory_mb: float = 0.0
    auc: float = 0.0
    problem: str = ""


def run(
    peers: tuple[FederatedPeer, ...],
    size: Size = SIZE,
    *,
    heavy: bool = False,
    install_limit: float = 300.0,
    run_limit: float = 600.0,
) -> Iterator[Ran]:
    """Run them one after the other; one that fails does not stop the others."""
    X, y, X_test, y_test = data(size)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npz"
        np.savez(table, X=X, y=y, X_test=X_test)
        for peer in peers:
            if peer.heavy and not heavy:
                why = "not tried: it takes longer to install than the limit (--all-peers tries)"
                yield Ran(peer, problem=why)
                continue
            yield _one(peer, size, table, y_test, install_limit, run_limit)


def _one(
    peer: FederatedPeer,
    size: Size,
    table: Path,
    y_test: IntArray,
    install_limit: float,
    run_limit: float,
) -> Ran:
    python, problem = Path(sys.executable), ""
    if peer.requirements:
        home = f"federated-{peer.name.lower().replace(' ', '-')}"
        environment = Peer(home, peer.requirements, peer.script)
        python, problem = environment.environment(install_limit)
    if not problem and not peer.script:
        problem = "installed, but there is no script that sets up its cluster"
    if problem:
        return Ran(peer, problem=_short(problem))
    out = table.with_name("chances.npy")
    out.unlink(missing_ok=True)
    request = {
        "data": str(table),
        "out": str(out),
        "own": size.own,
        "trees": TREES,
        "epsilon": EPSILON,
        "params": PARAMS,
    }
    scripts = resources.files("opboost_lab.bench") / "peer_scripts"
    command = [str(python), str(scripts / "loopback.py"), str(scripts / peer.script)]
    said, memory, problem = watched(command, json.dumps(request), run_limit, table.parent)
    if problem:
        return Ran(peer, problem=_short(problem))
    try:
        answer = json.loads(said.strip().splitlines()[-1])
        auc = _auc(y_test, np.load(out))
    except (ValueError, IndexError, OSError) as error:
        return Ran(peer, problem=f"no answer that can be read: {_short(repr(error))}")
    return Ran(
        peer, answer["version"], answer["seconds"], answer["bytes"], answer["apart"], memory, auc
    )


def watched(command: list[str], request: str, limit: float, home: Path) -> tuple[str, float, str]:
    """What a command says, the most memory its processes had together, and what went wrong.

    It runs in ``home``, so that Python processes of its own keep off this one's folder.
    """
    family = Family(f"OPBOOST_PEER={secrets.token_hex(8)}")
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=home,
            env=os.environ | dict([family.mark.split("=")]),
        ) as process,
        family.watched() as most,
    ):
        try:
            said, errors = process.communicate(request, timeout=limit)
        except subprocess.TimeoutExpired:
            return "", 0.0, f"did not finish within {limit:.0f} s"
        finally:
            family.end()
            process.kill()
    if process.returncode:
        lines = [line for line in errors.splitlines() if line.strip()]
        return "", 0.0, (lines or ["failed without a word"])[-1]
    return said, max(most), ""


@dataclass(frozen=True, slots=True)
class Family:
    """The processes that inherited a mark in their environment, in whatever session they are.

    None are known where there is no ``/proc``.
    """

    mark: str

    def members(self) -> list[int]:
        """Their ids."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes():
                    found.append(int(place.name))
            except OSError:  # ended, or of someone else
                continue
        return found

    def memory_mb(self) -> float:
        """Resident memory of all of them."""
        pages = 0
        for member in self.members():
            with contextlib.suppress(OSError):
                pages += int(Path(f"/proc/{member}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[float]]:
        """Their memory, looked at ten times a second."""
        seen, over = [0.0], threading.Event()

        def look() -> None:
            while not over.wait(0.1):
                seen.append(self.memory_mb())

        watching = threading.Thread(target=look, daemon=True)
        watching.start()
        try:
            yield seen
        finally:
            over.set()
            watching.join()

    def end(self) -> None:
        """End those that are left."""
        for member in self.members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)


def _auc(y: IntArray, chances: FloatArray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, np.asarray(chances).reshape(-1)))


def _short(reason: str) -> str:
    return " ".join(reason.split())[:200]
