"""Load modules without garbage collection, which would scan them again and again."""

from __future__ import annotations

import gc
import threading


class _Loading:
    """A context manager that stops garbage collection until the last of several blocks ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._collected = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._collected = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks:
                return
            gc.freeze()
            if self._collected:
                gc.enable()


loading = _Loading()
"""Modules imported within ``with loading:`` are never searched for garbage.

They create some hundred thousand objects, which all stay alive.  Searching them would cost a label
party a fifth of a second when it starts and a third of a second when it ends.  Use it only in our
own processes: everything else that exists at the end of the block is never collected either.
"""
