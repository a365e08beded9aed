"""Run whole jobs and commands of parties."""

from __future__ import annotations

import subprocess

from robustness.command_line import run
from robustness.party_processes import Party, joined, serving


def ended(command, folder=None, timeout=120):
    """Run a command to its end; return its status and output, as ``subprocess.run`` does."""
    party = Party(command, folder)
    out, said = party.communicate(timeout)
    return subprocess.CompletedProcess(command, party.returncode, out, said)


def ran(made):
    """Run a whole job of a federation; return what each feature party printed."""
    with serving(made) as (process, address):
        manifests = joined(made, address)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    return manifests


def tree(folder):
    """Return every file below a folder, with its mode and content."""
    return {
        str(f.relative_to(folder)): (f.stat().st_mode, f.read_bytes() if f.is_file() else None)
        for f in sorted(folder.rglob("*"))
    }


def refused(office, party, verb, *given):
    """Run a command that must change nothing; return its status and message."""
    before = tree(office.made.folder)
    where = [] if verb == "finish" else ["--to", office.out(party)]
    status, _, words = run("bundle", verb, "-c", office.made.config(party), *given, *where)
    assert tree(office.made.folder) == before
    return status, words
