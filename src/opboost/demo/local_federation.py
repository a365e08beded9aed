"""A federation on one machine: tables, configurations and certificates of all parties in a folder.

Used by the demo, the benchmark and the tests, which then start the parties as processes.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet

from opboost.errors import OpBoostError
from opboost.runtime.child_processes import python_command
from opboost.transport.shared.development_certificates import new_kit

LABEL_PARTY = "bank"


@dataclass(frozen=True, slots=True)
class LocalFederation:
    """The folders of a federation; each party has one in ``folder``."""

    folder: Path
    parties: tuple[str, ...]

    def config(self, party: str) -> Path:
        """Return a party's configuration file."""
        return self.folder / party / f"{party}.toml"

    def command(self, party: str, *more: str) -> list[str]:
        """Return the command that starts the party's process."""
        verb = "serve" if party == LABEL_PARTY else "join"
        config = str(self.config(party))
        return python_command("-m", "opboost", verb, "-c", config, "--format", "json", *more)


def write_federation(
    folder: Path,
    label_table: pa.Table,
    label: str,
    tables: Mapping[str, pa.Table],
    bounds: Mapping[str, Sequence[float]],
    *,
    epsilon: float,
    cells: int = 10,
    booster: Mapping[str, Any] | None = None,
    listen: str = "127.0.0.1:0",
    party: Mapping[str, str] | None = None,
    ledger: Mapping[str, float] | None = None,
    align: Literal["psi", "given"] = "psi",
    limits: Mapping[str, int] | None = None,
) -> LocalFederation:
    """Write a federation whose feature parties have one mechanism for all columns.

    Tables hold their ``id`` column.  ``limits`` are settings of every party's ``[align]``.
    """
    mechanism = (
        f"[grid]\nlower = 1\nupper = {cells}\n\n"
        f'[mechanism]\nkind = "clamp-map"\nepsilon = {epsilon}\n\n'
    )
    declared = {
        name: mechanism
        + "".join(
            f"[columns.{json.dumps(c)}]\nbounds = [{bounds[c][0]}, {bounds[c][1]}]\n"
            for c in table.column_names
            if c != "id"
        )
        for name, table in tables.items()
    }
    return write_declared_federation(
        folder,
        label_table,
        label,
        tables,
        declared,
        booster=booster,
        listen=listen,
        party=party,
        ledger=ledger,
        align=align,
        limits=limits,
    )


def write_declared_federation(
    folder: Path,
    label_table: pa.Table,
    label: str,
    tables: Mapping[str, pa.Table],
    declared: Mapping[str, str],
    *,
    id: str = "id",
    booster: Mapping[str, Any] | None = None,
    listen: str = "127.0.0.1:0",
    party: Mapping[str, str] | None = None,
    ledger: Mapping[str, float] | None = None,
    align: Literal["psi", "given"] = "psi",
    limits: Mapping[str, int] | None = None,
) -> LocalFederation:
    """Write tables, configurations, certificates and the job file.

    ``declared`` is the part of each feature party's file about its columns, budget or mechanism;
    ``id`` is the column of row IDs in every table.
    """
    names = tuple(tables)
    job = (
        '[job]\nname = "scene"\n'
        f'label_party = "{LABEL_PARTY}"\nfeature_parties = {json.dumps(list(names))}\n'
        f'align = "{align}"\n'
    )
    for name in (LABEL_PARTY, *names):
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "job.toml").write_text(job)
        new_kit(name, folder / "certs")
        table = label_table if name == LABEL_PARTY else tables[name]
        pa.parquet.write_table(table, home / "table.parquet")
    federation = LocalFederation(folder, names)
    federation.config(LABEL_PARTY).write_text(
        _party(LABEL_PARTY, {"listen": listen}, id, limits or {})
        + f'[label]\ncolumn = "{label}"\n\n[booster]\nkind = "xgboost"\n'
        + f"params = {_inline(booster or {})}\n"
    )
    for name in names:
        caps = "".join(f"{key} = {value}\n" for key, value in (ledger or {}).items())
        federation.config(name).write_text(
            _party(name, {"connect": "127.0.0.1:1", **(party or {})}, id, limits or {})
            + f'[ledger]\nfolder = "ledger"\nkey = "../keys/{name}.key"\n{caps}\n'
            + declared[name]
        )
    return federation


def _party(name: str, settings: Mapping[str, str], id: str, limits: Mapping[str, int]) -> str:
    files = {"job": "job.toml", "table": "table.parquet", "state": "state"}
    plain = {"name": name, **files, **settings}
    lines = "".join(f'{key} = "{value}"\n' for key, value in plain.items())
    align = "".join(f"{key} = {value}\n" for key, value in limits.items())
    return f'[party]\n{lines}\n[tls]\nkit = "../certs/{name}"\n\n[align]\nid = "{id}"\n{align}\n'


def _inline(values: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in values.items()) + " }"


@dataclass(frozen=True, slots=True)
class PartyOutcome:
    """The duration of a run, and the JSON that the parties' processes printed."""

    seconds: float
    manifests: dict[str, dict[str, Any]]


Between = Callable[[str, str], str]
"""A function from a party's name and the label party's address to the address to connect to."""


def run_federation(
    federation: LocalFederation,
    *,
    timeout: float = 600.0,
    between: Between = lambda name, address: address,
) -> PartyOutcome:
    """Start every party as a process of its own and wait until the model is written."""
    port = free_port()
    config = federation.config(LABEL_PARTY)
    text = config.read_text()
    config.write_text(re.sub(r"listen = .*", f'listen = "127.0.0.1:{port}"', text))
    started = time.perf_counter()
    with ExitStack() as stack:
        serving = stack.enter_context(started_process(federation.command(LABEL_PARTY)))
        address = f"127.0.0.1:{port}"
        joining = {
            name: stack.enter_context(
                started_process([*federation.command(name), "--connect", between(name, address)])
            )
            for name in federation.parties
        }
        processes = {LABEL_PARTY: serving, **joining}
        try:
            _watch(processes, started + timeout)
        finally:
            for process in processes.values():
                process.kill()
        seconds = time.perf_counter() - started
        said = {name: process.communicate() for name, process in processes.items()}
        for name, process in processes.items():
            if process.returncode > 0:
                raise OpBoostError(f"Party {name!r} failed: {said[name][1].strip()}")
    return PartyOutcome(seconds, {name: json.loads(out) for name, (out, _) in said.items()})


def _watch(processes: Mapping[str, subprocess.Popen[str]], end: float) -> None:
    """Wait until all processes are done, one has failed, or time is up."""
    while None in [p.poll() for p in processes.values()]:  # poll all, to notice a failed one
        if any(p.returncode for p in processes.values()):
            return
        if time.perf_counter() > end:
            raise OpBoostError("The parties did not finish in time.")
        time.sleep(0.01)


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def started_process(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a process and capture its output."""
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def wait_for_address(serving: subprocess.Popen[str]) -> str:
    """Return the address that ``serve`` prints when it listens."""
    assert serving.stderr is not None
    for line in serving.stderr:
        if ": serving " in line:
            return line.rsplit(" on ", 1)[1].strip()
    raise OpBoostError("The label party ended before it listened.")
