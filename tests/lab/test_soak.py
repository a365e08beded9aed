"""Small jobs one after the other in one process leave nothing behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opboost_lab.bench.soak import Use, soak, summary

SMALL = Use(seconds=1.0, memory_kb=1e5, descriptors=6, threads=3, children=0, files=0)


def test_twenty_jobs_leave_nothing_behind():
    found = soak(20)
    assert found.jobs == 20
    assert found.kb_per_job < 1000  # allocators still grow; the claim runs a thousand jobs
    assert max(found[2:6]) <= 2, found  # one per job would be twenty; a pool may add a thread


def test_a_label_server_that_is_a_process_leaves_nothing_behind():
    found = soak(4, as_process=True)
    assert found.jobs == 4
    assert max(found[2:6]) <= 0, found


@pytest.mark.parametrize("what", ["memory_kb", "descriptors", "threads", "children", "files"])
def test_what_each_job_leaves_behind_is_seen(what):
    leaking = [replace(SMALL, **{what: getattr(SMALL, what) + job}) for job in range(100)]
    found = summary(leaking)._asdict()
    assert found["kb_per_job" if what == "memory_kb" else what] >= 0.99
    assert all(
        v in (0, 1, 100) or abs(v) < 1e-9 for k, v in found.items() if k not in ("kb_per_job", what)
    )
