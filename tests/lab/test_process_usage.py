"""The memory of processes that a benchmark watches."""

from __future__ import annotations

import subprocess
import sys
import time

from opboost_lab.bench.process_usage import peaks_of

PARENT = """
import subprocess, sys
# watched-parent
subprocess.run([sys.executable, "-c", "print(1, flush=True); input()"])
"""


def test_peaks_are_those_of_the_named_processes_and_of_their_children():
    with (
        peaks_of("watched-parent") as peaks,
        subprocess.Popen(
            [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as parent,
    ):
        assert parent.stdout is not None
        assert parent.stdin is not None
        parent.stdout.readline()
        end = time.monotonic() + 30
        while len(peaks) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        found = dict(peaks)
        parent.stdin.write(b"\n")
        parent.stdin.close()
    assert parent.pid in found
    (child,) = set(found) - {parent.pid}
    assert found[child][0].startswith(found[parent.pid][0])
    assert all(peak > 1 for _, peak in found.values())
