"""The verbs work on tables in databases and stores as on files, or refuse."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.request
from pathlib import Path

import duckdb
import pyarrow.csv
import pyarrow.parquet
import pytest

import opboost as op
from opboost.config.job_file import load_feature, load_label
from opboost.errors import DataError, MissingPackageError
from opboost.ledger import Ledger
from opboost.parties.channel import MemoryChannel
from opboost.sources.driver_messages import WITHHELD, driver_words
from opboost.sources.table_address import table_address
from opboost.transport.feature.feature_job import feature_party
from opboost.transport.label.label_job import label_party, read_data
from robustness.command_line import run
from tests.support.postgres_server import PASSWORD, USER
from tests.support.s3_server import SECRET

FILES = Path(__file__).parents[2] / "docs" / "files"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.toml", "people.csv"):
        shutil.copy(FILES / name, tmp_path)
    text = (tmp_path / "b.toml").read_text()
    dropped = text.replace('drop = ["customer"]', 'drop = ["paid_back"]\n[align]\nid = "customer"')
    (tmp_path / "release.toml").write_text(dropped)
    return tmp_path


@pytest.fixture
def people():
    return pyarrow.csv.read_csv(FILES / "people.csv")


@pytest.fixture(params=["duckdb", "postgres", "s3"])
def uri(request, folder, people):
    if request.param == "duckdb":
        with duckdb.connect(str(folder / "shop.duckdb")) as connection:
            connection.register("given", people)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return "duckdb:shop.duckdb?table=people"
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        server.execute("DROP TABLE IF EXISTS customers")
        server.ingest("customers", people)
        return server.uri("table=customers")
    server = request.getfixturevalue("s3")
    server.put("people.csv", (FILES / "people.csv").read_bytes())
    return server.uri("people.csv")


def test_verbs_take_a_source_where_they_take_a_file(uri, folder):
    status, said, _ = run("describe", uri, "--format", "json")
    assert status == 0
    here = run("describe", "people.csv", "--format", "json")
    assert json.loads(said) == json.loads(here[1])

    assert run("init", uri, "--role", "feature", "-o", "mine.toml")[0] == 0
    table = next(
        line for line in (folder / "mine.toml").read_text().splitlines() if "table =" in line
    )
    assert json.loads(table.partition("=")[2]) == uri

    for source, out in ((uri, "a.csv"), ("people.csv", "b.csv")):
        done = run("desensitize", source, "-c", "release.toml", "-o", out, "--seed", "7")
        assert done[0] == 0, done
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()

    done = run("train", uri, "--label", "paid_back", "-c", "b.toml", "-o", "m.opboost")
    assert done[0] == 0, done
    answers = [run("predict", "m.opboost", source)[1] for source in (uri, "people.csv")]
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == 1001


def test_an_engine_desensitises_a_source(uri, folder):
    done = run("desensitize", uri, "-c", "release.toml", "-o", "released", "--engine", "local")
    assert done[0] == 0, done
    assert pyarrow.parquet.read_table(folder / "released").num_rows == 1000


def test_a_folder_of_a_store_is_a_folder(s3, folder, people):
    for number in range(2):
        with s3.files().open_output_stream(f"shop/parts/{number}.parquet") as stream:
            pyarrow.parquet.write_table(people.slice(500 * number, 500), stream)
    s3.put("parts/readme.txt", b"not a table")
    done = run("desensitize", s3.uri("parts/"), "-c", "release.toml", "-o", "released")
    assert done[0] == 0, done
    assert sorted(os.listdir(folder / "released")) == ["0.parquet", "1.parquet"]


JOB = """
[job]
name = "credit"
label_party = "bank"
feature_parties = ["shop"]
"""
BANK = """
[party]
name = "bank"
job = "job.toml"
table = "{table}"
listen = "127.0.0.1:8815"
[label]
column = "paid_back"
[align]
id = "customer"
[booster]
params = {{ num_boost_round = 4, max_depth = 2 }}
"""
SHOP = """
[party]
name = "shop"
job = "job.toml"
table = "{table}"
connect = "127.0.0.1:8815"
[align]
id = "customer"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
[budget]
record = 4.0
[columns.basket]
bounds = [0, 500]
[columns.visits]
bounds = [0, 20]
"""


@pytest.fixture
def job(folder, people, postgres):
    """Make a bank whose table is in DuckDB, and a shop whose table is in PostgreSQL."""
    (folder / "bank").mkdir()
    with duckdb.connect(str(folder / "bank" / "bank.duckdb")) as connection:
        connection.register("given", people.select(["customer", "age", "paid_back"]))
        connection.execute("CREATE TABLE people AS SELECT * FROM given ORDER BY age, customer")
    postgres.execute("DROP TABLE IF EXISTS baskets")
    postgres.ingest("baskets", people.select(["customer", "basket", "visits"]))
    query = "SELECT customer, basket, visits FROM baskets WHERE visits >= 0"
    texts = {
        "bank/job.toml": JOB,
        "job.toml": JOB,
        "bank/bank.toml": BANK.format(table="duckdb:bank.duckdb?table=people"),
        "shop.toml": SHOP.format(table=postgres.uri(f"query={query}")),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_parties_of_a_job_read_sources(job, postgres):
    bank_file, shop_file = load_label(job / "bank" / "bank.toml"), load_feature(job / "shop.toml")
    data = read_data(bank_file)
    bank = label_party(bank_file, data)
    with Ledger(Path(shop_file.ledger.folder), Path(shop_file.ledger.key)) as ledger:
        shop = feature_party(shop_file, ledger)
        shop.check_release()
        model = bank.train([MemoryChannel(shop)])
        assert set(map(str, model.feature_names_in_)) == {"age", "basket", "visits"}
        noted = b"".join(p.read_bytes() for p in job.rglob("*") if p.is_file())
        assert PASSWORD.encode() not in noted


def test_a_release_of_rows_that_changed_is_refused_before_anything_is_charged(job, postgres):
    shop_file = load_feature(job / "shop.toml")
    with Ledger(Path(shop_file.ledger.folder), Path(shop_file.ledger.key)) as ledger:
        shop = feature_party(shop_file, ledger)
        shop.check_release()
        postgres.execute("UPDATE baskets SET basket = basket + 1 WHERE visits = 3")
        bank_file = load_label(job / "bank" / "bank.toml")
        with pytest.raises(op.OpBoostError, match="changed between two passes"):
            label_party(bank_file, read_data(bank_file)).train([MemoryChannel(shop)])
        kinds = [entry.kind for entry in ledger.entries()]
        assert kinds[-1] == "abort"
        assert "commit" not in kinds


@pytest.mark.parametrize(
    ("rest", "rule"),
    [
        ("table=nowhere", "names a table that does not exist"),
        ("table=nowhere.people", "does not exist"),
        ("query=SELECT nothing FROM pg_class", "names a column that does not exist"),
        ("query=SELEC 1", "is not valid for PostgreSQL"),
        ("query=SELECT 1/(relpages-relpages) AS a FROM pg_class", "fails while rows are read"),
        ("query=SELECT 1 AS a, 2 AS a", "Column 'a' occurs twice"),
        ("query=SELECT nextval('numbers') AS a", "fails while rows are read"),
    ],
)
def test_what_postgres_refuses(postgres, rest, rule):
    postgres.execute("CREATE SEQUENCE IF NOT EXISTS numbers")
    status, out, said = run("describe", postgres.uri(rest))
    assert (status, out) == (5, "")
    assert rule in said


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("password", "refuses the login"),
        ("no password", "refuses the login"),
        ("database", "there is no such database"),
        ("port", "cannot be reached"),
        ("host", "cannot be reached"),
    ],
)
def test_a_database_that_lets_nobody_in(postgres, monkeypatch, wrong, rule):
    text = postgres.uri("table=people")
    if wrong == "password":
        monkeypatch.setenv("PGPASSWORD", "hush-9134")
    elif wrong == "no password":
        monkeypatch.delenv("PGPASSWORD")
    elif wrong == "database":
        text = text.replace("/postgres?", "/nowhere?")
    elif wrong == "port":
        text = text.replace(f":{postgres.port}/", ":1/")
    else:
        text = f"postgresql://{USER}@no-such-host.invalid/postgres?table=people"
    status, out, said = run("describe", text)
    assert (status, out) == (5, "")
    assert rule in said
    assert "PGPASSWORD" in said or "login" not in rule
    assert PASSWORD not in said
    assert "hush" not in said


def test_a_password_may_be_in_a_file(postgres, monkeypatch, tmp_path):
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:*:*:{USER}:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert run("describe", postgres.uri("query=SELECT 1 AS a"))[0] == 0
    assert driver_words(OSError(f"cannot log in with {PASSWORD}")) == WITHHELD


def test_a_query_without_the_id_column_is_refused(job, postgres):
    text = (job / "shop.toml").read_text()
    (job / "shop.toml").write_text(text.replace("SELECT customer, ", "SELECT "))
    shop = load_feature(job / "shop.toml")
    with (
        Ledger(Path(shop.ledger.folder), Path(shop.ledger.key)) as ledger,
        pytest.raises(DataError, match="Column 'customer' is declared but not in the table"),
    ):
        feature_party(shop, ledger)
    _, said, _ = run("doctor", "-c", job / "shop.toml", "--format", "json")
    assert "'customer' is declared but not in the table" in said


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("s3://no-such-bucket/people.csv", "There is no bucket 'no-such-bucket'"),
        ("s3://shop/nowhere.csv", "s3://shop/nowhere.csv does not exist"),
        ("s3://shop/empty/", "s3://shop/empty does not exist"),
        ("s3://shop/people.txt", "neither CSV nor Parquet by its name"),
        ("s3://shop/broken.parquet", "broken.parquet is not a readable Parquet file"),
        ("s3://shop/ragged.csv", "Line 3 of ragged.csv has 1 fields"),
    ],
)
def test_what_a_store_does_not_have(s3, key, rule):
    s3.put("people.txt", b"a\n1\n")
    s3.put("broken.parquet", b"PAR1 and no more")
    s3.put("ragged.csv", b"a,b\n1,2\n3\n")
    status, out, said = run("describe", f"{key}?endpoint={s3.endpoint}&region=us-east-1")
    assert (status, out) == (5, "")
    assert rule in said


def test_a_store_that_refuses_or_does_not_answer(s3, monkeypatch):
    status, _, said = run("describe", "s3://shop/people.csv?endpoint=http://127.0.0.1:1")
    assert status == 5
    assert "cannot be reached" in said
    s3.put("people.csv", b"a\n1\n")
    asked = urllib.request.Request(f"{s3.endpoint}/moto-api/reset-auth", b"0")
    asked.add_header("Content-Type", "text/plain")
    urllib.request.urlopen(asked).close()
    try:
        status, _, said = run("describe", s3.uri("people.csv"))
    finally:
        asked.data = b"1000000000"
        urllib.request.urlopen(asked).close()
    assert status == 5
    assert "The store refuses access to s3://shop/people.csv. Set AWS_ACCESS_KEY_ID" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("rest", "rule"),
    [
        ("nowhere.duckdb?table=people", "nowhere.duckdb does not exist"),
        ("b.toml?table=people", "b.toml is not a DuckDB file"),
        ("shop.duckdb?table=nowhere", "names a table or function that does not exist"),
        ("shop.duckdb?query=SELECT nothing FROM people", "names a column that does not exist"),
        ("shop.duckdb?query=SELEC 1", "is not valid for DuckDB"),
        ("shop.duckdb?query=SELECT * FROM read_csv('people.csv')", "reads another file"),
    ],
)
def test_what_a_duckdb_file_refuses(folder, rest, rule):
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS a")
    status, out, said = run("describe", f"duckdb:{rest}")
    assert (status, out) == (5, "")
    assert rule in said


def test_a_driver_that_repeats_a_secret_is_not_quoted(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hush-9134")
    for text in ("bad hush-9134", "postgresql://a:b@c failed", "password=x", "aws_secret: y"):
        assert driver_words(OSError(text)) == WITHHELD


@pytest.mark.parametrize(
    ("text", "package", "extra"),
    [
        ("duckdb:b.toml?table=people", "duckdb", "duckdb"),
        ("postgresql://127.0.0.1/a?table=people", "adbc_driver_postgresql", "postgres"),
    ],
)
def test_a_missing_extra_is_named(folder, monkeypatch, text, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.dbapi", None)
    with pytest.raises(MissingPackageError, match=rf"pip install 'opboost\[{extra}\]'"):
        table_address(text).column_names()
