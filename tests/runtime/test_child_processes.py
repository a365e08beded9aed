"""Child processes: their pools always end, and they run no code from the working directory."""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial

import pytest

from opboost.runtime.child_processes import run_in_processes, safe_path
from tests.support.workers import in_time, kill_a_worker

AGAIN = "Run it again."


def double(number, seconds=0.0):
    time.sleep(seconds)
    return 2 * number


def refuse(number):
    raise KeyError(number)


class Awkward(Exception):
    """An error that another process cannot unpickle."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def awkward():
    raise Awkward("this", "that")


def unspeakable():
    return threading.Lock()


def end_oneself():
    os.kill(os.getpid(), signal.SIGKILL)


def environment():
    return dict(os.environ)


def test_every_task_has_its_result_or_its_error():
    tasks = [partial(double, 1, 0.2), partial(double, 2), partial(refuse, 3), partial(double, 4)]
    results = dict(run_in_processes(tasks, 2, if_killed=AGAIN))
    assert sorted(results) == [0, 1, 2, 3]
    assert [results[n]() for n in (0, 1, 3)] == [2, 4, 8]
    with pytest.raises(KeyError, match="3") as refused:
        results[2]()
    assert "in refuse" in refused.value.__notes__[0], "the place where it was raised is lost"
    assert not multiprocessing.active_children()


def test_what_cannot_be_pickled_is_named_in_words():
    results = dict(run_in_processes([awkward, unspeakable], 2, if_killed=AGAIN))
    with pytest.raises(RuntimeError, match="Awkward: this and that"):
        results[0]()
    with pytest.raises(TypeError, match="pickle"):
        results[1]()


@pytest.mark.parametrize("after", [0.0, 0.02, 0.1, 0.3])
def test_a_worker_that_is_killed_at_any_moment_ends_the_run(after):
    killed = []
    killer = threading.Thread(target=kill_a_worker, args=(after, killed), daemon=True)
    killer.start()
    tasks = [partial(double, n, 0.5) for n in range(6)]
    with pytest.raises(OSError, match=f"A worker process was killed.*{AGAIN}"):
        in_time(lambda: list(run_in_processes(tasks, 3, if_killed=AGAIN)))
    assert killed
    assert not multiprocessing.active_children()


def test_a_task_that_takes_its_worker_along_does_not_hold_up_the_end():
    tasks = [partial(double, 1, 60), end_oneself]
    with pytest.raises(OSError, match="was killed"):
        in_time(lambda: list(run_in_processes(tasks, 2, if_killed=AGAIN)))
    assert not multiprocessing.active_children()


def test_workers_end_when_nobody_wants_more_results():
    results = run_in_processes([partial(double, n, 0.1) for n in range(9)], 2, if_killed=AGAIN)
    next(results)
    assert len(multiprocessing.active_children()) == 2
    results.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("before", [None, "", "yes"])
def test_workers_keep_off_the_working_directory_and_leave_the_environment_alone(
    monkeypatch, before
):
    if before is None:
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    ((_, found),) = run_in_processes([environment], 1, if_killed=AGAIN)
    assert found()["PYTHONSAFEPATH"] == "1"
    with safe_path:
        with safe_path:
            pass
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before
