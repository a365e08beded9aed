"""IDs that stay in their file give the same keys as in memory, and are reread when needed."""

from __future__ import annotations

import hmac
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opboost.errors import DataError
from opboost.files import id_columns, read_tables
from opboost.files.id_columns import IdColumns
from opboost.psi import table_keys as table_keys_module
from opboost.psi.row_keys import Normalisation, key_digests, row_keys, table_keys
from opboost.psi.table_keys import Keys, refuse_repeats
from opboost.storage.framing import framed

NONCE = bytes(range(32))
PLAIN = Normalisation()
IDS = [f"person-{i:04d}" for i in range(3000)]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(table_keys_module, "PIECE_ROWS", 700)
    monkeypatch.setattr(
        id_columns, "PIECE_ROWS", read_tables.PIECE_CELLS // 2000
    )  # 1,024 rows or more


def written(folder, ids=IDS, kind="parquet"):
    table = pa.table({"id": ids, "x": np.arange(len(ids))})
    file = folder / f"people.{kind}"
    (pa.parquet.write_table if kind == "parquet" else pa.csv.write_csv)(table, file)
    return file


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_gives_the_keys_that_memory_gives(tmp_path, kind):
    keys = IdColumns.of(written(tmp_path, kind=kind), ["id"]).keys(PLAIN, tmp_path)
    held = row_keys([IDS], ["id"], PLAIN)
    assert len(keys) == len(held) == 3000
    assert len(list(keys.pieces())) > 1
    assert (keys.digests() == key_digests(held)).all()
    assert keys.digest(NONCE) == Keys.held(held).digest(NONCE)
    assert keys.digest(NONCE) == hmac.digest(NONCE, framed(held), "sha256")


@pytest.mark.usefixtures("small_pieces")
def test_rows_come_as_they_stand_in_the_file(tmp_path):
    ids = IdColumns.of(written(tmp_path), ["id"])
    assert ids.rows(np.array([2999, 0, 1500])).column("id").to_pylist() == [
        "person-2999",
        "person-0000",
        "person-1500",
    ]


@pytest.mark.usefixtures("small_pieces")
def test_an_id_twice_or_a_bad_one_is_refused_with_its_place(tmp_path):
    twice = IdColumns.of(written(tmp_path, [*IDS, IDS[5], IDS[5], IDS[7]]), ["id"])
    with pytest.raises(DataError, match="2 IDs appear more than once, in 5 rows"):
        twice.keys(PLAIN, tmp_path)
    for wrong in (" ", "NA", "soft\u00adhyphen"):
        bad = IdColumns.of(written(tmp_path, [*IDS[:2500], wrong, *IDS[2501:]]), ["id"])
        with pytest.raises(DataError, match="row 2500") as refused:
            bad.keys(PLAIN, tmp_path)
        assert refused.value.row == 2500


def test_a_file_that_changed_is_refused(tmp_path):
    file = written(tmp_path)
    ids = IdColumns.of(file, ["id"])
    keys = ids.keys(PLAIN, None)
    keys.digest(NONCE)
    os.utime(file, ns=(1, 1))
    with pytest.raises(DataError, match="changed while the job used it"):
        keys.digests()
    assert keys.digest(NONCE)  # known already


def test_keys_that_grow_or_shrink_are_refused():
    for now in ([b"a"], [b"a", b"b", b"c"]):
        with pytest.raises(DataError, match="changed while it was read"):
            Keys(2, lambda now=now: iter([now])).digests()


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=6)


@given(st.lists(st.integers(-(2**60), 2**60) | WORDS, max_size=20))
def test_an_arrow_column_gives_the_keys_of_a_list_or_its_complaint(values):
    texts = [str(v) for v in values]
    for column in (texts, [v for v in values if isinstance(v, int)]):
        table = pa.table({"id": pa.array(column, pa.string() if column is texts else pa.int64())})
        assert outcome(table_keys, table) == outcome(row_keys, [column])


def outcome(keys, table):
    """Return what is found, or the error message."""
    try:
        return keys(table, ["id"], PLAIN)
    except DataError as refused:
        return str(refused)


@given(st.lists(st.integers(0, 40), max_size=80))
def test_repeats_are_counted_exactly(numbers):
    digests = key_digests([str(n).encode() for n in numbers])
    several = [numbers.count(n) for n in set(numbers) if numbers.count(n) > 1]
    if not several:
        refuse_repeats(digests)
        return
    with pytest.raises(DataError, match=f"^{len(several)} ID.*in {sum(several)} rows"):
        refuse_repeats(digests)
