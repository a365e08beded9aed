"""An end that somebody asks for (SIGTERM, Ctrl-C) comes, wherever it finds the process.

Python raises it as an exception in the main thread, at whatever is done there. Inside a finaliser,
a weak reference's or a C library's callback an exception is printed and lost, and the process would
go on: then the signal is sent once more, from outside that callback.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_stopping = threading.Event()
_PAUSE = 0.05
"""Seconds after which the callback is over, most likely; if not, it is lost and sent again."""


def exit_on_signals() -> None:
    """From here on SIGTERM ends with status 143, cleaning up like any other end."""
    signal.signal(signal.SIGTERM, _by_request)
    sys.unraisablehook = _unless_lost


def end_if_requested() -> None:
    """For loops that wait: a library may also swallow an exit that was raised inside it."""
    if _stopping.is_set():
        sys.exit(143)


def _by_request(*_: object) -> None:
    _stopping.set()
    sys.exit(143)


def _unless_lost(lost: UnraisableHookArgs) -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_again, (signal.SIGINT,))
    elif issubclass(lost.exc_type, SystemExit) and _stopping.is_set():
        _thread.start_new_thread(_again, (signal.SIGTERM,))
    else:
        sys.__unraisablehook__(lost)


def _again(which: signal.Signals) -> None:
    time.sleep(_PAUSE)
    os.kill(os.getpid(), which)
