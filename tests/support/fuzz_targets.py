"""Decoders that break the contract on purpose, to test that the engine notices."""

from __future__ import annotations

import os
import signal
import time

from opboost.errors import DataError
from robustness.fuzz.target import FuzzDrill, Target


def _eight(rng):
    return rng.randbytes(8)


def sound(home):
    return FuzzDrill(_eight, lambda data: None)


def dies(home):
    def feed(data):
        if data[0] < 12:
            os.kill(os.getpid(), signal.SIGSEGV)

    return FuzzDrill(_eight, feed)


def raises(home):
    def feed(data):
        if data[0] < 12:
            raise KeyError("not ours")

    return FuzzDrill(_eight, feed)


def bloats(home):
    def feed(data):
        if data[0] < 12:
            bytearray(200 * 2**20)[:: 2**12] = b"x" * (200 * 2**8)

    return FuzzDrill(_eight, feed)


def hangs(home):
    def feed(data):
        if data[0] < 12:
            time.sleep(60)

    return FuzzDrill(_eight, feed)


def target(prepare):
    return Target(prepare.__name__, (DataError,), prepare, seconds=2.0)
