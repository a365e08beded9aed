"""Loops are compiled, and numba is imported, at their first call."""

from __future__ import annotations

import subprocess
import threading

import numpy as np

from opboost.runtime.child_processes import python_command
from opboost.runtime.compiling import njit

LATER = (
    "import sys; from opboost.protocol.entropy_coding import warm_up\n"
    "before = 'numba' in sys.modules\n"
    "warm_up()\n"
    "print(before, 'numba' in sys.modules)"
)


@njit(cache=False, nogil=True)
def _doubled(x):
    return 2 * x


@njit(cache=False, nogil=True)
def _sum_of_doubled(values):
    total = 0
    for i in range(values.shape[0]):
        total += _doubled(values[i])
    return total


def test_numba_is_imported_at_the_first_call():
    run = subprocess.run(python_command("-c", LATER), capture_output=True, text=True)
    assert run.stdout.split() == ["False", "True"], run.stderr


def test_a_loop_calls_another_in_compiled_code():
    assert _sum_of_doubled(np.arange(5)) == 20
    assert _sum_of_doubled.dispatcher().signatures
    called = _sum_of_doubled.dispatcher().py_func.__globals__["_doubled"]
    assert called is _doubled.dispatcher()


def test_threads_that_call_a_loop_first_share_one_dispatcher():
    @njit(cache=False, nogil=True)
    def tripled(x):
        return 3 * x

    found, start = [], threading.Barrier(4)

    def call():
        start.wait()
        found.append((tripled(7), tripled.dispatcher()))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {value for value, _ in found} == {21}
    assert len({id(dispatcher) for _, dispatcher in found}) == 1
