"""The bytes of a message: a mark, the digest of the rest, and an Arrow stream of one row."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from opboost.errors import WireError

PROTOCOL_VERSION = 3
"""The version of the messages that parties exchange; a release refuses any other version."""

MARK = b"OPBOOST\n"
MAX_MESSAGE_BYTES = 4 * 2**20
"""The most bytes that a message may have; codes are sent as streams instead."""


def pack_message(kind: str, schema: pa.Schema, row: dict[str, Any]) -> bytes:
    """Return the bytes of a message."""
    marked = schema.with_metadata({"kind": kind, "version": str(PROTOCOL_VERSION)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, marked) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([row], schema=marked))
    body: bytes = sink.getvalue().to_pybytes()
    sealed = MARK + hashlib.sha256(body).digest() + body
    if len(sealed) > MAX_MESSAGE_BYTES:
        raise WireError(f"A {kind} of {len(sealed):,} bytes is too large to send.")
    return sealed


def is_whole(data: bytes) -> bool:
    """Return whether these bytes are a complete, unaltered message."""
    start = len(MARK) + 32
    return data[:start] == MARK + hashlib.sha256(data[start:]).digest()


def version_of(data: bytes) -> str:
    """Return the version of a message, given at least its first kilobytes; empty if none."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(data[len(MARK) + 32 :]))
    except (pa.ArrowException, OSError, MemoryError):
        return ""
    known: bytes = (schema.metadata or {}).get(b"version", b"")
    return known.decode(errors="replace")[:40] if data.startswith(MARK) else ""


def check_version(data: bytes) -> None:
    """Refuse a message of another version than this release's; accept all other bytes."""
    version = version_of(data)
    if version and version != str(PROTOCOL_VERSION):
        raise other_version(version)


def other_version(version: str) -> WireError:
    """Return the error for a message of another version."""
    return WireError(
        f"A message is of version {version!r}; this release speaks version {PROTOCOL_VERSION}. "
        "Run the same release at both parties."
    )


def unpack_message(
    data: bytes, schemas: dict[str, pa.Schema], versions: Collection[int] = ()
) -> tuple[str, dict[str, Any]]:
    """Return the kind and the row of a message; refuse a compressed body before unpacking it.

    ``versions`` are earlier versions that are accepted, too.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError(f"A message of {len(data):,} bytes is too large.")
    if data[: len(MARK)] != MARK:
        raise WireError("These bytes are not an OpBoost message.")
    body = data[len(MARK) + 32 :]
    if hashlib.sha256(body).digest() != data[len(MARK) : len(MARK) + 32]:
        raise WireError("A message was altered or truncated in transit.")
    try:
        messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
        if any(m.type == "record batch" and is_compressed(m) for m in messages):
            raise WireError("A message is compressed, which is not allowed.")
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            kind = _checked_kind(reader.schema, schemas, versions)
            batches = list(reader)
        if len(batches) != 1 or batches[0].num_rows != 1:
            raise WireError(f"A {kind} must have one row.")
        batches[0].validate(full=True)
        row: dict[str, Any] = batches[0].to_pylist()[0]
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise WireError(f"A message cannot be read ({type(error).__name__}).") from None
    return kind, row


def is_compressed(message: pa.ipc.Message) -> bool:
    """Return whether a record batch's header has its field ``compression`` (the fourth).

    A batch whose header cannot be read counts as compressed.  This reads the flatbuffer itself,
    since pyarrow does not expose the field.  The root table's third field is the header, a table
    whose first bytes point back to the list of its fields' offsets.
    https://arrow.apache.org/docs/format/Columnar.html, Message.fbs
    """
    data = memoryview(message.metadata)

    def field(table: int, number: int) -> int:
        fields = table - struct.unpack_from("<i", data, table)[0]
        size = struct.unpack_from("<H", data, fields)[0]
        place = 4 + 2 * number
        offset = struct.unpack_from("<H", data, fields + place)[0] if place < size else 0
        return table + offset if offset else 0

    try:
        header = field(struct.unpack_from("<I", data, 0)[0], 2)
        if not header:
            return True
        return bool(field(header + struct.unpack_from("<I", data, header)[0], 3))
    except struct.error:
        return True


def _checked_kind(
    schema: pa.Schema, schemas: dict[str, pa.Schema], versions: Collection[int]
) -> str:
    notes = schema.metadata or {}
    version = notes.get(b"version", b"?").decode()[:40]
    if version not in map(str, (PROTOCOL_VERSION, *versions)):
        raise other_version(version)
    kind: str = notes.get(b"kind", b"?").decode()[:40]
    if kind not in schemas:
        raise WireError(f"A message is of an unexpected kind: {kind!r}.")
    if not schema.equals(schemas[kind], check_metadata=False):
        raise WireError(f"A {kind} does not have the fields of version {version}.")
    return kind
