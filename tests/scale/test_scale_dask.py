"""A release on a Dask cluster whose workers are killed has the noise of an undisturbed run."""

import os
import signal
import time
from threading import Thread

import pytest
from pandas.testing import assert_frame_equal

import opboost as op
from opboost.ledger.person_totals import totals
from opboost.ledger.store import UNITS_PER_EPSILON
from opboost.ledger.verify_ledger import verify
from opboost.scale import desensitize
from opboost.scale.clusters import dask_client
from tests.support.releases import PLAN, charge_to, files, kinds, made, people, rows_of, with_secret

pytest.importorskip("distributed")
dask_frames = pytest.importorskip("dask.dataframe")

PARTS, ROWS = 12, 40


@pytest.fixture(scope="module")
def client():
    """Yield a client of two worker processes, which their nannies restart when they die."""
    with dask_client(2) as client:
        yield client


def slowly(frame, log):
    """A slow partition that records which worker handled it."""
    if len(frame):
        with open(log, "a") as notes:
            notes.write(f"{frame['id'].iloc[0]} {os.getpid()}\n")
        time.sleep(0.4)
    return frame


def test_workers_that_are_killed_in_mid_release_change_nothing(tmp_path, client):
    table = people(PARTS * ROWS)
    expected = with_secret(tmp_path / "expected")
    made(expected, [table])
    frame = dask_frames.from_pandas(table.to_pandas(), npartitions=PARTS)
    slow = frame.map_partitions(slowly, str(tmp_path / "log"), meta=frame._meta)
    charge, target = charge_to(tmp_path), with_secret(tmp_path / "out")
    killed = []

    def kill():
        """Once some parts exist, kill the worker that began a task last."""
        while len(list(tmp_path.glob(".out.release/part-*.json"))) < 3:
            time.sleep(0.02)
        pid = int((tmp_path / "log").read_text().split()[-1])
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    killer = Thread(target=kill)
    killer.start()
    result = desensitize(slow, PLAN, target, ids="id", charge=charge)
    killer.join()
    runs = [line.rpartition(" ")[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert killed
    assert len(runs) > len(set(runs)) == PARTS, "no task had to be repeated"
    assert result.manifest.rows == PARTS * ROWS
    assert_frame_equal(rows_of(target), rows_of(expected))
    assert kinds(charge.ledger) == ["reserve", "commit"]
    assert verify(charge.ledger) == []
    for name, of in totals(charge.ledger).items():
        promise = next((c for c in PLAN.private if c.name == name), PLAN).guarantee()
        assert (of.people, of.most) == (
            PARTS * ROWS,
            pytest.approx(promise.total * UNITS_PER_EPSILON),
        )
    assert not list(tmp_path.glob(".out*"))
    charge.ledger.close()


def test_files_are_desensitised_by_the_cluster_too(tmp_path, client):
    raw = files(tmp_path / "raw", parts=3, rows=50)
    here, there = with_secret(tmp_path / "here"), with_secret(tmp_path / "there")
    desensitize(raw, PLAN, here, ids="id", workers=1)
    desensitize(raw, PLAN, there, ids="id", engine="dask")
    assert_frame_equal(rows_of(here), rows_of(there))


def test_people_of_a_frame_who_were_drawn_before_are_refused_before_any_work(tmp_path, client):
    charge = charge_to(tmp_path)
    made(tmp_path / "first", [people(10, 25)], charge)
    frame = dask_frames.from_pandas(people(40).to_pandas(), npartitions=4)
    with pytest.raises(op.PrivacyError, match="people in the table, a release was made before"):
        desensitize(frame, PLAN, tmp_path / "out", ids="id", charge=charge)
    assert not (tmp_path / ".out.release").exists()
    assert kinds(charge.ledger) == ["reserve", "commit"]
    charge.ledger.close()


def test_a_refusal_comes_back_and_no_worker_logs_the_value(tmp_path, client):
    table = people(40).to_pandas()
    table.loc[33, "city"] = "atlantis"
    frame = dask_frames.from_pandas(table, npartitions=4)
    with pytest.raises(op.ColumnError, match="atlantis"):
        desensitize(frame, PLAN, tmp_path / "out", ids="id")
    logs = " ".join(line for lines in client.get_worker_logs().values() for _, line in lines)
    assert "atlantis" not in logs
    assert not (tmp_path / "out").exists()
