"""A release on Spark; runs where pyspark and Java are installed."""

import os
import shutil
import signal
import sys

import pytest
from pandas.testing import assert_frame_equal

import opboost as op
from opboost.scale import desensitize
from tests.support.releases import PLAN, charge_to, files, kinds, rows_of, with_secret

sql = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")


@pytest.fixture(scope="module")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2, 4]")  # a task may fail three times
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.files.maxPartitionBytes", 20_000)
        .getOrCreate()
    )
    yield session
    session.stop()


def ending_once(home):
    """Return the rows unchanged, from a worker process that is killed after the first one."""

    def rows(batches):
        for batch in batches:
            yield batch
            if not (home / "ended").exists():
                (home / "ended").touch()
                os.kill(os.getpid(), signal.SIGKILL)

    return rows


@pytest.mark.filterwarnings("default")  # from Spark itself
def test_a_frame_and_files_get_the_noise_that_they_have_everywhere(tmp_path, session):
    raw = files(tmp_path / "raw", parts=3, rows=50)
    expected = with_secret(tmp_path / "expected")
    desensitize(raw, PLAN, expected, ids="id", workers=1)
    charge, target = charge_to(tmp_path), with_secret(tmp_path / "out")
    frame = session.read.parquet(str(raw))
    assert frame.rdd.getNumPartitions() > 1
    ends_once = frame.mapInArrow(ending_once(tmp_path), frame.schema)
    result = desensitize(ends_once, PLAN, target, ids="id", charge=charge)
    assert (tmp_path / "ended").exists()
    assert result.manifest.rows == 150
    assert_frame_equal(rows_of(target), rows_of(expected))
    assert [kinds(charge.ledger).count(k) for k in ("reserve", "commit")] == [1, 1]
    with pytest.raises(op.PrivacyError, match="people in the table, a release was made before"):
        desensitize(frame, PLAN, tmp_path / "again", ids="id", charge=charge)
    assert not (tmp_path / ".again.release").exists()  # refused before anything was drawn
    assert kinds(charge.ledger) == ["reserve", "commit"]
    charge.ledger.close()
    by_files = with_secret(tmp_path / "files")
    desensitize(raw, PLAN, by_files, ids="id", engine="spark")
    assert_frame_equal(rows_of(by_files), rows_of(expected))
    other = session.createDataFrame([("1", "n", 20.0, 5.0, "atlantis")], frame.columns)
    with pytest.raises(op.ColumnError, match="atlantis"):
        desensitize(other, PLAN, tmp_path / "refused", ids="id")
