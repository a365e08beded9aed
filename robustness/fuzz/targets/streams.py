"""Columns in transit: packed lists, coded pieces, heads and whole streams; points and bitmaps."""

import hashlib
import json
import pickle
import zlib
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.columns.dataframes import OutColumn
from opboost.errors import DataError, PeerError, WireError
from opboost.parties.alignment import Shown
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.feature.outgoing_columns import OutgoingColumns, read_values
from opboost.parties.message_checks import check_answer
from opboost.protocol import column_streams
from opboost.protocol import messages as msg
from opboost.protocol.column_streams import FIELDS, PIECE_ROWS, ColumnHead, Outline, batch
from opboost.protocol.entropy_coding import Coder, pack_integers, unpack_integers
from opboost.protocol.stored_columns import read_column, read_head
from opboost.psi.align_rules import AlignRules
from opboost.psi.blinding import Secret
from opboost.psi.common_rows import Common, unpacked
from opboost.psi.curve_points import POINT_BYTES, check_on_curve, check_points
from opboost.psi.row_keys import key_digests
from opboost.storage import atomic_files
from opboost.transport.label.receive_columns import check_column_file
from robustness.fuzz.mutate import INTEGERS, number, spoilt, spoilt_json
from robustness.fuzz.target import FuzzDrill, Target, holds, of_files, put_checked
from robustness.fuzz.targets.messages import JOB, columns, written

ROWS = 400
MOST = 2**17
"""The most rows or integers that a case may announce, because memory grows with their number."""


def inflated(packed: bytes) -> tuple[bytes, bytes]:
    """Return a packed list's first byte as if it were deflated, and its inflated bytes."""
    width, rest = packed[0] & 15, packed[1:]
    return bytes([16 + width]), zlib.decompress(rest) if packed[0] > 16 else rest


def _lists(home: Path) -> FuzzDrill:
    numbers = np.random.default_rng(0)
    lists = [numbers.integers(1, 1000, n) for n in (1, 2, 10, 500)]
    packed = [(pack_integers(values), len(values)) for values in lists]

    def make(rng: Random) -> bytes:
        data, count = rng.choice(packed)
        if rng.random() < 0.5:
            form, raw = inflated(data)
            data = form + zlib.compress(spoilt(rng, raw) if rng.random() < 0.9 else raw * 500)
        else:
            data = spoilt(rng, data)
        if rng.random() < 0.3:
            count = min(MOST, abs(number(rng)))
        return pickle.dumps((count, data))

    def feed(data: bytes) -> None:
        count, packed = pickle.loads(data)
        found = unpack_integers(packed, count)
        again = unpack_integers(pack_integers(found), len(found))
        holds(np.array_equal(found, again), "a packed list changes when it is packed again")

    return FuzzDrill(make, feed)


def _coded(home: Path) -> FuzzDrill:
    numbers = np.random.default_rng(0)
    ready = []
    for symbols in (1, 2, 10, 300, 70_000):
        codes = np.minimum(numbers.geometric(min(0.5, 5 / symbols), ROWS) - 1, symbols - 1)
        coder = Coder.of_counts(np.bincount(codes, minlength=symbols))
        data = coder.encode(codes.astype(np.min_scalar_type(symbols)))
        ready.append((symbols, pack_integers(coder.frequencies), coder, data))

    def make(rng: Random) -> bytes:
        symbols, table, coder, data = rng.choices(ready, (8, 8, 8, 8, 1))[0]
        way, rows = rng.random(), ROWS
        if way < 0.6:
            data = spoilt(rng, data, [r[3] for r in ready])
        elif way < 0.8:
            changed = coder.frequencies.copy()
            for _ in range(rng.choice((1, 2, 5))):
                more = rng.choice((-1, 1, rng.choice(INTEGERS) % 2**40))
                changed[rng.randrange(len(changed))] += more
            table = pack_integers(changed)
        elif way < 0.9:
            symbols = number(rng)
        else:
            rows = min(MOST, abs(number(rng)))
        return pickle.dumps((symbols, rows, table, data))

    def feed(data: bytes) -> None:
        symbols, rows, table, words = pickle.loads(data)
        coder = Coder.unpacked(symbols, table)
        codes = coder.decode(words, rows)
        holds(not len(codes) or int(codes.max()) < coder.symbols, "a code lies beyond its table")
        holds(coder.encode(codes) == words, "codes are encoded differently")

    return FuzzDrill(make, feed)


