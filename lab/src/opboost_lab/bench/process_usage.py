"""The memory and the children of processes on this machine, from ``/proc``."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.2


def peak_mb(process: int) -> float:
    """Return the peak resident memory of a process; 0 if it is gone."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1000 if found else 0.0


def forget_peak(process: int | str) -> None:
    """Reset the kernel's peak of a process's memory; ``"self"`` is this process."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def children_of(process: int) -> list[int]:
    """Return the children of a process."""
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += [int(number) for number in file.read_text().split()]
    return found


def child_of(process: int, words: str) -> int | None:
    """Return the child of a process whose command contains these words."""
    return next((n for n in children_of(process) if words in command_of(n)), None)


def command_of(process: int) -> str:
    """Return the command of a process with NUL between the words; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def peaks_of(words: str) -> Iterator[dict[int, tuple[str, float]]]:
    """Watch processes whose command contains these words, and their children.

    Yields by process ID the command (a child's after its parent's) and the peak in MB.  A peak in
    the last ``POLL_SECONDS`` of a process may be missed.
    """
    seen: dict[int, tuple[str, float]] = {}
    done = threading.Event()

    def look(number: int, command: str) -> None:
        seen[number] = (command, max(peak_mb(number), seen.get(number, ("", 0.0))[1]))

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            for place in Path("/proc").glob("[0-9]*"):
                number = int(place.name)
                command = command_of(number)
                if words not in command:
                    continue
                look(number, command)
                with suppress(OSError):  # it has ended
                    for child in children_of(number):
                        if words not in (own := command_of(child)):
                            look(child, command + own)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
