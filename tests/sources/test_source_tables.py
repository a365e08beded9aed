"""Every kind of source gives the same rows as a file, in pieces, and detects changes."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from opboost.errors import DataError
from opboost.files.id_columns import IdColumns
from opboost.files.read_tables import column_names, fingerprint, pieces, table_files
from opboost.psi.row_keys import Normalisation
from opboost.sources import database_table, duckdb_table, postgres_table
from opboost.sources.table_address import table_address

ROWS = 3000
TABLE = pa.table(
    {
        "id": [f"person-{i:04d}" for i in range(ROWS)],
        "age": np.arange(ROWS) % 74 + 17,
        "basket": np.arange(ROWS) / 7,
    }
)


@dataclass
class Place:
    """A table in a source, and a function with which somebody else changes it."""

    uri: str
    change: object


def in_duckdb(request):
    file = request.getfixturevalue("tmp_path") / "shop.duckdb"

    def write(statement):
        with duckdb.connect(str(file)) as connection:
            connection.register("given", TABLE)
            connection.execute(statement)

    write("CREATE TABLE people AS SELECT * FROM given")
    return Place(
        f"duckdb://{file}?table=people",
        lambda: write("UPDATE people SET age = 90 WHERE id = 'person-0007'"),
    )


def in_postgres(request):
    server = request.getfixturevalue("postgres")
    server.execute("DROP TABLE IF EXISTS people")
    server.ingest("people", TABLE)
    return Place(
        server.uri("table=public.people"),
        lambda: server.execute("UPDATE people SET age = 90 WHERE id = 'person-0007'"),
    )


def in_s3(suffix, write):
    def made(request):
        server = request.getfixturevalue("s3")

        def put(table):
            content = io.BytesIO()
            write(table, content)
            server.put(f"data/people{suffix}", content.getvalue())

        put(TABLE)
        return Place(server.uri(f"data/people{suffix}"), lambda: put(TABLE.slice(1)))

    return made


KINDS = {
    "duckdb": in_duckdb,
    "postgres": in_postgres,
    "s3-parquet": in_s3(".parquet", pyarrow.parquet.write_table),
    "s3-csv": in_s3(".csv", pyarrow.csv.write_csv),
}


@pytest.fixture(params=KINDS)
def place(request, monkeypatch):
    monkeypatch.setattr(duckdb_table, "BATCH_ROWS", 2048)
    monkeypatch.setattr(postgres_table, "BATCH_BYTES", 1 << 14)
    return KINDS[request.param](request)


def read(source, **settings):
    types = {"age": pa.int64(), "basket": pa.float64()}
    return [p for file in table_files(source) for p in pieces(file, types, width=2000, **settings)]


def test_a_source_gives_the_rows_of_the_table_in_pieces(place):
    source = table_address(place.uri)
    (file,) = table_files(source)
    assert column_names(file) == TABLE.column_names
    found = read(source)
    assert len(found) > 1
    assert max(piece.num_rows for piece in found) <= 2048
    assert pa.concat_tables(found).combine_chunks().equals(TABLE.combine_chunks())
    assert pa.concat_tables(read(source, columns=["id"])).equals(TABLE.select(["id"]))


def test_a_change_between_two_passes_is_noticed_before_the_first_row(place):
    source = table_address(place.uri)
    read(source)
    read(source, columns=["id"])  # unchanged, so nothing is raised
    place.change()
    with pytest.raises(DataError, match="changed between two passes") as refused:
        next(pieces(table_files(source)[0], columns=["id"]))
    assert "person" not in str(refused.value)
    read(table_address(place.uri))  # a new reader sees the new rows


def test_a_change_is_noticed_by_another_process_too(place):
    source = table_address(place.uri)
    seen = fingerprint(table_files(source))
    (file,) = table_files(source)
    copy = pickle.loads(pickle.dumps(file))
    assert fingerprint(table_files(table_address(place.uri))) == seen
    place.change()
    assert fingerprint(table_files(table_address(place.uri))) != seen
    with pytest.raises(DataError, match="changed between two passes"):
        next(pieces(copy))


def test_ids_of_a_source_are_those_of_the_table(place, tmp_path):
    ids = IdColumns.of(table_address(place.uri), ["id"])
    assert len(ids.keys(Normalisation(), tmp_path)) == ROWS
    assert ids.rows(np.array([2999, 0])).column("id").to_pylist() == ["person-2999", "person-0000"]
    place.change()
    with pytest.raises(DataError, match="changed"):
        ids.keys(Normalisation(), tmp_path)


def test_a_pass_sees_one_state_of_the_database(postgres, monkeypatch):
    place = in_postgres_of(postgres)
    source = table_address(place.uri)
    source.fingerprint()
    look = database_table.DatabaseTable._digest

    def look_before_a_change(self, run):
        found = look(self, run)
        postgres.execute("DELETE FROM people WHERE id > 'person-1000'")
        return found

    monkeypatch.setattr(database_table.DatabaseTable, "_digest", look_before_a_change)
    assert sum(piece.num_rows for piece in pieces(source)) == ROWS


def in_postgres_of(server):
    server.execute("DROP TABLE IF EXISTS people")
    server.ingest("people", TABLE)
    return Place(
        server.uri("query=SELECT * FROM people;"),
        lambda: server.execute("UPDATE people SET age = age"),
    )


def test_rows_in_another_order_are_a_change(postgres):
    place = in_postgres_of(postgres)
    source = table_address(place.uri)
    for _ in pieces(source):
        pass
    postgres.execute("UPDATE people SET age = age WHERE id = 'person-0007'")  # moves to the end
    with pytest.raises(DataError, match="or their order, changed"):
        next(pieces(source))


def test_an_order_that_changes_after_the_first_look_is_noticed_at_the_end(tmp_path, monkeypatch):
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    source = table_address(f"duckdb://{file}?query=SELECT * FROM people ORDER BY random()")
    monkeypatch.setattr(database_table.DatabaseTable, "_digest", lambda self, run: self._seen)
    assert len(list(pieces(source))) > 0
    with pytest.raises(DataError, match="or their order, changed"):
        list(pieces(source))


def test_types_that_tables_do_not_have_become_numbers_and_text(postgres, tmp_path):
    query = (
        "query=SELECT 1.5::numeric(9,2) AS amount, 12345678901::numeric(12,0) AS account, "
        "'12.50'::money AS price, '7b0e5f1a-0000-4000-8000-000000000001'::uuid AS who, "
        "'{\"a\": 1}'::jsonb AS more, DATE '2024-02-29' AS day, true AS member"
    )
    (row,) = pa.concat_tables(pieces(table_address(postgres.uri(query)))).to_pylist()
    assert row["amount"] == 1.5
    assert row["account"] == 12345678901
    assert isinstance(row["account"], int)
    assert row["price"] == 12.5
    assert row["who"] == "7b0e5f1a-0000-4000-8000-000000000001"
    assert row["more"] == '{"a": 1}'
    assert str(row["day"]) == "2024-02-29"
    assert row["member"] is True
    with duckdb.connect(str(tmp_path / "a.duckdb")):
        pass
    query = "SELECT 1.5::DECIMAL(9,2) AS amount, uuid() AS who, sum(2)::HUGEINT AS big, [1] AS more"
    source = table_address(f"duckdb://{tmp_path}/a.duckdb?query={query}")
    assert next(pieces(source)).drop_columns(["who"]).to_pylist() == [
        {"amount": 1.5, "big": 2.0, "more": "[1]"}
    ]
