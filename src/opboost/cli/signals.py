"""Exit promptly on SIGTERM or Ctrl-C, whatever the process is doing.

Python raises an exception in the main thread, wherever that is.  Inside a finaliser, or inside a
callback of a weak reference or a C library, Python prints the exception and drops it, so the
process would continue.  In that case a thread sends the signal again, after that callback.
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
"""The callback has most likely returned by then; if not, the signal is lost and sent again."""


def exit_on_signals() -> None:
    """From now on, exit with status 143 on SIGTERM, with the cleanup of any other exit."""
    signal.signal(signal.SIGTERM, _by_request)
    sys.unraisablehook = _unless_lost


def end_if_requested() -> None:
    """Exit if SIGTERM came: for waiting loops, since a library may swallow the exit inside it."""
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
