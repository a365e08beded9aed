"""A small part of the faults that ``lab/claims/faults.py`` injects into real processes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import opboost as op
from opboost.ledger import Drawing, Ledger
from opboost.parties.feature.outgoing_columns import read_values
from opboost.protocol.messages import Poll, encode
from opboost.storage import atomic_files
from opboost.transport.shared import job_integrity
from robustness.faults import (
    broken_connections,
    clock_set_back,
    damaged_files,
    double_start,
    full_disk,
    kills,
)

JOB = "20260102T030405Z-01020304"


def survived(tally):
    assert tally.tried, tally
    assert tally.survived == tally.tried, str(tally)


@pytest.mark.parametrize(
    ("victim", "boundary"),
    [
        ("bank", "bank/state/*/trained-*"),
        ("bank", "bank/state/*/manifest.json"),
        ("shop", "shop/ledger/runs/000001"),
        ("telco", "bank/state/*/parties/telco/00000.arrow"),
        ("gate", "bank/state/*/parties/shop/receipt"),
    ],
)
def test_a_party_that_is_killed_at_a_boundary_continues(victim, boundary):
    survived(kills.at_boundaries(victim, [boundary]))


@pytest.mark.parametrize("victim", ["bank", "shop"])
def test_a_party_that_is_killed_at_random_moments_continues(victim):
    survived(kills.at_random(victim, 2, 7))


@pytest.mark.skipif(not full_disk.may_mount(), reason="no file system may be mounted here")
@pytest.mark.parametrize(("victim", "step"), [("bank", 16), ("shop", 20)])
def test_a_full_disk_is_reported_and_survived(victim, step):
    survived(full_disk.run(victim, step=step))


def test_cut_half_open_and_slow_connections_are_survived():
    survived(broken_connections.cut(2, 1))
    survived(broken_connections.half_open(1, 1))
    survived(broken_connections.slow(1, 1))


@pytest.mark.skipif(
    clock_set_back.library() is None, reason="no libfaketime that lets programs sleep"
)
def test_a_clock_that_is_set_back_breaks_nothing():
    survived(clock_set_back.set_back("shop"))


def test_a_second_start_is_refused_and_the_first_unharmed():
    survived(double_start.run(2, 0))


def test_damaged_files_are_recovered_or_refused_by_name():
    survived(damaged_files.run(2, 3))


def test_a_checksum_shows_every_change(tmp_path):
    file = tmp_path / "note"
    for data in (b"", b"{}", os.urandom(100)):
        atomic_files.write(file, atomic_files.with_checksum(data))
        assert atomic_files.read_checked(file, "Bring back a copy.") == data
        assert atomic_files.checksum_holds(file)
        whole = file.read_bytes()
        for place in range(len(whole)):
            flipped = bytearray(whole)
            flipped[place] ^= 1
            for broken in (bytes(flipped), whole[:place]):
                file.write_bytes(broken)
                for read in (atomic_files.read_checked, atomic_files.verify_checksum):
                    with pytest.raises(op.DataError, match=r"note is damaged\. Bring it back\.$"):
                        read(file, "Bring it back.")


def test_a_checksum_added_to_a_large_file_shows_a_change(tmp_path):
    file = tmp_path / "stream"
    file.write_bytes(b"x" * 3_000_000)
    atomic_files.add_checksum(file)
    assert atomic_files.checksum_holds(file)
    assert file.stat().st_size == 3_000_000 + atomic_files.CHECKSUM_BYTES
    with file.open("r+b") as handle:
        handle.seek(2_500_000)
        handle.write(b"y")
    assert not atomic_files.checksum_holds(file)


def test_the_next_start_removes_half_written_files(tmp_path):
    (tmp_path / JOB).mkdir()
    (tmp_path / JOB / ".schema.0011.part").write_bytes(b"half")
    (tmp_path / JOB / ".trained-1.part").mkdir()
    (tmp_path / JOB / "schema").write_bytes(b"whole")
    with atomic_files.alone(tmp_path) as half_written:
        assert half_written == 2
    assert [f.name for f in (tmp_path / JOB).iterdir()] == ["schema"]
    with atomic_files.alone(tmp_path) as half_written:
        assert half_written == 0


def test_a_damaged_file_is_refused_unless_it_can_be_rebuilt(tmp_path):
    job = tmp_path / JOB
    job.mkdir()
    whole = encode(Poll(JOB))
    for name in ("schema", "query"):
        atomic_files.write(job / name, whole)
    atomic_files.write(job / "00000.values", atomic_files.with_checksum(b"12345678"))
    assert job_integrity.check(job, "Look.") == []
    (job / "00000.values").write_bytes(b"12345678")
    with pytest.raises(op.DataError, match=r"00000\.values is damaged\. Look\."):
        job_integrity.check(job, "Look.")
    with pytest.raises(op.DataError, match=r"values is damaged.*ask the label party to begin"):
        read_values(job / "00000.arrow")
    assert job_integrity.check(job, "Look.", ("schema *.values",)) == ["00000.values"]
    assert [f.name for f in job.iterdir()] == ["query"]
    atomic_files.write(job / "query", whole[:-1])
    with pytest.raises(op.DataError, match="query is damaged"):
        job_integrity.check(job, "Look.", ("schema *.values",))


def test_a_damaged_ledger_draws_nothing(tmp_path):
    grid = op.Domain(1, 10)
    column = op.PrivateColumn("age", op.NumericMapping(grid, (0, 100)), op.ClampMap(grid, 1.0))
    rows = pa.table({"age": np.arange(100.0)})

    def drawn():
        with (
            Ledger(tmp_path / "ledger", tmp_path / "key") as ledger,
            Drawing(ledger, [column], ["age"], job="j", recipient="r") as drawing,
        ):
            prepared = column.prepare(rows, 0)
            drawing.draw([str(i).encode() for i in range(100)], [prepared])

    drawn()
    drawn()
    file = tmp_path / "ledger" / "runs" / "000001"
    good = file.read_bytes()
    file.write_bytes(good[:50] + bytes([good[50] ^ 4]) + good[51:])
    with pytest.raises(op.DataError, match=r"000001 was changed.*drawn again.*Restore"):
        drawn()
    file.write_bytes(good)
    with closing(sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")) as db:
        db.execute("DROP TRIGGER entries_UPDATE")
        db.execute("UPDATE entries SET at = '2020-01-01' WHERE number = 1")
        db.commit()
    with pytest.raises(op.PrivacyError, match=r"is damaged: entry 1 was changed.*Restore"):
        drawn()


def test_a_full_disk_is_reported_with_folder_and_next_step(tmp_path):
    from opboost.cli import system_words

    words = system_words(OSError(28, "No space left on device", str(tmp_path / "schema")))
    assert words.startswith("The disk is full (No space left on device): nothing more can be ")
    assert f"written to {tmp_path}." in words
    assert "run the same command again" in words
    other = OSError(13, "Permission denied", "x")
    assert system_words(other) == str(other)
