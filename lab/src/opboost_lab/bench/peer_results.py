"""The results of ``opboost bench peers`` in one JSON file, from which a stopped run resumes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from opboost.errors import DataError
from opboost.storage.atomic_files import read_json, write
from opboost_lab.bench.federated_peers import PEERS, FederatedPeer, Ran


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured, on which rows, and how often."""

    rows: str
    repeats: int
    machine: str
    ran: tuple[Ran, ...] = ()

    def save(self, path: Path) -> None:
        """Write the results, each under the name of its peer."""
        known = {ran.peer.name: _figures(ran) for ran in self.ran}
        text = json.dumps(asdict(replace(self, ran=())) | {"ran": known}, indent=1)
        write(path, f"{text}\n".encode())


def load(path: Path, peers: Iterable[FederatedPeer] = PEERS) -> Results:
    """Return the stored results of the peers that are installed and run in the same way now."""
    stored = read_json(path, dict[str, Any], "Remove the file, and measure again.")
    found = []
    for peer in peers:
        figures = stored["ran"].get(peer.name, {})
        if figures.pop("asked", None) == _asked(peer):
            found.append(Ran(peer, **figures))
    return Results(stored["rows"], stored["repeats"], stored["machine"], tuple(found))


def load_or_begin(
    path: Path | None, fresh: Results, peers: Iterable[FederatedPeer] = PEERS
) -> Results:
    """Return the stored results, if any; they must have the same rows, repeats and machine."""
    if path is None or not path.exists():
        return fresh
    found = load(path, peers)
    if replace(found, ran=()) != fresh:
        raise DataError(
            f"{path} holds results of {found.rows}, {found.repeats} repeats, {found.machine}; "
            f"this run has {fresh.rows}, {fresh.repeats} repeats, {fresh.machine}.",
            hint="Name another file with --results.",
        )
    return found


def _figures(ran: Ran) -> dict[str, Any]:
    figures = asdict(ran) | {"asked": _asked(ran.peer)}
    del figures["peer"]
    return figures


def _asked(peer: FederatedPeer) -> dict[str, Any]:
    """Return what a peer's figures depend on, without its descriptions."""
    return {
        "script": peer.script,
        "requirements": list(peer.requirements),
        "settings": dict(peer.settings),
        "run": peer.run,
        "python": peer.python,
    }
