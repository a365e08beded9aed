"""Kill worker processes, and check that calls do not wait for them forever."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time


def in_time(function):
    """Call a function that might wait forever, and fail if it does."""
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
    """Kill a worker ``after`` seconds from its start."""
    while not (children := multiprocessing.active_children()):
        time.sleep(0.001)
    time.sleep(after)
    os.kill(children[0].pid, signal.SIGKILL)
    seen.append(children[0].pid)
