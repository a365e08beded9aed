"""A job by bundles: every command as a party would type it."""

from __future__ import annotations

import json
import subprocess
import sys

from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY
from opboost.transport.shared.bundle_steps import steps_of
from robustness.command_line import run
from robustness.party_processes import Party


class Office:
    """The parties of a scene, and the folders from which a carrier takes their bundles."""

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
        """What a command says to a program; it must end well."""
        done = self.tried(party, verb, *given, to=to)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def tried(self, party, verb, *given, to=None):
        """A command that may fail, as a process of its own or in this one."""
        command = self.command(party, verb, *given, to=to)
        if self.processes:
            process = Party(command)
            out, said = process.communicate()
            return subprocess.CompletedProcess(command, process.returncode, out, said)
        return subprocess.CompletedProcess(command, *run(*command[3:]))

    def written(self, party, verb, *given, to=None):
        """The bundles that a command wrote, by recipient."""
        said = self.run(party, verb, *given, to=to)
        return {w["for"]: w["path"] for w in said["written"]}

    def begun(self, *more):
        """The first step: a bundle for each feature party."""
        return self.written(LABEL_PARTY, "align", *more)

    def sent_back(self, verb, sent):
        """What each feature party answers to its bundle with this verb."""
        return [self.written(party, verb, bundle)[LABEL_PARTY] for party, bundle in sent.items()]

    def queries(self, sent):
        """The releases, after the pilots of parties that have one; the split queries for them."""
        while sent:
            exports = self.sent_back("export", sent)
            written = self.run(LABEL_PARTY, "split-query", *exports)["written"]
            sent = {w["for"]: w["path"] for w in written if w["next"] == "export"}
        return {w["for"]: w["path"] for w in written}

    def model(self, *more):
        """The whole job, by bundles; where the model is."""
        sent = self.begun(*more)
        if len(steps_of(load_job(self.made.folder / LABEL_PARTY / "job.toml"))) > 4:
            sent = self.written(LABEL_PARTY, "align", *self.sent_back("align", sent))
        self.finish(self.queries(sent))
        return self.made.folder / LABEL_PARTY / "model.opboost"

    def finish(self, queries):
        """The answers to the split queries, and the model."""
        self.run(LABEL_PARTY, "finish", *self.sent_back("answer", queries))
