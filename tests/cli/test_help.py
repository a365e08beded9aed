"""``--help``, ``--version`` and completion."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from opboost import __version__
from opboost.cli import app

ROOT = typer.main.get_command(app)


def verbs(command, *path):
    """Return every command that is not a group, by the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from verbs(inner, *path, name)


def examples(command):
    shown = command.get_help(command.context_class(command))
    return re.findall(r"^\s+(opboost .*)$", shown, re.M)


VERBS = dict(verbs(ROOT))


def parsed(words):
    """Parse a line as the command line would; return its innermost command and arguments."""
    command, path = ROOT, []
    context = command.make_context("opboost", list(words))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        path.append(name)
    return tuple(path), context.params


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_shows_examples_that_parse_as_that_verb(path):
    lines = examples(VERBS[path])
    assert lines, "no examples"
    for line in lines:
        found, _ = parsed(shlex.split(line)[1:])
        assert found == path, line


def test_an_example_that_does_not_parse_would_be_seen():
    for line in ("train people.csv -c b.toml", "train a b --label y", "bench", "nothing"):
        with pytest.raises(Exception, match=r"Missing|unexpected|No such"):
            parsed(shlex.split(line))


def test_the_version_is_printed():
    done = subprocess.run(
        [sys.executable, "-m", "opboost", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"opboost {__version__}\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("opboost des", {"describe", "desensitize"}),
        (
            "opboost ledger ",
            {"show", "verify", "export", "report", "renew", "abort", "forget", "migrate"},
        ),
        ("opboost certify --format ", {"text", "json"}),
    ],
)
def test_bash_completes(typed, completed):
    """Load the completion script in bash; return its completions of some words."""
    script = Path(sys.executable).with_name("opboost")
    words = typed.split(" ")
    lines = [
        'eval "$(opboost --show-completion)"',
        f"COMP_WORDS=({shlex.join(words)})",
        f"COMP_CWORD={len(words) - 1}",
        "$(complete -p opboost | sed -E 's/.*-F ([^ ]+).*/\\1/') opboost",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        timeout=60,
        check=True,
    )
    assert set(done.stdout.split()) == completed, done.stderr
