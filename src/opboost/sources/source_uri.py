"""The URI of a table, checked before anything connects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from opboost.errors import ConfigError

FORMS: Mapping[str, str] = {
    "duckdb": "duckdb:///folder/file.duckdb?table=people",
    "postgresql": "postgresql://host/database?table=people",
    "s3": "s3://bucket/people.parquet",
}
"""An example for each scheme, which errors show."""

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "duckdb": ("table", "query"),
    "postgresql": (
        *("table", "query", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"),
    ),
    "s3": ("region", "endpoint", "anonymous"),
}
"""The options allowed after the question mark, by scheme."""

CREDENTIALS: Mapping[str, str] = {
    "duckdb": "A DuckDB file needs no password",
    "postgresql": "Set PGPASSWORD, or PGPASSFILE to a file that holds it",
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE",
}
"""Where credentials belong instead, as the next step in an error."""

_ALIASES = {"postgres": "postgresql"}
_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|(duckdb):)", re.ASCII)
_SECRET_OPTION = re.compile(r"(?i)pass|secret|token|access_?key|credential")
_USERINFO_WITH_PASSWORD = re.compile(r"//[^@]*:[^@]*@")
_PLACE = re.compile(r"[?&](?:table|query)=")


@dataclass(frozen=True, slots=True)
class SourceUri:
    """A URI in its parts; it holds no password.

    >>> uri = SourceUri.of("postgresql://reader@db.example:5433/shop?query=SELECT a & 1 FROM t")
    >>> uri.scheme, uri.user, uri.host, uri.port, uri.path, uri.options["query"]
    ('postgresql', 'reader', 'db.example', '5433', '/shop', 'SELECT a & 1 FROM t')
    >>> str(uri)
    'postgresql://db.example:5433/shop'
    """

    scheme: str
    user: str
    host: str
    port: str
    path: str
    options: Mapping[str, str]
    text: str
    """The URI as it was written."""

    @classmethod
    def of(cls, text: str) -> SourceUri:
        """Return the parts of a URI; an error shows no part that could be a secret.

        ``query=`` comes last: everything after it belongs to the query.  ``%25`` means ``%``.

        >>> SourceUri.of("postgresql://me:geheim@host/shop?table=people")
        Traceback (most recent call last):
        opboost.errors.ConfigError: The URI of the table (postgresql) holds a password, which would
        end up in files and listings. Leave it out. Set PGPASSWORD, or PGPASSFILE to a file that
        holds it.
        """
        text = text.strip()
        found = _URI.match(text)
        written = "" if found is None else (found[1] or found[2]).lower()
        scheme = _ALIASES.get(written, written)
        if found is None or scheme not in FORMS:
            raise ConfigError(
                f"A table's URI begins with duckdb:, postgresql:// or s3://; got "
                f"{written or 'no scheme'!r}. Write it like one of: {', '.join(FORMS.values())}."
            )
        if _USERINFO_WITH_PASSWORD.search(_PLACE.split(text)[0]):
            raise _holds_password(scheme)
        place, _, asked = text[found.end() :].partition("?")
        options = _options(asked, scheme)
        authority, slash, path = ("", "", place) if found[2] else place.partition("/")
        user, _, address = authority.rpartition("@")
        host, port = _host_and_port(address, scheme)
        return cls(scheme, unquote(user), host, port, slash + unquote(path), options, text)

    def __str__(self) -> str:
        if self.scheme == "duckdb":
            return self.path.rsplit("/", 1)[-1]
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host}{port}{self.path}"


def is_uri(text: str) -> bool:
    """Return whether the text is a URI of any scheme, and not a path.

    >>> is_uri("s3://shop/people.csv"), is_uri("mysql://host/db"), is_uri("duckdb:shop.duckdb")
    (True, True, True)
    >>> is_uri("people.csv"), is_uri("C:\\\\people.csv")
    (False, False)
    """
    return _URI.match(text.strip()) is not None


def _options(asked: str, scheme: str) -> dict[str, str]:
    options: dict[str, str] = {}
    while asked:
        name, _, rest = asked.partition("=")
        if _SECRET_OPTION.search(name):
            raise _holds_password(scheme)
        if name not in OPTIONS[scheme]:
            raise ConfigError(
                f"The URI of the table ({scheme}) has an unknown option. Known are: "
                f"{', '.join(OPTIONS[scheme])}. Write & as %26 inside a value; query= comes last."
            )
        if name in options:
            raise ConfigError(f"The URI of the table ({scheme}) has {name}= twice. Leave one out.")
        value, _, asked = (rest, "", "") if name == "query" else rest.partition("&")
        options[name] = unquote(value).strip()
        if not options[name]:
            raise ConfigError(f"The URI of the table ({scheme}) has an empty {name}=.")
    if "table" in options and "query" in options:
        raise ConfigError(
            f"The URI of the table ({scheme}) has both table= and query=. Leave one out."
        )
    return options


def _host_and_port(address: str, scheme: str) -> tuple[str, str]:
    if scheme == "s3":
        return address, ""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(\d{1,5}))?", address)
    if found is None:
        raise ConfigError(
            f"The URI of the table ({scheme}) has no readable host and port. "
            f"Write it like {FORMS[scheme]}."
        )
    return unquote(found[1]), found[2] or ""


def _holds_password(scheme: str) -> ConfigError:
    return ConfigError(
        f"The URI of the table ({scheme}) holds a password, which would end up in files and "
        f"listings. Leave it out. {CREDENTIALS[scheme]}."
    )
