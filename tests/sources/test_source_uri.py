"""URIs of tables: what they name, and that they never keep a password."""

from __future__ import annotations

import pytest

from opboost.errors import ConfigError
from opboost.sources.source_uri import SourceUri
from opboost.sources.table_address import table_address

SECRET = "hush-9134"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@host/shop?table=people",
        f"postgres://me:{SECRET}@host/shop?table=people",
        f"postgresql://me:a/{SECRET}@host/shop?table=people",
        f"postgresql://me:a?{SECRET}@host/shop?table=people",
        f"postgresql://host/shop?password={SECRET}&table=people",
        f"postgresql://host/shop?table=people&sslpassword={SECRET}",
        f"s3://key:{SECRET}@shop/people.csv",
        f"s3://shop/people.csv?secret_key={SECRET}",
        f"s3://shop/people.csv?endpoint=https://key:{SECRET}@store.example",
        f"mysql://me:{SECRET}@host/shop",
        f"postgresql://host:{SECRET}/shop?table=people",
        f"postgresql://host/shop?tabel={SECRET}",
        f"duckdb:///shop.duckdb?key={SECRET}",
    ],
)
def test_a_password_is_refused_and_not_repeated(text):
    with pytest.raises(ConfigError) as refused:
        table_address(text)
    assert SECRET not in str(refused.value)


def test_the_refusal_names_where_a_password_belongs():
    with pytest.raises(ConfigError, match="PGPASSWORD"):
        table_address(f"postgresql://me:{SECRET}@host/shop?table=people")
    with pytest.raises(ConfigError, match="AWS_SECRET_ACCESS_KEY"):
        table_address(f"s3://key:{SECRET}@shop/people.csv")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("postgresql://host/shop", "neither a table nor a query"),
        ("postgresql://host/shop?table=a&query=SELECT 1", "both table= and query="),
        ("postgresql://host/shop?table=a&table=b", "table= twice"),
        ("postgresql://host/shop?table=", "empty table="),
        ("postgresql://host/shop/people?table=a", "database with a slash"),
        ("duckdb://shop.duckdb?table=a", "three slashes"),
        ("s3:///people.csv", "names no bucket"),
        ("s3://shop/people.csv?endpoint=http://store.example", "plaintext"),
        ("http://host/people.csv", "begins with duckdb:, postgresql:// or s3://"),
    ],
)
def test_what_a_uri_cannot_be(text, rule):
    with pytest.raises(ConfigError, match=rule):
        table_address(text)


def test_a_query_keeps_every_sign_and_a_percent_is_escaped():
    text = "postgresql://h/shop?sslmode=disable&query=SELECT a&1, b FROM t WHERE c LIKE '%25=?#'"
    uri = SourceUri.of(text)
    assert uri.options == {
        "sslmode": "disable",
        "query": "SELECT a&1, b FROM t WHERE c LIKE '%=?#'",
    }
    assert str(uri) == "postgresql://h/shop"  # a query may contain values, so it is never shown
