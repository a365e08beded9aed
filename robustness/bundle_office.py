"""Run a job by bundles, with every command as a party would type it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY
from opboost.transport.shared.bundle_file import Bundle
from opboost.transport.shared.bundle_keys import PrivateKey
from opboost.transport.shared.bundle_steps import steps_of
from robustness.command_line import run
from robustness.party_processes import Party


class Office:
    """The parties of a federation, and the folders from which a carrier takes their bundles."""

    def __init__(self, made, processes=False):
        self.made, self.processes = made, processes

    def out(self, party):
        return self.made.folder / "out" / party

    def command(self, party, verb, *given, to=None):
        where = [] if verb == "finish" else ["--to", str(to or self.out(party))]
        config = str(self.made.config(party))
        more = [*map(str, given), *where, "--format", "json"]
        return [sys.executable, "-m", "opboost", "bundle", verb, "-c", config, *more]

    def run(self, party, verb, *given, to=None):
        """Run a command that must succeed, and return its JSON output."""
        done = self.tried(party, verb, *given, to=to)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def tried(self, party, verb, *given, to=None):
        """Run a command that may fail, in its own process or in this one."""
        command = self.command(party, verb, *given, to=to)
        if self.processes:
            process = Party(command)
            out, said = process.communicate()
            return subprocess.CompletedProcess(command, process.returncode, out, said)
        return subprocess.CompletedProcess(command, *run(*command[3:]))

    def written(self, party, verb, *given, to=None):
        """Return the bundles that a command wrote, by recipient."""
        said = self.run(party, verb, *given, to=to)
        return {w["for"]: w["path"] for w in said["written"]}

    def begun(self, *more):
        """Take the first step, and return a bundle for each feature party."""
        return self.written(LABEL_PARTY, "align", *more)

    def sent_back(self, verb, sent):
        """Return each feature party's answer to its bundle with this command."""
        return [self.written(party, verb, bundle)[LABEL_PARTY] for party, bundle in sent.items()]

    def queries(self, sent):
        """Release, after any pilots, and return the split queries."""
        while sent:
            exports = self.sent_back("export", sent)
            written = self.run(LABEL_PARTY, "split-query", *exports)["written"]
            sent = {w["for"]: w["path"] for w in written if w["next"] == "export"}
        return {w["for"]: w["path"] for w in written}

    def model(self, *more):
        """Run the whole job by bundles, and return the path of the model."""
        sent = self.begun(*more)
        if len(steps_of(load_job(self.made.folder / LABEL_PARTY / "job.toml"))) > 4:
            sent = self.written(LABEL_PARTY, "align", *self.sent_back("align", sent))
        self.finish(self.queries(sent))
        return self.made.folder / LABEL_PARTY / "model.opboost"

    def finish(self, queries):
        """Answer the split queries, and return the path of the model."""
        self.run(LABEL_PARTY, "finish", *self.sent_back("answer", queries))


def extracted(bundle: Bundle, key: PrivateKey, folder: Path, lock: bytes = b"") -> dict[str, bytes]:
    """Decrypt a bundle into a new folder, and return its items by name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    bundle.extract(key, folder, lock)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
