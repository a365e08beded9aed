"""Values that occur nowhere by chance, the forms in which they could leak, and their search."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from opboost.demo.local_federation import LABEL_PARTY

COMMON, ALONE = 80, 20
"""Rows that all parties have, and rows that each has alone."""

ODD_TEXT = "zq7-canary-Xylophon"
ODD_NUMBER = 8123.447192953717
ROWS = COMMON + ALONE
HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Found:
    """A value that was found where it must not be; ``what`` tells its kind, never the value."""

    where: str
    what: str
    form: str


def forms_of_text(text: str) -> Iterator[tuple[str, bytes]]:
    """An ID as bytes, in every way in which a program might write it down."""
    plain = text.encode()
    yield "utf-8", plain
    yield "utf-8, capitals", text.upper().encode()
    yield "utf-16-le", text.encode("utf-16-le")
    yield "utf-16-be", text.encode("utf-16-be")
    yield from _spelled("utf-8", plain)
    if text.isdigit() and int(text) < 2**63:
        yield "int64", struct.pack("<q", int(text))
        yield "int64, big-endian", struct.pack(">q", int(text))
        yield "float64 of the number", struct.pack("<d", float(text))
    inputs = {
        "": plain,
        " of the length and it": len(plain).to_bytes(4, "big") + plain,
        " of int64": struct.pack("<q", int(text)) if text.isdigit() else plain,
    }
    for lead, data in inputs.items():
        for name in HASHES:
            yield from _digest(name + lead, hashlib.new(name, data).digest())
        for size in (8, 16, 32):
            digest = hashlib.blake2b(data, digest_size=size).digest()
            yield from _digest(f"blake2b-{8 * size}{lead}", digest)


def forms_of_number(value: float) -> Iterator[tuple[str, bytes]]:
    """A number as bytes, in every way in which a program might write it down."""
    yield "repr", repr(value).encode()
    yield "eight decimals", f"{value:.8f}".encode()
    yield "repr, utf-16", repr(value).encode("utf-16-le")
    yield "float64", struct.pack("<d", value)
    yield "float64, big-endian", struct.pack(">d", value)
    yield "float.hex", value.hex().encode()
    yield from _spelled("float64", struct.pack("<d", value))
    yield from _spelled("repr", repr(value).encode())
    for lead, data in (
        (" of repr", repr(value).encode()),
        (" of float64", struct.pack("<d", value)),
    ):
        for name in ("md5", "sha1", "sha256", "blake2b"):
            yield from _digest(name + lead, hashlib.new(name, data).digest())


def short_forms_of_number(value: float) -> Iterator[tuple[str, bytes]]:
    """Four bytes each, for short texts: in long ones they occur by chance."""
    yield "float32", struct.pack("<f", value)
    yield "float32, big-endian", struct.pack(">f", value)


def _spelled(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield f"{name} in hex", data.hex().encode()
    yield f"{name} in hex, capitals", data.hex().upper().encode()
    for shift in range(3):  # base64 of something that holds it, at any of three places
        coded = base64.b64encode(bytes(shift) + data)[4 if shift else 0 : -4]
        if len(coded) >= 8:
            yield f"{name} in base64", coded


def _digest(name: str, digest: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, digest[:16]
    yield f"{name} in hex", digest.hex()[:32].encode()
    yield f"{name} in hex, capitals", digest.hex()[:32].upper().encode()
    yield (
        f"{name} in base64",
        base64.b64encode(digest[:12])[:-1] if len(digest) >= 12 else (base64.b64encode(digest)),
    )


class Search:
    """Looks for many patterns at once, by their first bytes."""

    def __init__(self, patterns: Iterable[tuple[str, str, bytes]], width: int = 8) -> None:
        self._width, self._kind = width, f"<u{width}"
        self._known: dict[int, list[tuple[str, str, bytes]]] = defaultdict(list)
        self.count = 0
        for what, form, pattern in patterns:
            if len(pattern) < width:
                raise ValueError(f"A pattern must have {width} bytes or more: {form}.")
            self._known[int.from_bytes(pattern[:width], "little")].append((what, form, pattern))
            self.count += 1
        keys = np.fromiter(self._known, dtype=self._kind, count=len(self._known))
        self._maybe = np.zeros(1 << 22, dtype=bool)
        self._maybe[self._slots(keys)] = True

    def _slots(self, keys: np.ndarray) -> np.ndarray:
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(42)).astype(np.int64)

    def found(self, where: str, data: bytes) -> Iterator[Found]:
        """Every pattern in ``data``, each once."""
        seen = set()
        for start in range(self._width):
            count = (len(data) - start) // self._width
            if count <= 0:
                break
            keys = np.frombuffer(data, dtype=self._kind, count=count, offset=start)
            likely = np.flatnonzero(self._maybe[self._slots(keys)])
            for i in likely.tolist():
                for what, form, pattern in self._known.get(int(keys[i]), ()):
                    if (what, form) not in seen and data.startswith(
                        pattern, start + i * self._width
                    ):
                        seen.add((what, form))
                        yield Found(where, what, form)


@dataclass(frozen=True)
class Tables:
    """What each party holds, and the patterns that stand for it."""

    tables: dict[str, pa.Table]

    @cached_property
    def search(self) -> Search:
        """For all IDs and all values of all parties."""
        return Search(self._patterns())

    @cached_property
    def short_search(self) -> Search:
        """For the four-byte forms of a few values."""
        patterns = (
            (f"value of {party}", form, pattern)
            for party in self.tables
            for value in self._numbers(party)[:30]
            for form, pattern in short_forms_of_number(value)
        )
        return Search(patterns, 4)

    def _patterns(self) -> Iterator[tuple[str, str, bytes]]:
        ids = {str(v) for t in self.tables.values() for v in t.column("id").to_pylist()}
        for identifier in sorted(ids):
            for form, pattern in forms_of_text(identifier):
                yield "ID", form, pattern
        for party in self.tables:
            for value in self._numbers(party):
                for form, pattern in forms_of_number(value):
                    yield f"value of {party}", form, pattern
        for form, pattern in (*forms_of_text(ODD_TEXT), *forms_of_number(ODD_NUMBER)):
            yield "odd value", form, pattern

    def _numbers(self, party: str) -> list[float]:
        table = self.tables[party]
        return [v for name in table.column_names if name != "id" for v in table[name].to_pylist()]


def made_tables(seed: int) -> Tables:
    """Tables of IDs and values that occur nowhere by chance; one party holds its IDs as numbers."""
    rng = np.random.default_rng(seed)
    count = COMMON + 3 * ALONE
    ids = 10**14 + rng.choice(8 * 10**14, count, replace=False)

    def rows(k: int) -> np.ndarray:
        mine = np.r_[0:COMMON, COMMON + k * ALONE : COMMON + (k + 1) * ALONE]
        return ids[rng.permutation(mine)]

    def numbers() -> pa.Array:
        return pa.array(rng.uniform(10, 90, COMMON + ALONE))

    texts = [pa.array(rows(k).astype(str).tolist()) for k in range(2)]
    bank = pa.table({"id": texts[0], "age": numbers(), "price": numbers()})
    shop = pa.table({"id": texts[1], "income": numbers(), "basket": numbers()})
    telco = pa.table({"id": pa.array(rows(2)), "calls": numbers()})
    return Tables({LABEL_PARTY: bank, "shop": shop, "telco": telco})


def unpacked(name: str, data: bytes, depth: int = DEPTH) -> Iterator[tuple[str, bytes]]:
    """The bytes, and what they hold where they are a container that we know."""
    yield name, data
    if depth == 0:
        return
    inner: list[tuple[str, bytes]] = []
    if data[:2] == b"PK":
        inner += _of_zip(data)
    elif data[:4] == b"PAR1":
        inner += _of_table(pa.parquet.read_table(pa.BufferReader(data)))
    elif data[:15] == b"SQLite format 3":
        inner += _of_sqlite(data)
    elif data[:6] == b"ARROW1" or data[:4] == b"\xff\xff\xff\xff":
        inner += _of_arrow(data)
    else:
        inner += _of_frames(data)
    inner += _of_deflated(data)
    for part, piece in inner:
        yield from unpacked(f"{name}!{part}", piece, depth - 1)


def _of_deflated(data: bytes) -> Iterator[tuple[str, bytes]]:
    """What zlib packed, wherever it begins: lists inside our messages are packed so."""
    for header in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            found = zlib.decompressobj().decompress(data[header.start() :], 1 << 24)
        except zlib.error:
            continue
        if len(found) >= 8:
            yield f"deflated at {header.start()}", found


def _of_zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            yield member, archive.read(member)


def _of_table(table: pa.Table) -> Iterator[tuple[str, bytes]]:
    yield "schema", str(table.schema).encode()
    for name in table.column_names:
        column = table.column(name)
        yield f"{name} in words", "\n".join(map(repr, column.to_pylist())).encode()
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None:
                    yield name, buffer.to_pybytes()


def _of_arrow(data: bytes) -> Iterator[tuple[str, bytes]]:
    opened = pa.ipc.open_file if data[:6] == b"ARROW1" else pa.ipc.open_stream
    try:
        with opened(pa.BufferReader(data)) as stream:
            yield "metadata", repr(stream.schema.metadata).encode()
            for key, value in (stream.schema.metadata or {}).items():
                yield f"metadata {key!r}", value
            yield from _of_table(stream.read_all())
    except pa.ArrowException:
        return


def _of_sqlite(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "copy"
        file.write_bytes(data)
        with sqlite3.connect(file) as base:
            tables = [
                n for (n,) in base.execute("select name from sqlite_master where type='table'")
            ]
            for table in tables:
                cells = [c for row in base.execute(f'select * from "{table}"') for c in row]
                blobs = [c for c in cells if isinstance(c, bytes)]
                yield (
                    f"{table} in words",
                    "\n".join(repr(c) for c in cells if not isinstance(c, bytes)).encode(),
                )
                yield table, b"\0".join(blobs)
                for number, blob in enumerate(blobs):
                    if blob[:2] in (b"PK", b"\x1f\x8b") or blob[:4] == b"\x28\xb5\x2f\xfd":
                        yield f"{table} blob {number}", blob
        base.close()


def _of_frames(data: bytes) -> Iterator[tuple[str, bytes]]:
    """What a gzip, zstd or zlib stream that begins anywhere in the bytes unpacks to."""
    for mark, codec in ((b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")):
        at = data.find(mark)
        while at >= 0:
            try:
                if codec == "gzip":
                    yield f"gzip at {at}", gzip.decompress(data[at:])
                else:
                    with pa.CompressedInputStream(pa.BufferReader(data[at:]), codec) as stream:
                        yield f"zstd at {at}", stream.read()
            except (OSError, EOFError, pa.ArrowException):
                pass
            at = data.find(mark, at + 1)


def http2_bodies(stream: bytes) -> bytes:
    """The bodies in one direction of a plain HTTP/2 connection, each call's pieces put together."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    at = len(preface) if stream.startswith(preface) else 0
    bodies: dict[int, bytearray] = defaultdict(bytearray)
    while at + 9 <= len(stream):
        size = int.from_bytes(stream[at : at + 3], "big")
        kind, number = stream[at + 3], int.from_bytes(stream[at + 5 : at + 9], "big") & 0x7FFFFFFF
        if kind == 0:
            bodies[number] += stream[at + 9 : at + 9 + size]
        at += 9 + size
    return b"\0".join(map(bytes, bodies.values()))
