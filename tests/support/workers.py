"""Worker processes that are killed, and calls that must not wait for them for ever."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time


def in_time(function):
    """Call a function that could wait for ever; one that does fails here."""
    outcome = []

    def call():
        try:
            outcome.append(function())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(120)
    assert outcome, "it still waits"
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def kill_a_worker(after, seen):
    """Kill a worker so many seconds after it was started."""
    while not (children := multiprocessing.active_children()):
        time.sleep(0.001)
    time.sleep(after)
    os.kill(children[0].pid, signal.SIGKILL)
    seen.append(children[0].pid)
