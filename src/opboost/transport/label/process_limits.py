"""What the process that faces the network may use of the machine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def limit_memory(megabytes: int) -> None:
    """Let this process use so much more than it does now; allocations beyond fail cleanly."""
    try:
        import resource

        now = next(
            int(line.split()[1]) * 1024
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmData:")
        )
    except (ImportError, OSError, StopIteration):
        return
    resource.setrlimit(resource.RLIMIT_DATA, (now + megabytes * 2**20,) * 2)


def allow_files(count: int) -> None:
    """Let this process hold so many files and connections, as far as it may."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def full_stack() -> None:
    """Let the first thread's stack grow as far as it may; the others keep the size they have."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
