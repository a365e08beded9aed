"""Modules loaded without garbage collection, which would go through all of them again and again."""

from __future__ import annotations

import gc
import threading


class _Loading:
    """How many blocks load modules, and whether garbage was collected before the first of them."""

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
"""``with loading:`` the modules imported within the block are never searched for garbage.

They make some hundred thousand objects, which stay.  Collections while they are loaded and when the
process ends would take a fifth of a second of a label party's start and a third at its end.  It is
for processes of our own: what else exists at the end of the block is kept, too.
"""
