"""What processes of this machine use, from ``/proc``."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.2


def peak_mb(process: int) -> float:
    """The most memory that a process had resident; 0 if it is gone."""
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
    """The children of a process."""
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            found += [int(number) for number in file.read_text().split()]
    return found


def child_of(process: int, words: str) -> int | None:
    """The child of a process whose command holds these words."""
    return next((n for n in children_of(process) if words in command_of(n)), None)


def command_of(process: int) -> str:
    """The command of a process, its words apart by NUL; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def peaks_of(words: str) -> Iterator[dict[int, tuple[str, float]]]:
    """Watch processes whose command holds these words, and their children.

    Yields by number the command, a child's behind its parent's, and the peak in MB.  A peak that a
    process reaches in its last ``POLL_SECONDS`` may be missed.
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
                with suppress(OSError):  # it has ended meanwhile
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
