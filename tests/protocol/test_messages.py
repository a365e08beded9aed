"""Messages: decode(encode(m)) == m, altered bytes are refused, codes cost their entropy."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.columns.codebook import Codebook
from opboost.errors import PeerError, WireError, unseen
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.protocol import envelope
from opboost.protocol.column_streams import (
    FIELDS,
    PIECE_ROWS,
    ColumnHead,
    Outline,
    Reader,
    batch,
    digest,
    pieces,
)
from opboost.protocol.entropy_coding import Coder, pack_integers, unpack_integers
from opboost.protocol.messages import (
    KINDS,
    Ack,
    Aligned,
    Challenge,
    Claim,
    ColumnSchema,
    Cuts,
    Farewell,
    Hello,
    Login,
    Points,
    PointsQuery,
    Poll,
    Proof,
    Receipt,
    Rows,
    Schema,
    ScoreTask,
    SplitQuery,
    SplitValues,
    Values,
    Weights,
    Welcome,
    decode,
    decode_receipt,
    encode,
)
from tests.support.version_1 import ALIGNED_1, HELLO_1, RECEIPT_1

JOB = "20260102T030405Z-01020304"
GRID = op.Domain(1, 10)
AGE = op.PrivateColumn("age", op.NumericMapping(GRID, (17, 90)), op.ClampMap(GRID, 0.64))

digests = st.binary(min_size=32, max_size=32)
parties = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
numbers = st.integers(0, 2**40)
rising = st.lists(numbers, min_size=1, max_size=20, unique=True).map(lambda x: tuple(sorted(x)))
finite = st.floats(allow_nan=False)
names = st.text(min_size=1, max_size=20).filter(lambda text: not unseen(text))


totals = st.floats(min_value=0, allow_infinity=False, allow_nan=False)


@st.composite
def messages(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    if kind == "hello":
        return Hello(draw(parties), draw(digests), draw(totals))
    if kind == "welcome":
        session = draw(st.sampled_from([b"", bytes(32)]))
        first = Welcome(JOB, draw(digests), draw(st.binary(max_size=99)), session, draw(totals))
        needed = [ColumnSchema.of(AGE, name, "raw") for name in draw(st.lists(names, max_size=3))]
        rows = draw(st.sampled_from(["common", "mine"]))
        return dataclasses.replace(
            first, rows=rows, columns=tuple(needed), values=draw(st.booleans())
        )
    if kind == "points query":
        return PointsQuery(JOB, draw(numbers))
    if kind == "points":
        points = draw(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=9))
        step = draw(st.sampled_from(["label", "feature", "raised"]))
        whole = b"".join(p[:31] + b"\x7e" for p in points)
        return Points(JOB, step, draw(digests)[:16], len(points), 0, whole)
    if kind == "aligned":
        bits = np.array(draw(st.lists(st.booleans(), min_size=1, max_size=40)))
        bitmap = np.packbits(bits).tobytes()
        share = draw(digests)[:31] + b"\x7e"
        return Aligned(JOB, draw(digests)[:16], len(bits), int(bits.sum()), bitmap, share)
    if kind == "claim":
        return Claim(
            draw(parties), JOB, draw(st.integers(1, 99)), draw(digests)[:31] + b"\2", bytes(32)
        )
    if kind == "proof":
        return Proof(JOB, draw(digests))
    if kind == "challenge":
        return Challenge(draw(digests), draw(st.binary(max_size=99)))
    if kind == "login":
        return Login(draw(st.binary(max_size=99)), draw(st.binary(max_size=99)))
    if kind == "rows":
        return Rows(draw(parties), JOB, draw(st.integers(1, 2**40)), draw(digests))
    if kind == "schema":
        columns = (ColumnSchema.of(AGE, draw(names), "raw"),)
        books, units = (
            draw(st.sampled_from(["full", "cuts"])),
            draw(st.sampled_from(["grid", "raw"])),
        )
        rows = draw(st.integers(1, 2**40))
        scores = draw(st.floats(0, 1e6))
        return Schema(draw(parties), JOB, rows, draw(digests), books, units, columns, 0, scores)
    if kind == "receipt":
        pem = draw(st.binary(max_size=99))
        return Receipt(draw(parties), JOB, draw(numbers), draw(digests), pem, pem)
    columns = sorted(draw(st.lists(st.integers(0, 99), max_size=5, unique=True)))
    if kind == "split query":
        cuts = tuple(Cuts(c, draw(rising)) for c in columns)
        return SplitQuery(JOB, draw(st.booleans()), cuts)
    if kind == "split values":
        values = st.lists(finite, max_size=9).map(tuple)
        answers = tuple(Values(c, "raw", draw(values)) for c in columns)
        return SplitValues(JOB, draw(digests), answers)
    if kind == "ack":
        return Ack(JOB, draw(st.text(max_size=9)), tuple(columns))
    if kind == "score task":
        return ScoreTask(JOB, draw(st.binary(max_size=99)))
    if kind == "weights":
        return Weights(JOB, tuple(draw(st.lists(st.integers(0, 3), max_size=40))))
    return {"poll": Poll, "farewell": Farewell}[kind](JOB)


@given(messages())
def test_a_message_comes_back_as_it_was(message):
    assert decode(encode(message), type(message)) == message


@given(messages(), st.data())
def test_an_altered_message_is_refused(message, data):
    sealed = bytearray(encode(message))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(WireError):
        decode(bytes(sealed), type(message))


@given(messages(), st.data())
def test_a_message_cut_short_is_refused(message, data):
    sealed = encode(message)
    with pytest.raises(WireError):
        decode(sealed[: data.draw(st.integers(0, len(sealed) - 1))], type(message))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_and_never_crash(junk):
    for data in (junk, envelope.MARK + junk, _encrypted(junk)):
        with pytest.raises(WireError):
            decode(data, Hello)


def _encrypted(body):
    return envelope.MARK + hashlib.sha256(body).digest() + body


def test_another_version_is_refused_by_name(monkeypatch):
    with monkeypatch.context() as future:
        future.setattr(envelope, "PROTOCOL_VERSION", 4)
        sealed = encode(Farewell(JOB))
    with pytest.raises(WireError, match=r"version '4'; this release speaks version 3"):
        decode(sealed, Farewell)


@pytest.mark.parametrize(
    ("data", "kind"), [(HELLO_1, Hello), (RECEIPT_1, Receipt), (ALIGNED_1, Aligned)]
)
def test_a_message_of_version_1_is_refused_with_both_versions(data, kind):
    assert envelope.is_whole(data)
    words = r"version '1'; this release speaks version 3. Run the same release at both parties"
    for refuse in (lambda: decode(data, kind), lambda: envelope.check_version(data)):
        with pytest.raises(WireError, match=words):
            refuse()
    assert envelope.version_of(data[:500]) == "1"
    assert envelope.version_of(encode(Poll(JOB))) == "3"
    assert envelope.version_of(b"") == envelope.version_of(bytes(100)) == ""
    envelope.check_version(b"no message at all")


def test_a_receipt_of_version_1_is_read_for_good():
    receipt = decode_receipt(RECEIPT_1)
    assert receipt == Receipt("shop", JOB, 3, bytes(32), b"pem", b"sig")
    assert decode_receipt(encode(receipt)) == receipt
    with pytest.raises(WireError, match="unexpected kind: 'hello'"):
        decode_receipt(HELLO_1)


def test_a_message_of_another_kind_is_refused():
    with pytest.raises(WireError, match=r"unexpected kind: 'poll'"):
        decode(encode(Poll(JOB)), Farewell)


def test_a_field_that_is_null_is_refused():
    loose = pa.schema([("job", pa.string())])
    sealed = envelope.pack_message("poll", loose, {"job": None})
    with pytest.raises(WireError, match=r"does not have the fields"):
        decode(sealed, Poll)


def test_a_large_message_is_refused_before_it_is_read():
    with pytest.raises(WireError, match=r"too large"):
        decode(envelope.MARK + bytes(envelope.MAX_MESSAGE_BYTES), Hello)


def test_a_compressed_message_is_refused_before_it_is_unpacked():
    """22 kB of zstd that would unpack to 700 MB."""
    notes = {"kind": "welcome", "version": "2"}
    schema = Welcome.ARROW.with_metadata(notes)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    row = {"job": JOB, "nonce": bytes(32), "receipt": bytes(50_000_000), "session": b""}
    with pa.ipc.new_stream(sink, schema, options=options) as out:
        out.write_batch(pa.RecordBatch.from_pylist([row], schema=schema))
    with pytest.raises(WireError, match=r"is compressed"):
        decode(_encrypted(sink.getvalue().to_pybytes()), Welcome)


@pytest.mark.parametrize("job", ["..", "", "20260102T030405Z-0102030g", "a/b", JOB + "/.."])
def test_a_job_number_of_another_form_is_refused(job):
    for make in (
        lambda: Welcome(job, bytes(32), b""),
        lambda: SplitQuery(job, False, ()),
        lambda: Poll(job),
    ):
        with pytest.raises(WireError, match=r"job's number"):
            make()


@pytest.mark.parametrize("total", [-1.0, float("inf"), float("nan")])
def test_totals_that_are_no_finite_number_from_zero_are_refused(total):
    for make in (
        lambda: Hello("shop", bytes(32), total),
        lambda: Welcome(JOB, bytes(32), b"", record=total),
    ):
        with pytest.raises(WireError, match=r"finite number from 0"):
            make()


def test_a_login_signs_the_total_that_was_said():
    signed = {Login.signed(Hello("shop", bytes(32), t), "bank", bytes(32)) for t in (0.0, 4.0, 8.0)}
    assert len(signed) == 3


@pytest.mark.parametrize(
    "spec",
    ["{}", "[]", "null", "x", '{"name": 1}', "[" * 5000, '{"name": "a", "mechanism": null}'],
)
def test_a_description_that_says_nothing_is_refused(spec):
    with pytest.raises(WireError):
        ColumnSchema(spec).column()


def test_grid_units_share_neither_bounds_nor_categories():
    city = op.PrivateColumn("city", None, op.UnaryEncoding(["north", "south"], 1.0))
    size = op.PrivateColumn(
        "size",
        op.OrdinalMapping(op.Domain(1, 2), op.Ordered(["small", "large"])),
        op.ClampMap(op.Domain(1, 2), 1.0),
    )
    gaps = dataclasses.replace(AGE, missing=op.Flag(1.0, 40))
    symbol = dataclasses.replace(
        AGE, mechanism=op.WindowMap(AGE.mechanism.domain, 4.0, near=0.5), missing="symbol"
    )
    for column in (city, size, gaps, symbol):
        shared = ColumnSchema.of(column, "x", "grid")
        assert not any(word in shared.spec for word in ("north", "small", "90", "40"))
        known = shared.column()
        assert known.guarantee().total == column.guarantee().total
        assert len(known.release_names()) == len(column.release_names())
    assert "90" in ColumnSchema.of(AGE, "x", "raw").spec
    identity = ColumnSchema.of(AGE, "x", "grid").column().mapping
    assert identity.to_grid(np.arange(1, 11)).tolist() == list(range(1, 11))


# codes


def entropy(counts):
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum() * counts.sum() / 8)


@st.composite
def columns(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from([1, 2, 3, 10, 100, 1024, 5000]))
    rows = draw(st.sampled_from([1, 7, 1000, 30_000]))
    skew = draw(st.sampled_from([0.0, 1.0, 3.0]))
    weights = np.arange(1, kinds + 1) ** -skew
    values = rng.choice(kinds, size=rows, p=weights / weights.sum())
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.min_scalar_type(len(distinct) - 1)), np.bincount(codes)


@given(columns())
def test_codes_come_back_and_cost_their_entropy(column):
    codes, counts = column
    coder = Coder.of_counts(counts)
    packed = coder.encode(codes)
    again = Coder.unpacked(len(counts), pack_integers(coder.frequencies))
    assert (again.decode(packed, len(codes)) == codes).all()
    table = len(pack_integers(coder.frequencies))
    assert len(packed) + table <= 1.1 * entropy(counts) + 1000


def test_codes_of_many_values_come_back():
    codes = np.random.default_rng(0).permutation(300_000).astype(np.uint32)
    coder = Coder.of_counts(np.ones(300_000, dtype=np.int64))
    assert coder.shift > 0
    packed = coder.encode(codes)
    assert (coder.decode(packed, 300_000) == codes).all()
    assert len(packed) <= 1.1 * 300_000 * math.log2(300_000) / 8


@pytest.mark.parametrize("symbols", [1, 3, 300])
def test_columns_of_few_rows_come_back_and_a_cut_one_is_refused(symbols):
    rng = np.random.default_rng(symbols)
    for rows in range(1, 30):
        codes = rng.integers(0, symbols, rows).astype(np.uint16)
        coder = Coder.of_counts(np.bincount(codes, minlength=symbols))
        packed = coder.encode(codes)
        assert (coder.decode(packed, rows) == codes).all()
        for size in range(len(packed)):
            with pytest.raises(WireError, match=r"damaged|impossible"):
                coder.decode(packed[:size], rows)


def test_the_digest_depends_on_codes_alone_and_reads_each_in_as_few_bytes_as_hold_every_symbol():
    codes = np.arange(256, dtype=np.uint8)
    for symbols, width in ((256, 1), (257, 2), (2**16, 2), (2**16 + 1, 4)):
        plain = codes.astype(f"<u{width}").tobytes()
        for kind in (np.uint8, np.uint16, np.uint32, np.int64):
            halves = np.split(codes.astype(kind), 2)
            assert digest(halves, symbols) == hashlib.sha256(plain).digest()


@given(st.binary(max_size=200), st.integers(0, 100))
def test_any_bytes_decode_to_codes_or_are_refused(junk, rows):
    coder = Coder.of_counts(np.array([5, 3, 1]))
    try:
        codes = coder.decode(junk, rows)
    except WireError:
        return
    assert codes.max(initial=0) < 3


@given(st.binary(max_size=100), st.integers(0, 50))
def test_any_bytes_unpack_or_are_refused(junk, count):
    with contextlib.suppress(WireError):
        assert len(unpack_integers(junk, count)) == count


def test_a_packed_list_never_inflates_beyond_its_size():
    import zlib

    bomb = b"\x18" + zlib.compress(bytes(10**7), 9)
    with pytest.raises(WireError, match=r"does not have the length"):
        unpack_integers(bomb, 10)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=300), st.sampled_from([8, 16, 32, 63]))
def test_packed_lists_are_the_same_again_and_short(values, bits):
    values = np.array([v % 2**bits - 2 ** (bits - 1) for v in values], dtype=np.int64)
    packed = pack_integers(values)
    assert np.array_equal(unpack_integers(packed, len(values)), values)
    assert len(packed) <= 1 + -(-bits // 8) * len(values)


@pytest.mark.parametrize("change", [-1, 1, 2**62])
def test_a_table_that_does_not_add_up_is_refused(change):
    table = Coder.of_counts(np.array([5, 3, 1])).frequencies.copy()
    table[0] += change
    with pytest.raises(WireError, match=r"add up"):
        Coder.unpacked(3, pack_integers(table))


def stream(codes, values, *, gaps=False, rows=None, column=0):
    symbols = len(values) + gaps
    counts = np.bincount(codes, minlength=symbols)
    coder = Coder.of_counts(counts)
    parts = [codes[p] for p in pieces(len(codes))]
    book = Codebook(np.array(values))
    head = ColumnHead(column, rows or len(codes), gaps, coder, book, digest(parts, symbols))
    return head, [batch(coder.encode(part)) for part in parts]


def read(head, batches):
    reader = Reader(ColumnHead.from_schema(head.to_schema()))
    codes = [reader.take(b) for b in batches]
    reader.finish()
    return np.concatenate(codes)


def test_a_column_travels_in_pieces():
    codes = np.random.default_rng(1).integers(0, 3, PIECE_ROWS + 5).astype(np.uint8)
    head, batches = stream(codes, [3, 7, 9])
    assert len(batches) == 2
    assert (read(head, batches) == codes).all()
    assert ColumnHead.from_schema(head.to_schema()).codebook == head.codebook


def test_a_stream_may_be_neither_longer_nor_shorter_than_its_head_says():
    codes = np.array([0, 1, 2, 1] * 50, dtype=np.uint8)
    head, batches = stream(codes, [3, 7, 9])
    with pytest.raises(WireError, match=r"continues after its last row"):
        read(head, batches * 2)
    with pytest.raises(WireError, match=r"ended after 0 of its 200 rows"):
        read(head, [])


def test_other_codes_than_the_digest_says_are_refused():
    codes = np.array([0, 1, 2, 1] * 50, dtype=np.uint8)
    head, _ = stream(codes, [3, 7, 9])
    other = codes[::-1].copy()
    with pytest.raises(WireError, match=r"digest"):
        read(head, [batch(head.coder.encode(other))])


def test_a_batch_of_another_form_is_refused():
    head, _ = stream(np.array([0, 1] * 9, dtype=np.uint8), [3, 7])
    wrong = pa.record_batch([pa.array([1])], names=["data"])
    two = pa.record_batch([pa.array([b"a", b"b"])], schema=FIELDS)
    for form in (wrong, two):
        with pytest.raises(WireError):
            Reader(head).take(form)
    with pytest.raises(WireError, match=r"one field"):
        ColumnHead.from_schema(wrong.schema)


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({b"opboost": b"\x03"}, "cannot be read"),
        ({b"opboost": b"\x01"}, "of version 1; this release speaks version 3"),
        ({b"opboost": b""}, "version"),
        ({b"more": b"x" * 100}, "unknown entries"),
    ],
)
def test_a_head_of_another_form_is_refused(notes, words):
    schema = stream(np.array([0, 1] * 9, dtype=np.uint8), [3, 7])[0].to_schema()
    with pytest.raises(WireError, match=words):
        ColumnHead.from_schema(schema.with_metadata({**schema.metadata, **notes}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 9}, "version 9"),
        ({"frequencies": b"junk"}, "unpacked"),
        ({"values": pack_integers(np.array([1, -5]))}, "cannot be read"),
        ({"values": pack_integers(np.array([2**62, 2**62]))}, "beyond any grid"),
        ({"values": pack_integers(np.array([1, 2, 3]))}, "does not have the length"),
        ({"rows": 2**31}, "impossible numbers"),
        ({"symbols": 0}, "more symbols than rows"),
        ({"symbols": 20}, "more symbols than rows"),
    ],
)
def test_a_head_that_lies_is_refused(change, words):
    schema = stream(np.array([0, 1] * 9, dtype=np.uint8), [3, 7])[0].to_schema()
    outline = Outline.unpacked(schema.metadata[b"opboost"])._replace(**change)
    with pytest.raises(WireError, match=words):
        ColumnHead.from_schema(schema.with_metadata({b"opboost": outline.packed()}))
    whole = schema.metadata[b"opboost"]
    for cut in (whole[:-1], whole + b"x"):
        with pytest.raises(WireError, match="longer or shorter"):
            ColumnHead.from_schema(schema.with_metadata({b"opboost": cut}))


@pytest.mark.parametrize(
    ("values", "rows", "words"),
    [
        ([0, 5], None, "outside its grid 1..10"),
        ([5, 11], None, "outside its grid 1..10"),
        ([3, 7], 17, "17 rows, the schema 18"),
        (list(range(1, 13)), None, "more than its grid has cells"),
    ],
)
def test_a_column_outside_what_its_schema_declares_is_refused(values, rows, words):
    codes = np.array([0, 1] * 9, dtype=np.uint8)
    head, _ = stream(codes, values, rows=rows)
    schema = Schema(
        "shop", JOB, 18, bytes(32), "full", "raw", (ColumnSchema.of(AGE, "age", "raw"),), 0
    )
    with pytest.raises(PeerError, match=words):
        AnnouncedColumns.of(schema).check(head, 0)


def test_a_file_holds_the_same_stream_as_a_socket():
    head, batches = stream(np.array([0, 1] * 9, dtype=np.uint8), [3, 7])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, head.to_schema()) as out:
        for b in batches:
            out.write_batch(b)
    with pa.ipc.open_stream(sink.getvalue()) as stored:
        assert (read(ColumnHead.from_schema(stored.schema), list(stored)) == [0, 1] * 9).all()


POINT = b"\2" + bytes(31)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": POINT[1:]}, "does not hold 1 points"),
        ({"points": POINT * 2}, "does not hold 1 points"),
        ({"points": bytes(31) + b"\x80"}, "shortest form"),
        ({"points": b"\xed" + b"\xff" * 30 + b"\x7f"}, "shortest form"),
        ({"piece": 1}, "beyond the last point"),
        ({"piece": -1}, "beyond the last point"),
        ({"total": 0}, "too few"),
        ({"total": 2**40}, "too many"),
        ({"step": "mine"}, "three steps"),
        ({"tag": b""}, "16 bytes"),
    ],
)
def test_points_that_do_not_fit_their_piece_are_refused(change, words):
    good = Points(JOB, "label", bytes(16), 1, 0, POINT)
    with pytest.raises(WireError, match=words):
        dataclasses.replace(good, **change)


@pytest.mark.parametrize("change", [{"count": 2}, {"bitmap": b"\x81"}, {"bitmap": b"\x80\0"}])
def test_a_bitmap_that_does_not_say_what_it_holds_is_refused(change):
    good = Aligned(JOB, bytes(16), 7, 1, b"\x80", POINT)
    with pytest.raises(WireError, match="bitmap"):
        dataclasses.replace(good, **change)
