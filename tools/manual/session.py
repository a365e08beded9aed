"""Follow a page's blocks in order: write files, run commands, and compare their output.

In a ``console`` block, a line that begins with ``$ `` is a command, which runs in the page's
folder; ``bank$ `` runs it in the folder ``bank``, and ``cd`` changes the folder for the rest of the
page.  A command that ends with ``&`` runs in the background until ``wait``; ``kill %1`` sends
SIGTERM to the first of these.  Lines below a command are its output, with ``...`` for what may
differ; without such lines, the command only has to succeed.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from robustness.prefork_server import prefork_server
from tools.manual.blocks import DOCS, Block, blocks

_PROMPT = re.compile(r"^([a-z-]*)\$ +(.*)$")
_PORTS = re.compile("8815|8080")
"""The ports that pages name; a free port replaces them."""
_COMMAND_TIMEOUT_SECONDS = 120
_SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SHELL = re.compile(r"[|><;$`]")
"""Characters of a command that needs a shell."""


@dataclass
class Command:
    """A command, the folder in which it runs, and the output that the page shows."""

    where: str
    words: str
    line: int
    shown: list[str] = field(default_factory=list)


def typed(block: Block) -> list[Command]:
    """Return the commands of a console block."""
    found: list[Command] = []
    for number, line in enumerate(block.text.split("\n"), block.line + 1):
        prompt = _PROMPT.match(line)
        if prompt:
            found.append(Command(prompt.group(1), prompt.group(2), number))
        elif found and found[-1].words.endswith("\\"):
            found[-1].words = found[-1].words[:-1] + line.strip()
        elif found:
            found[-1].shown.append(line)
        elif line.strip():
            raise ValueError(f"line {number}: output before any command: {line!r}")
    return found


class Process(Protocol):
    """A process that runs a command."""

    def wait(self, timeout: float) -> int:
        """Return its exit status."""
        ...

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        ...

    def kill(self) -> None:
        """Kill it."""
        ...


@dataclass
class Running:
    """A command that was started, and the file that receives its output."""

    command: Command
    process: Process
    said: Path


class Session:
    """A folder in which a page is followed, and the commands that still run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.words = folder / "words"
        self.words.mkdir(parents=True)
        self.port = _free_port()
        self.background: list[Running] = []
        shutil.copytree(DOCS / "files", self.folder)

    def follow(self, page: Path) -> None:
        """Do what the page says; an AssertionError names the line that fails."""
        try:
            for block in blocks(page):
                if block.file is not None:
                    self._write(block)
                elif block.language == "console":
                    for command in typed(block):
                        self._run(command, page)
            self._wait(page)
        finally:
            for running in self.background:
                running.process.kill()

    def _write(self, block: Block) -> None:
        path = self.folder / str(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_PORTS.sub(self.port, block.text) + "\n")

    def _run(self, command: Command, page: Path) -> None:
        if command.words == "wait":
            self._wait(page)
            return
        if command.words.startswith("kill %"):
            self.background[int(command.words.removeprefix("kill %")) - 1].process.send_signal(
                signal.SIGTERM
            )
            return
        if command.words.startswith("cd "):
            self.folder = self.folder / command.words.removeprefix("cd ")
            assert self.folder.is_dir(), (
                f"{page.name}:{command.line}: {command.words}: no such folder"
            )
            return
        running = self._start(command)
        if command.words.endswith("&"):
            self.background.append(running)
        else:
            self._judge(running, page)
            if command.words.startswith("opboost tutorial "):
                self._replace_ports(self.folder / command.where / command.words.split()[2])

    def _replace_ports(self, folder: Path) -> None:
        """Give the tutorial's TOML files the free port, so that pages can run at the same time."""
        for file in folder.rglob("*.toml"):
            file.write_text(_PORTS.sub(self.port, file.read_text()))

    def _start(self, command: Command) -> Running:
        """Start a command: fork ``opboost`` from a process that has loaded it, or use a shell."""
        where = self.folder / command.where
        where.mkdir(exist_ok=True)
        words = _PORTS.sub(self.port, command.words.rstrip("& "))
        said = self.words / f"{command.line}.txt"
        if words.startswith("opboost ") and not _SHELL.search(words):
            _, *arguments = [file for word in shlex.split(words) for file in _meant(word, where)]
            return Running(command, prefork_server().start(arguments, said, where, data=said), said)
        here = Path(sys.executable).parent
        path = f"{here}{os.pathsep}{os.environ['PATH']}"
        with said.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", words],
                cwd=where,
                env={**os.environ, "PATH": path, "COLUMNS": "80"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        return Running(command, process, said)

    def _wait(self, page: Path) -> None:
        while self.background:
            self._judge(self.background[0], page)
            self.background.pop(0)

    def _judge(self, running: Running, page: Path) -> None:
        command = running.command
        place = f"{page.name}:{command.line}: {command.words}"
        status = running.process.wait(_COMMAND_TIMEOUT_SECONDS)
        said = running.said.read_text().strip()
        assert status == 0, f"{place}\nended with status {status}:\n{said}"
        want = _PORTS.sub(self.port, "\n".join(command.shown)).strip()
        same = not want or doctest.OutputChecker().check_output(want, said, _SAME)
        assert same, f"{place}\nthe page shows:\n{want}\nthe command printed:\n{said}"


def _meant(word: str, where: Path) -> list[str]:
    """Return a word as the shell would pass it on: a word with stars becomes file names."""
    if "*" not in word:
        return [word]
    return [str(path.relative_to(where)) for path in sorted(where.glob(word))]


def followed() -> Iterator[Path]:
    """Yield the pages that have commands."""
    for page in sorted(DOCS.rglob("*.md")):
        if any(block.language == "console" for block in blocks(page)):
            yield page


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
