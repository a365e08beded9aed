"""Checks of the machine: packages, random bits, compiled loops, threads and disk."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from opboost import __version__
from opboost.doctor.finding import Finding, State
from opboost.runtime.threads import schedulable_cores, usable_cores
from opboost.storage import atomic_files
from opboost.transport.label.connection_limits import NOT_LIMITED
from opboost.transport.shared.open_connections import can_watch

LOW_FREE_BYTES, MIN_FREE_BYTES = 2**30, 100 * 2**20
"""Bytes of free disk space below which to warn, and below which work will fail."""

SLOW_BYTES_PER_SECOND = 300e6
"""AES is slower than this without the processor's instructions."""


def examine_machine(folder: Path) -> Iterator[Finding]:
    """Yield all checks that need no party's file; ``folder`` is where work will be done."""
    yield Finding("opboost", State.ok, f"{__version__} on Python {platform.python_version()}")
    yield from packages()
    yield random_bits()
    yield compiled_loops()
    yield threads()
    yield locks()
    yield connection_limits()
    yield disk("disk, here", folder)
    yield disk("disk, temporary files", Path(tempfile.gettempdir()))


def packages() -> Iterator[Finding]:
    """Yield a check of every package that the installed release requires, and of the boosters."""
    try:
        asked = [Requirement(line) for line in requires("opboost") or ()]
    except PackageNotFoundError:
        step = "Install it (pip install opboost), so that versions can be checked against it."
        yield Finding("packages", State.warning, "opboost runs, but is not installed", step)
        return
    for needed in asked:
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            yield package(needed, State.wrong, "pip install --upgrade opboost")
        elif needed.marker.evaluate({"extra": "boost"}):
            yield package(needed, State.warning, "pip install 'opboost[boost]'")


def package(needed: Requirement, otherwise: State, remedy: str) -> Finding:
    """Compare a package's installed version with the requirement.

    >>> package(Requirement("numpy>=9000"), State.wrong, "pip install --upgrade opboost").state
    <State.wrong: 'wrong'>
    """
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        return Finding(needed.name, otherwise, "not installed", f"Run: {remedy}")
    if not needed.specifier.contains(found, prereleases=True):
        text = f"{found}, where {needed.specifier} is needed"
        return Finding(needed.name, otherwise, text, f"Run: {remedy}")
    return Finding(needed.name, State.ok, found)


def random_bits() -> Finding:
    """Check whether the keystream for noise uses the processor's AES instructions."""
    from opboost.randomness.streams import SecureRng

    source, words = SecureRng().open(), 2**21
    began = time.perf_counter()
    source.words(1, 0, words)
    speed = 8 * words / (time.perf_counter() - began)
    listed = aes_listed()
    text = f"{speed / 1e6:,.0f} MB per second, {_AES[listed]}"
    if listed or (listed is None and speed >= SLOW_BYTES_PER_SECOND):
        return Finding("random bits", State.ok, text)
    return Finding(
        "random bits",
        State.warning,
        text,
        "Noise is just as safe, but slow. In a virtual machine, let the host pass on its "
        "processor's AES instructions.",
    )


_AES = {
    True: "with the processor's AES instructions",
    False: "the processor reports no AES instructions",
    None: "this system does not report AES instructions",
}


def aes_listed(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Return whether the system lists AES instructions; None if it lists no flags at all."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return None
    flags = [line for line in lines if line.startswith(("flags", "Features"))]
    return "aes" in flags[0].split() if flags else None


def compiled_loops() -> Finding:
    """Check whether compiled loops work, and are cached between starts."""
    import numpy as np

    from opboost.distributions.alias_kernel import draw_alias
    from opboost.grid import Domain
    from opboost.mechanisms import ClampMap

    began = time.perf_counter()
    values = ClampMap(Domain(1, 10), 0.64).sample(np.ones(1000, dtype=np.int64))
    took = time.perf_counter() - began
    if not (1 <= values.min() <= values.max() <= 10):
        step = "Report this: see SECURITY.md. Release nothing from this machine."
        return Finding("compiled loops", State.wrong, "a draw left its grid", step)
    if not draw_alias.dispatcher().stats.cache_path:
        return Finding(
            "compiled loops",
            State.warning,
            f"work ({took:.1f} s for a first draw), but are compiled at every start",
            "Set NUMBA_CACHE_DIR to a folder that this user may write.",
        )
    return Finding("compiled loops", State.ok, f"work, and are cached ({took:.1f} s for a draw)")


def threads() -> Finding:
    """Compare the cores that this process may use with the threads that libraries will start."""
    cores = usable_cores()
    said = os.environ.get("OMP_NUM_THREADS", "")
    text = f"{cores:g} of {os.cpu_count() or 1} cores" + (
        f", OMP_NUM_THREADS={said}" if said else ""
    )
    right = f"Set OMP_NUM_THREADS={max(1, int(cores))}."
    if said and not all(part.strip().isdigit() and int(part) for part in said.split(",")):
        return Finding("threads", State.wrong, text, f"That is not a number of threads. {right}")
    started = int(said.split(",")[0]) if said else schedulable_cores()
    if started > max(1, cores):
        step = f"Boosters start {started} threads, which then wait for each other. {right}"
        return Finding("threads", State.warning, text, step)
    return Finding("threads", State.ok, text)


def locks() -> Finding:
    """Check whether two processes can be kept from working in the same folder."""
    if not atomic_files.has_locks():
        return Finding("folder locks", State.warning, "none", atomic_files.NO_LOCKS)
    return Finding("folder locks", State.ok, "a second process in a folder is refused")


def connection_limits() -> Finding:
    """Check whether a label server can limit the resources that its peers use."""
    if not can_watch():
        return Finding("connection limits", State.warning, "none", NOT_LIMITED)
    return Finding("connection limits", State.ok, "a label server limits connections and memory")


def disk(what: str, folder: Path) -> Finding:
    """Check the free space in a folder, or where it would be created, and its write permission."""
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not os.access(place, os.W_OK):
        step = f"Run as its owner, or: chmod u+w {place}"
        return Finding(what, State.wrong, f"{place} is not writable", step)
    free = shutil.disk_usage(place).free
    text = f"{free / 1e9:,.1f} GB free in {place}"
    if free < LOW_FREE_BYTES:
        state = State.wrong if free < MIN_FREE_BYTES else State.warning
        step = "Free some space: a release needs up to the size of its table, and a ledger grows."
        return Finding(what, state, text, step)
    return Finding(what, State.ok, text)
