"""A small federation on real data, with the parties as processes."""

import contextlib
import json
import re
import shutil
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from sklearn.datasets import load_breast_cancer

from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY, free_port, write_federation
from opboost.errors import OpBoostError
from opboost.protocol.messages import Hello
from opboost.transport.feature.label_connection import Connection
from opboost.transport.shared.development_certificates import PARTS, kit_files, new_kit
from opboost.transport.shared.tls import Identity, read_identity
from robustness.prefork_server import prefork_server, waited

DATA = load_breast_cancer()
NAMES = [str(n) for n in DATA.feature_names]
BOUNDS = {
    n: (float(DATA.data[:, j].min()) * 0.9, float(DATA.data[:, j].max()) * 1.1)
    for j, n in enumerate(NAMES)
}
ROWS = len(DATA.target)
IDS = pa.array([f"person-{i:04d}" for i in range(ROWS)])
BOOSTER = {"num_boost_round": 10, "max_depth": 3, "nthread": 1}


def columns(names, ids=IDS):
    found = {n: DATA.data[:, NAMES.index(n)] for n in names}
    return pa.table({**found, "id": ids})


def federation(folder, parties=("shop", "telco"), rows=ROWS, **settings):
    """Make a federation on the first rows, with two columns for each party."""
    own = columns(NAMES[:2]).append_column("ill", pa.array(DATA.target)).slice(0, rows)
    pairs = {p: NAMES[3 + 2 * i : 5 + 2 * i] for i, p in enumerate(parties)}
    tables = {p: columns(names).slice(0, rows) for p, names in pairs.items()}
    settings = {"epsilon": 2.0, "booster": BOOSTER, **settings}
    return write_federation(folder, own, "ill", tables, BOUNDS, **settings)


class Party:
    """A party's process, forked from the prefork server, with the methods of ``Popen``."""

    def __init__(self, command, folder=None):
        self._folder = Path(tempfile.mkdtemp(prefix="opboost-party-"))
        self._said, self._data = self._folder / "said", self._folder / "data"
        self._said.touch()
        self._data.touch()
        arguments = [str(word) for word in command[command.index("opboost") + 1 :]]
        self._process = prefork_server().start(arguments, self._said, folder, data=self._data)

    def __getattr__(self, name):
        return getattr(self._process, name)

    def address(self, timeout=120):
        """Return the address that ``serve`` prints once it listens."""

        def opened():
            over = self.poll() is not None
            return re.search(": serving .* on (.*)\n", self._said.read_text()) or over

        found = waited(opened, timeout, 0.01)
        if not isinstance(found, re.Match):
            said = self._said.read_text()
            raise OpBoostError(f"The label party did not start. It said: {said or 'nothing'}")
        return found[1].strip()

    def communicate(self, timeout=120):
        """Wait until the process has ended; return its output and its messages."""
        self.wait(timeout)
        if self._folder.exists():
            self._told = self._data.read_text(), self._said.read_text()
            shutil.rmtree(self._folder)
        return self._told


class StartedParties:
    """The parties of a federation as processes that can be started, killed and restarted.

    ``where`` holds the address to which each feature party connects.
    """

    def __init__(self, made):
        self.federation, self.folder, self.processes = made, made.folder, {}
        self.listen()

    def listen(self):
        """Let the label party listen on its own port."""
        self.address = f"127.0.0.1:{free_port()}"
        self.configure(LABEL_PARTY, "listen", f'"{self.address}"')
        self.where = dict.fromkeys(self.federation.parties, self.address)

    def configure(self, party, setting, value):
        """Change an existing setting in a party's file."""
        file = self.federation.config(party)
        file.write_text(re.sub(f"{setting} = .*", f"{setting} = {value}", file.read_text()))

    def command(self, party, *more):
        """Return the command that starts a party."""
        connect = [] if party == LABEL_PARTY else ["--connect", self.where[party]]
        return self.federation.command(party, *connect, *more)

    def start(self, party):
        """Start or restart a party."""
        raise NotImplementedError

    def start_all(self):
        for party in (LABEL_PARTY, *self.federation.parties):
            self.start(party)

    def kill(self, party):
        """Kill a party with ``kill -9``; return whether its process was still there."""
        process = self.processes[party]
        alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        return alive

    def stop(self):
        for party in self.processes:
            self.kill(party)


def joined(made, address, *more, parties=None):
    commands = [made.command(name, "--connect", address, *more) for name in parties or made.parties]
    processes = [Party(command) for command in commands]
    said = [p.communicate(timeout=120) for p in processes]
    for process, (_, err) in zip(processes, said, strict=True):
        assert process.returncode == 0, err
    return [json.loads(out) for out, _ in said]


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)


@contextlib.contextmanager
def serving(made, *more):
    process = Party([*made.command(LABEL_PARTY), *more])
    try:
        yield process, process.address()
    finally:
        if process.poll() is None:
            stop(process)
        else:
            process.communicate()


def wait_for(there, seconds=60):
    assert waited(there, seconds), "the condition did not become true"


def identity_of(made, party):
    return read_identity(kit_files(made.folder / "certs" / party), party)


def new_identity(certs, name, *, days=30.0, true=False):
    """Return an identity from the ``true`` authority of ``certs``, or from another of that name."""
    with tempfile.TemporaryDirectory() as folder:
        if true:
            shutil.copytree(certs / "ca", Path(folder) / "ca")
        made = as_identity(new_kit(name, Path(folder), days=days), name)
    return replace(made, ca=(certs / "ca" / "ca.pem").read_bytes())


def shaken_hands(made, address, identity, party=None, job=None):
    connection = Connection(address, party or identity.name, LABEL_PARTY, identity)
    return connection, connection.hello(Hello(party or identity.name, job or job_hash(made)))


def job_hash(made):
    return load_job(made.folder / "shop" / "job.toml").hash


def as_identity(kit, name):
    """Return a kit's identity, whether or not its files belong together."""
    return Identity(name, *((kit / f"{part}.pem").read_bytes() for part in PARTS))
