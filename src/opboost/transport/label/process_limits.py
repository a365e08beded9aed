"""Resource limits of the process that faces the network."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def limit_memory(megabytes: int) -> None:
    """Limit how much more memory this process may use; allocations beyond that fail."""
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
    """Raise this process's limit on open files and connections, as far as the system allows."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def full_stack() -> None:
    """Let the main thread's stack grow to the hard limit; other threads' stacks stay the same."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
