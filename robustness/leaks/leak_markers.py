"""Values that occur nowhere by chance, the forms in which they could leak, and a search."""

import base64
import hashlib
import io
import re
import sqlite3
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from opboost.demo.local_federation import LABEL_PARTY

COMMON, ALONE = 80, 20
"""The number of rows that all parties have, and of those that only one party has."""

ODD_TEXT = "zq7-canary-Xylophon"
ODD_NUMBER = 8123.447192953717
ROWS = COMMON + ALONE
HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
DEPTH = 4
MARKS = {"gzip": rb"\x1f\x8b\x08", "zstd": rb"\x28\xb5\x2f\xfd", "zlib": rb"\x78[\x01\x5e\x9c\xda]"}
"""The bytes with which compressed streams begin."""


@dataclass(frozen=True, slots=True)
class Found:
    """A raw value where none must be; ``what`` is its kind, never the value."""

    where: str
    what: str
    form: str


def forms_of_text(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield an ID as bytes, in every form in which a program might write it."""
    plain = text.encode()
    number = struct.pack("<q", int(text)) if text.isdigit() else plain
    yield "utf-8", plain
    yield "utf-8, capitals", text.upper().encode()
    yield "utf-16-le", text.encode("utf-16-le")
    yield "utf-16-be", text.encode("utf-16-be")
    yield from _spelled("utf-8", plain)
    if text.isdigit():
        yield "int64", number
        yield "int64, big-endian", number[::-1]
        yield "float64 of the number", struct.pack("<d", float(text))
    measured = len(plain).to_bytes(4, "big") + plain
    yield from _digests(HASHES, {"": plain, " of the length and it": measured, " of int64": number})


def forms_of_number(value: float) -> Iterator[tuple[str, bytes]]:
    """Yield a number as bytes, in every form in which a program might write it."""
    written, packed = repr(value).encode(), struct.pack("<d", value)
    yield "repr", written
    yield "eight decimals", f"{value:.8f}".encode()
    yield "repr, utf-16", repr(value).encode("utf-16-le")
    yield "float64", packed
    yield "float64, big-endian", packed[::-1]
    yield "float.hex", value.hex().encode()
    yield from _spelled("float64", packed)
    yield from _spelled("repr", written)
    hashes = ("md5", "sha1", "sha256", "blake2b")
    yield from _digests(hashes, {" of repr": written, " of float64": packed})


def short_forms_of_number(value: float) -> Iterator[tuple[str, bytes]]:
    """Yield four-byte forms, for short inputs only; in long ones they occur by chance."""
    yield "float32", struct.pack("<f", value)
    yield "float32, big-endian", struct.pack(">f", value)


def _spelled(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield f"{name} in hex", data.hex().encode()
    yield f"{name} in hex, capitals", data.hex().upper().encode()
    for shift in range(3):  # base64 depends on the offset modulo 3
        coded = base64.b64encode(bytes(shift) + data)[4 if shift else 0 : -4]
        if len(coded) >= 8:
            yield f"{name} in base64", coded


def _digests(names: Iterable[str], inputs: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield each input's digests, cut to 16 bytes if longer: as bytes, in hex and in base64."""
    for lead, data in inputs.items():
        digests = {name: hashlib.new(name, data).digest() for name in names}
        for size in (8, 16, 32):
            digests[f"blake2b-{8 * size}"] = hashlib.blake2b(data, digest_size=size).digest()
        for name, digest in digests.items():
            form = name + lead
            yield form, digest[:16]
            yield f"{form} in hex", digest.hex()[:32].encode()
            yield f"{form} in hex, capitals", digest.hex()[:32].upper().encode()
            coded = base64.b64encode(digest[:12])
            yield f"{form} in base64", coded[:-1] if len(digest) >= 12 else coded


class Search:
    """A search for many patterns at once, by their first bytes."""

    def __init__(self, patterns: Iterable[tuple[str, str, bytes]], width: int = 8) -> None:
        self._width, self._kind = width, f"<u{width}"
        self._known: dict[int, list[tuple[str, str, bytes]]] = defaultdict(list)
        for what, form, pattern in patterns:
            if len(pattern) < width:
                raise ValueError(f"A pattern must have {width} bytes or more: {form}.")
            self._known[int.from_bytes(pattern[:width], "little")].append((what, form, pattern))
        self._keys = np.sort(np.fromiter(self._known, self._kind, len(self._known)))

    def found(self, where: str, data: bytes) -> Iterator[Found]:
        """Yield every pattern in ``data``, each once."""
        seen = set()
        for start in range(self._width):
            count = (len(data) - start) // self._width
            if count <= 0:
                break
            keys = np.frombuffer(data, dtype=self._kind, count=count, offset=start)
            near = self._keys[np.searchsorted(self._keys[:-1], keys)]
            for i in np.flatnonzero(near == keys).tolist():
                at = start + i * self._width
                for what, form, pattern in self._known[int(keys[i])]:
                    if (what, form) not in seen and data.startswith(pattern, at):
                        seen.add((what, form))
                        yield Found(where, what, form)


@dataclass(frozen=True)
class Tables:
    """Each party's table, and the patterns by which its values would be found."""

    tables: dict[str, pa.Table]

    @cached_property
    def search(self) -> Search:
        """Return a search for all IDs and all values of all parties."""
        ids = {str(v) for t in self.tables.values() for v in t.column("id").to_pylist()}
        forms = [("ID", forms_of_text(identifier)) for identifier in sorted(ids)]
        for party in self.tables:
            forms += [(f"value of {party}", forms_of_number(v)) for v in self._numbers(party)]
        odd = (forms_of_text(ODD_TEXT), forms_of_number(ODD_NUMBER))
        forms += [("odd value", found) for found in odd]
        return Search((what, *form) for what, found in forms for form in found)

    @cached_property
    def short_search(self) -> Search:
        """Return a search for the four-byte forms of a few values."""
        values = ((p, v) for p in self.tables for v in self._numbers(p)[:30])
        forms = ((f"value of {p}", *form) for p, v in values for form in short_forms_of_number(v))
        return Search(forms, 4)

    def _numbers(self, party: str) -> list[float]:
        table = self.tables[party]
        return [v for name in table.column_names if name != "id" for v in table[name].to_pylist()]


def made_tables(seed: int) -> Tables:
    """Return tables of IDs and values that occur nowhere by chance; one party's IDs are numbers."""
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
    """Yield the bytes and everything that is packed inside them, down to a depth."""
    yield name, data
    if depth == 0:
        return
    inner: Iterator[tuple[str, bytes]] = iter(())
    if data[:2] == b"PK":
        inner = _of_zip(data)
    elif data[:4] == b"PAR1":
        inner = _of_table(pa.parquet.read_table(pa.BufferReader(data)))
    elif data[:15] == b"SQLite format 3":
        inner = _of_sqlite(data)
    elif data[:6] == b"ARROW1" or data[:4] == b"\xff\xff\xff\xff":
        inner = _of_arrow(data)
    for part, piece in (*inner, *_of_streams(data)):
        yield from unpacked(f"{name}!{part}", piece, depth - 1)


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
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(data[:18] + b"\1\1" + data[20:])  # without the mark of a write-ahead log
        tables = [n for (n,) in base.execute("select name from sqlite_master where type='table'")]
        for table in tables:
            cells = [c for row in base.execute(f'select * from "{table}"') for c in row]
            blobs = [c for c in cells if isinstance(c, bytes)]
            words = [repr(c) for c in cells if not isinstance(c, bytes)]
            yield f"{table} in words", "\n".join(words).encode()
            yield table, b"\0".join(blobs)
            for number, blob in enumerate(blobs):
                if blob[:2] in (b"PK", b"\x1f\x8b") or blob[:4] == b"\x28\xb5\x2f\xfd":
                    yield f"{table} blob {number}", blob


def _of_streams(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the content of compressed streams that begin anywhere, as lists inside messages do."""
    for codec, mark in MARKS.items():
        for found in re.finditer(mark, data):
            with suppress(OSError, pa.ArrowException, zlib.error):
                yield f"{codec} at {found.start()}", _decompressed(data[found.start() :], codec)


def _decompressed(data: bytes, codec: str) -> bytes:
    if codec == "zlib":
        return zlib.decompressobj().decompress(data, 1 << 24)
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        return bytes(stream.read())


def http2_bodies(stream: bytes) -> bytes:
    """Return the bodies of one direction of an HTTP/2 connection, each call's pieces joined."""
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