def column_files(home: Path) -> list[Path]:
    """Write streams of released columns as a feature party does."""
    numbers = np.random.default_rng(0)
    outgoing = OutgoingColumns(home)
    gaps = numbers.random(ROWS) < 0.1
    made = []
    for private in columns():
        for name in private.release_names():
            top = 2 if private.mapping is None else private.mapping.domain.size + 1
            low = 0 if private.mapping is None else 1
            drawn = numbers.integers(low, top, ROWS)
            made.append(OutColumn(name, drawn, gaps if private.flagged() else None))
    outgoing.add(made)
    return outgoing.coded(withheld=[False] * len(made))


def _read(data: bytes) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    with pa.ipc.open_stream(data) as stream:
        return stream.schema, list(stream)


def _spoilt_outline(rng: Random, data: bytes) -> bytes:
    """Return the numbers of a head with spoilt bytes, or with one number at a limit."""
    if rng.random() < 0.3:
        return spoilt(rng, data)
    field = rng.choice(("column", "rows", "symbols"))
    number = rng.choice((0, 1, 2, 9, 10, 11, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1))
    outline = Outline.unpacked(data)._replace(**{field: number})
    if rng.random() < 0.3:
        outline = outline._replace(gaps=not outline.gaps)
    return outline.packed()


def _spoilt_list(rng: Random, outline: Outline) -> Outline:
    """Spoil one of a head's lists before or after it is packed, or make one that fills memory."""
    name = rng.choice(("frequencies", "values"))
    packed: bytes = getattr(outline, name)
    if rng.random() < 0.05:
        bomb = b"\x18" + zlib.compress(bytes(2**24))
        return outline._replace(**{name: bomb, "symbols": 2**21, "rows": 2**21})
    if rng.random() < 0.2 or not packed:
        return outline._replace(**{name: spoilt(rng, packed or b"\0")})
    form, raw = inflated(packed)
    return outline._replace(**{name: form + zlib.compress(spoilt(rng, raw))})


