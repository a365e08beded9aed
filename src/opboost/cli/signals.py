"""Exit promptly on SIGTERM or Ctrl-C, whatever the process is doing.

On a signal, Python raises an exception in the main thread.  If that thread is running a finaliser,
or a callback of a weak reference or a C library, Python only prints the exception, and the process
would continue.  So a thread sends the signal again after a pause, when the callback has most likely
returned.
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
_RESEND_SECONDS = 0.05
"""The pause before a lost signal is sent again; if it is lost once more, this repeats."""


def exit_on_signals() -> None:
    """From now on, exit with status 143 on SIGTERM, with the cleanup of any other exit."""
    signal.signal(signal.SIGTERM, _by_request)
    sys.unraisablehook = _unless_lost


def end_if_requested() -> None:
    """Exit if SIGTERM has arrived; loops that wait call this, as a library may swallow the exit."""
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
    time.sleep(_RESEND_SECONDS)
    os.kill(os.getpid(), which)
