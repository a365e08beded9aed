"""Inject faults into a small federation of processes, and check what must hold afterwards.

Noise is cryptographic, so two jobs on fresh ledgers differ.  The check is stricter: after a
disturbed job, an undisturbed one over a copy of the same ledgers must draw nothing, charge nothing,
and give the same model, byte by byte.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import opboost as op
from opboost.config.job_file import load_feature, load_label
from opboost.config.sections import LedgerSection
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation
from opboost.ledger import Ledger
from opboost.ledger.open_ledger import open_ledger
from opboost.ledger.person_totals import totals
from opboost.ledger.verify_ledger import verify
from opboost.transport.feature.feature_job import feature_party
from opboost.transport.label.label_job import label_party, read_data
from opboost_lab.bench.process_usage import child_of, command_of
from robustness.party_processes import StartedParties, federation
from robustness.prefork_server import Process, prefork_server, waited

PARTIES = ("shop", "telco")
ALL = (LABEL_PARTY, *PARTIES)
ROWS = 150
COLUMNS = 2
EPSILON = 2.0
PATIENCE = 90.0
"""Seconds within which a job must be done after the fault."""

REACH = 25
"""Seconds for which a feature party tries to reach a label party that does not answer."""

RESUMED = "Resuming job"
"""The start of the message of a party that is restarted during a job."""


@lru_cache(maxsize=1)
def _template() -> LocalFederation:
    """Return a federation that each trial copies, so that keys and tables are made once."""
    folder = Path(tempfile.mkdtemp(prefix="opboost-stage-"))
    booster = {"num_boost_round": 6, "max_depth": 3, "nthread": 1}
    made = federation(folder, PARTIES, rows=ROWS, epsilon=EPSILON, booster=booster)
    for party in PARTIES:
        config = made.config(party)
        config.write_text(f"{config.read_text()}\n[limits]\nconnect_seconds = {REACH}\n")
    return made


class FaultsHarness(StartedParties):
    """The parties of one job, and checks of the files and messages that they leave.

    With an ``environment``, a party is not forked but started anew, which takes seconds.
    """

    def __init__(self, folder: Path) -> None:
        made = _template()
        shutil.copytree(made.folder, folder, dirs_exist_ok=True)
        super().__init__(LocalFederation(folder, made.parties))
        self.environment: dict[str, str] = {}

    def be_patient(self) -> None:
        """Let feature parties try to reach the label party for as long as it takes."""
        for party in PARTIES:
            self.configure(party, "connect_seconds", "600")

    def home(self, party: str) -> Path:
        return self.folder / party

    def start(self, party: str) -> Any:
        """Start or restart a party; return its process."""
        said = self.home(party) / "said"
        if not self.environment:
            self.processes[party] = self.forked(party, said)
            return self.processes[party]
        own = {**os.environ, **self.environment}
        with said.open("ab") as err:
            self.processes[party] = subprocess.Popen(
                self.command(party), stdout=subprocess.DEVNULL, stderr=err, env=own
            )
        return self.processes[party]

    def forked(self, party: str, said: Path) -> Process:
        """Return a process of a party that appends its messages to a file."""
        command = self.command(party)
        return prefork_server().start(command[command.index("opboost") + 1 :], said)

    def stop(self) -> None:
        """Kill all parties, and wait for the label server, which notices and ends by itself."""
        number = self._label_server()
        super().stop()
        self.wait(lambda: number is None or not command_of(number), 30)

    def _label_server(self) -> int | None:
        """Return the label party's process that faces the network; None if there is none."""
        if LABEL_PARTY not in self.processes:
            return None
        return child_of(self.processes[LABEL_PARTY].pid, "opboost.transport.label.label_server")

    def kill_label_server(self) -> int:
        """Kill the label party's process that faces the network; return 0 if there is none."""
        number = self._label_server()
        if number is None:
            return 0
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        return 1

    def said(self, party: str) -> str:
        """Return all messages of a party's processes so far."""
        file = self.home(party) / "said"
        return file.read_text(errors="replace") if file.exists() else ""

    def words(self, party: str) -> list[str]:
        return self.said(party).strip().splitlines()

    def wait(self, there: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Wait for a condition, checking often; return whether it held in time."""
        return bool(waited(there, seconds, 0.0005))

    def has(self, pattern: str) -> bool:
        return next(self.folder.glob(pattern), None) is not None

    def over(self, party: str) -> bool:
        return self.processes[party].poll() is not None

    def finished(self, seconds: float = PATIENCE) -> list[str]:
        """Wait for the parties; return complaints about those that failed."""

        def over() -> bool:
            statuses = [process.poll() for process in self.processes.values()]
            return None not in statuses or any(statuses)

        waited(over, seconds, 0.01)
        return [
            f"{party} ended with {process.poll()}: {' | '.join(self.words(party)[-3:])}"
            for party, process in self.processes.items()
            if process.poll() != 0
        ]

    def complaints(self) -> list[str]:
        """Return what is wrong with a finished job; empty if nothing is."""
        found = [c for party in PARTIES for c in self._ledger_complaints(party)]
        found += self._left_behind()
        found += self.tracebacks()
        model = self.home(LABEL_PARTY) / "model.opboost"
        if not model.exists():
            return [*found, "there is no model"]
        if content(model) != self.undisturbed():
            found.append("the model is not that of an undisturbed run")
        return found

    def tracebacks(self) -> list[str]:
        return [f"{p} showed a traceback" for p in ALL if "Traceback" in self.said(p)]

    def undisturbed(self) -> dict[str, bytes]:
        """Return the model of an undisturbed run over copies of the ledgers, in this process."""
        config = load_label(self.federation.config(LABEL_PARTY))
        with ExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ledgers, channels = [], []
            for name in PARTIES:
                theirs = load_feature(self.federation.config(name))
                theirs = replace(theirs, state=place / name / "state")
                ledgers.append(stack.enter_context(_copied_ledger(theirs.ledger, place / name)))
                channels.append(op.MemoryChannel(feature_party(theirs, ledgers[-1])))
            estimator = label_party(config, read_data(config)).train(channels)
            for ledger in ledgers:
                commit = list(ledger.entries("commit"))[-1]
                if commit.body["new_cells"]:
                    return {"drawn anew": str(commit.body["new_cells"]).encode()}
            estimator.label_column_ = config.label.column
            estimator.save(place / "model.opboost")
            return content(place / "model.opboost")

    def _ledger_complaints(self, party: str) -> list[str]:
        config = load_feature(self.federation.config(party))
        found = []
        with open_ledger(config.ledger) as ledger:
            found += [f"{party}'s ledger: {f.words}" for f in verify(ledger)]
            kinds = Counter(e.kind for e in ledger.entries())
            spent = totals(ledger)
            drawn = _draws(ledger)
        for kind in ("open", "align", "aligned", "answer"):
            if kinds[kind] != 1:
                found.append(f"{party}'s ledger has {kinds[kind]} entries {kind!r}")
        # Repeating an interrupted release from the ledger adds an entry but charges nothing.
        if not kinds["commit"] or kinds["reserve"] != kinds["commit"] + kinds["abort"]:
            found.append(f"{party}'s ledger has the entries {dict(kinds)}")
        level = (10 - 1) * EPSILON
        for attribute, of in spent.items():
            most = round(level * 10**9) * (1 if attribute else COLUMNS)
            if (of.people, of.most) != (ROWS, most):
                found.append(f"{party} charged {of.most / 1e9:g} for {attribute!r} to {of.people}")
        if len(drawn) != len(set(drawn)) or len(drawn) != ROWS * COLUMNS:
            found.append(f"{party} drew {len(drawn)} cells, {len(set(drawn))} different ones")
        return found

    def _left_behind(self) -> list[str]:
        """Return files that a finished job must not leave: half-written ones, secrets, draws."""
        names = ("*.part", ".secret*", "secret", "*.draws", "*.doubled")
        return [
            f"{file.relative_to(self.folder)} is left behind"
            for party in ALL
            for name in names
            for file in self.home(party).rglob(name)
        ]


def _copied_ledger(section: LedgerSection, place: Path) -> Ledger:
    """Return a copy of a ledger with its key; the chain's witness follows the copy."""
    shutil.copytree(section.folder, place / "ledger")
    key = place / "ledger.key"
    key.touch(mode=0o600)
    key.write_bytes(Path(section.key).read_bytes())
    return Ledger(place / "ledger", key)


def _draws(ledger: Ledger) -> list[tuple[str, bytes]]:
    """Return every drawn cell: its attribute, and the person it is about."""
    found = []
    for run in ledger.runs():
        file = ledger.run_file(run)
        sent = file.sent(slice(None))
        for k, column in enumerate(run.columns):
            found += [(column.attribute, bytes(handle)) for handle in file.handles[sent[:, k]]]
    return found


def content(model: Path | BytesIO) -> dict[str, bytes]:
    """Return an archive's content, without the times at which its parts were packed."""
    with zipfile.ZipFile(model) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@contextmanager
def staged() -> Iterator[FaultsHarness]:
    """Yield a fresh federation; remove it and its processes at the end."""
    with tempfile.TemporaryDirectory(prefix="opboost-trial-") as folder:
        harness = FaultsHarness(Path(folder))
        try:
            yield harness
        finally:
            harness.stop()