def spoilt_stream(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    """Return a column's stream with other bytes, another head, or other pieces."""
    way = rng.random()
    if way < 0.4:
        return spoilt(rng, data, others)
    schema, batches = _read(data)
    notes = dict(schema.metadata)
    if way < 0.6:
        notes[b"opboost"] = _spoilt_outline(rng, notes[b"opboost"])
    elif way < 0.75:
        notes[b"opboost"] = _spoilt_list(rng, Outline.unpacked(notes[b"opboost"])).packed()
    elif way < 0.9:
        words = batches[0].column(0)[0].as_py()
        piece = spoilt(rng, words) if rng.random() < 0.9 else bytes(2**18)
        batches = [batch(piece)] * rng.choice((1, 1, 1, 2))
        if rng.random() < 0.5:
            return _redigested(schema, piece, batches)
    elif way < 0.95:
        batches = batches * rng.choice((0, 2)) or [pa.record_batch({"data": [b"", b""]}, FIELDS)]
    else:
        kind = rng.choice((pa.string(), pa.large_binary(), pa.binary(4), pa.list_(pa.binary())))
        other = pa.schema([pa.field("data", kind)], metadata=notes)
        return written(other, [pa.record_batch([pa.nulls(1, kind)], schema=other)])
    compression = rng.choice((None, None, None, "zstd", "lz4"))
    return written(schema.with_metadata(notes), batches, compression=compression)


def _redigested(schema: pa.Schema, piece: bytes, batches: list[pa.RecordBatch]) -> bytes:
    """Return the stream with the digest of its changed codes, so that they are accepted."""
    head = ColumnHead.from_schema(schema)
    try:
        codes = head.coder.decode(piece, min(PIECE_ROWS, head.rows))
    except WireError:
        return written(schema, batches)
    digest = column_streams.digest([codes], head.symbols)
    outline = Outline.unpacked(schema.metadata[b"opboost"])._replace(digest=digest)
    notes = {**schema.metadata, b"opboost": outline.packed()}
    return written(schema.with_metadata(notes), batches)


def _prepare_files(check: bool, home: Path) -> FuzzDrill:
    files = column_files(home)
    streams = [file.read_bytes() for file in files]
    described = (msg.ColumnSchema.of(columns()[0], "age", "raw"),)
    schema = msg.Schema("shop", JOB, ROWS, bytes(32), "full", "raw", described, 0)
    target, announced = home / "case.arrow", AnnouncedColumns.of(schema)

    def make(rng: Random) -> bytes:
        return spoilt_stream(rng, streams[0] if check else rng.choice(streams), streams)

    def feed(data: bytes) -> None:
        target.write_bytes(data)
        if check:
            check_column_file(target, announced, 0)
        atomic_files.add_checksum(target)
        read_head(target)
        head, column = read_column(target)
        holds(len(column.codes) == head.rows, "a head has another number of rows")
        again = ColumnHead.from_schema(head.to_schema())
        holds(again.to_schema().equals(head.to_schema(), check_metadata=True), "a head changes")
        if column.book is not None:
            holds(len(column.values) == head.rows, "codes have no values")

    return FuzzDrill(make, feed)


def _prepare_points(home: Path) -> FuzzDrill:
    secret = Secret.fresh()
    good = secret.blinded(key_digests([b"ann", b"bob", b"cid"]))
    odd = [b"\x02" + bytes(31), b"\xff" * 32, b"\x04" + bytes(31), bytes(32)]

    def make(rng: Random) -> bytes:
        if rng.random() < 0.6:
            return spoilt(rng, good, odd)
        many = [good[i : i + POINT_BYTES] for i in range(0, len(good), POINT_BYTES)]
        many[rng.randrange(3)] = rng.choice([*odd, many[0], rng.randbytes(32)])
        return b"".join(many)

    def feed(data: bytes) -> None:
        count = len(data) // POINT_BYTES
        check_points(data, count)
        if not count:
            return
        points = msg.Points(JOB, "label", secret.tag, count, 0, data)
        Shown.of(JOB, [points], AlignRules(minimum_rows=1))
        check_on_curve(data)
        raised = secret.raised(data)
        holds(len(raised) == len(data), "raising changes the number of points")

    return FuzzDrill(make, feed)


def _prepare_common(home: Path) -> FuzzDrill:
    digests = key_digests([str(i).encode() for i in range(50)])
    good = Common.of(digests, np.arange(0, 50, 3)).to_bytes()

    def make(rng: Random) -> bytes:
        data = spoilt(rng, good)
        return good[:32] + data[32:] if rng.random() < 0.7 else data

    def feed(data: bytes) -> None:
        common = Common.from_bytes(data)
        holds(common.to_bytes() == data, "the common rows are written differently")
        rows = common.rows(digests)
        holds(len(rows) == common.size, "the number of common rows is not the stated one")
        unpacked(data[40:], 50)

    return FuzzDrill(make, feed)


def _prepare_answer(home: Path) -> FuzzDrill:
    private = columns()
    query = msg.SplitQuery(JOB, True, (msg.Cuts(0, (1, 3, 7)), msg.Cuts(2, (2, 4))))
    digest = hashlib.sha256(msg.encode(query)).digest()
    files = column_files(home)
    books: dict[int, Any] = {c.column: read_head(files[c.column]).codebook for c in query.columns}
    cells = {c.column: [float(books[c.column].values[k]) for k in c.codes] for c in query.columns}

    def make(rng: Random) -> bytes:
        plain = [[n, "grid", list(v)] for n, v in cells.items()]
        return spoilt_json(rng, json.dumps(plain).encode())

    def feed(data: bytes) -> None:
        try:
            said = json.loads(data)
            found = tuple(
                msg.Values(int(n), str(units), tuple(map(float, values)))
                for n, units, values in said
            )
        except (ValueError, TypeError, OverflowError, RecursionError):
            return
        answer = msg.SplitValues(JOB, digest, found)
        for known in (books, dict.fromkeys(books)):
            check_answer(query, answer, private, known)

    return FuzzDrill(make, feed)


def _prepare_values(home: Path) -> FuzzDrill:
    file = column_files(home)[0]
    values = file.with_suffix(".values")
    good = atomic_files.read_checked(values, "")

    def use() -> None:
        again = read_values(file).astype("<i8").tobytes()
        holds(atomic_files.read_checked(values, "") == again, "values are written differently")

    return of_files([(values, good)], use, spoilt, put_checked)


TARGETS = [
    Target("packed list", (WireError,), _lists, share=4),
    Target("coded piece", (WireError,), _coded, share=4),
    Target("column stream", (WireError,), partial(_prepare_files, False), share=4),
    Target("column file of a bundle", (PeerError,), partial(_prepare_files, True), share=2),
    Target("points", (WireError,), _prepare_points, most=20_000),
    Target("common rows", (WireError, DataError), _prepare_common, share=2),
    Target("split values against a query", (PeerError,), _prepare_answer, share=2),
    Target("values beside a stream", (DataError,), _prepare_values),
]
