"""The small messages: each kind, altered outside and inside its digest, and field by field."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import opboost as op
from opboost.columns.column_specs import column_to_dict
from opboost.errors import WireError
from opboost.protocol import messages as msg
from opboost.protocol.envelope import MARK, PROTOCOL_VERSION, version_of
from opboost.psi.blinding import Secret
from opboost.psi.row_keys import key_digests
from opboost.scores.flat_trees import FlatTrees, Tree
from opboost.scores.score_model import ScoreModel
from robustness.fuzz.mutate import spoilt, spoilt_tree, text
from robustness.fuzz.target import FuzzDrill, Target, holds

JOB = "20260102T030405Z-00000000"
GRID = op.Domain(1, 10)


def columns() -> list[op.PrivateColumn]:
    """Return private columns of every kind."""
    numbers = op.NumericMapping(GRID, (0, 100))
    cities = op.Ordered(["a", "b", "c"])
    three = op.Domain(1, 3)
    own = op.NumericMapping(three, (0, 10), (1.0, 2.0))
    logarithm = op.NumericMapping(GRID, (1, 1000), "log")
    return [
        op.PrivateColumn("age", numbers, op.ClampMap(GRID, 0.64)),
        op.PrivateColumn("pay", numbers, op.GlobalMap(GRID, 0.64), "raise", 50.0),
        op.PrivateColumn("sum", numbers, op.AdjMap(GRID, 0.64, theta=2), missing=op.Flag(1.0, 5)),
        op.PrivateColumn("run", numbers, op.LocalMap(GRID, epsilon=0.64, theta=(3, 7))),
        op.PrivateColumn("flat", numbers, op.Piecewise(GRID, 1.0)),
        op.PrivateColumn("log", logarithm, op.RandomizedResponse(GRID, 1.0)),
        op.PrivateColumn("own", own, op.ClampMap(three, 1.0)),
        op.PrivateColumn("size", op.OrdinalMapping(three, cities), op.ClampMap(three, 1.0)),
        op.PrivateColumn("city", None, op.UnaryEncoding(["x", "y", None], 1.0)),
    ]


def _stumps(groups: int) -> FlatTrees:
    """Return one stump over the first column for each sum."""
    left, right = [1, -1, -1], [2, -1, -1]
    return FlatTrees.of(
        [Tree(k, [0] * 3, [5, 0, 0], left, right, [1, 0, 0], [0, -9, 9]) for k in range(groups)],
        groups,
    )


def samples() -> dict[str, list[Any]]:
    """Return valid messages, by kind."""
    points = Secret.fresh().blinded(key_digests([b"ann", b"bob", b"cid"]))
    receipt = msg.Receipt("shop", JOB, 3, bytes(32), b"-----BEGIN", b"signed")
    described = tuple(msg.ColumnSchema.of(c, str(c.name), "raw") for c in columns())
    answered = (msg.Values(0, "raw", (1.5, 2.5)), msg.Values(4, "grid", (3.0,)))
    hidden = tuple(msg.ColumnSchema.of(c, str(c.name), "grid") for c in columns())
    found: list[Any] = [
        msg.Hello("shop", bytes(32)),
        msg.Hello("shop", bytes(32), 4.0),
        msg.Challenge(bytes(32), b"-----BEGIN"),
        msg.Login(b"-----BEGIN", b"signed"),
        msg.Welcome(JOB, bytes(32), b""),
        msg.Welcome(JOB, bytes(32), msg.encode(receipt), bytes(32)),
        msg.Welcome(JOB, bytes(32), b"", bytes(32), 8.0),
        msg.Welcome(JOB, bytes(32), b"", columns=described, values=True),
        msg.PointsQuery(JOB, 0),
        msg.Points(JOB, "label", bytes(16), 3, 0, points),
        msg.Aligned(JOB, bytes(16), 11, 3, b"\xc0\x20", points[:32]),
        msg.Claim("shop", JOB, 3, points[:32], bytes(32)),
        msg.Proof(JOB, bytes(32)),
        msg.Rows("shop", JOB, 100, bytes(32)),
        msg.Schema("shop", JOB, 100, bytes(32), "full", "raw", described, 0),
        msg.Schema("shop", JOB, 100, bytes(32), "cuts", "grid", hidden, 2),
        receipt,
        msg.Weights(JOB, (0, 1, 3, 2)),
        msg.Weights(JOB, ()),
        msg.ScoreTask.of(JOB, ScoreModel(_stumps(1), cuts=(-3, 0, 9))),
        msg.ScoreTask.of(JOB, ScoreModel(_stumps(3), book=np.eye(3, dtype=np.int64))),
        msg.SplitQuery(JOB, True, (msg.Cuts(0, (1, 3, 7)), msg.Cuts(4, (2,)))),
        msg.SplitQuery(JOB, False, ()),
        msg.SplitValues(JOB, bytes(32), answered),
        msg.Poll(JOB),
        msg.Ack(JOB, "schema", (0, 1, 2)),
        msg.Farewell(JOB),
    ]
    by_kind: dict[str, list[Any]] = {}
    for message in found:
        by_kind.setdefault(message.KIND, []).append(message)
    assert set(by_kind) == set(msg.KINDS)
    return by_kind


def repacked(body: bytes) -> bytes:
    """Return the bytes of a message with this body and its correct digest."""
    return MARK + hashlib.sha256(body).digest() + body


def respoilt(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return the bytes of a message with a spoilt body and its correct digest."""
    return repacked(spoilt(rng, data[len(MARK) + 32 :], others))


def written(marked: pa.Schema, batches: list[pa.RecordBatch], **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, marked, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def changed_fields(rng: Random, message: Any) -> bytes:
    """Return the message with other values of the right types in its fields."""
    marked, row = _marked(rng, message), msg._row(message)
    while True:
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            batch = pa.RecordBatch.from_pylist([spoilt_tree(rng, row)], schema=marked)
            return repacked(written(marked, [batch]))


def _marked(rng: Random, message: Any) -> pa.Schema:
    notes = {"kind": message.KIND, "version": str(PROTOCOL_VERSION)}
    if rng.random() < 0.05:
        notes[rng.choice(("kind", "version"))] = rng.choice(("1", "", "é", "\x1b[31m", "x" * 9000))
    return message.ARROW.with_metadata(notes)


def _changed_form(rng: Random, message: Any) -> bytes:
    """Return the message in another Arrow form."""
    marked, row = _marked(rng, message), msg._row(message)
    batch = pa.RecordBatch.from_pylist([row], schema=marked)
    place, way = rng.randrange(len(marked)), rng.randrange(6)
    if way == 0:
        return repacked(written(marked, [batch], compression=rng.choice(("zstd", "lz4"))))
    if way == 1:
        return repacked(written(marked, [batch] * rng.choice((0, 2, 9))))
    if way == 2:
        other = pa.RecordBatch.from_pylist([row] * 3, schema=marked)
    elif way == 3:
        other = batch.select(rng.sample(marked.names, len(marked)))
    elif way == 4:
        names = list(marked.names)
        names[place] = text(rng)[:50].encode(errors="replace").decode()
        other = batch.rename_columns(names).replace_schema_metadata(marked.metadata)
    else:
        kinds = (pa.null(), pa.int8(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
        empty = pa.nulls(1, rng.choice(kinds))
        other = batch.set_column(place, marked.names[place], empty)
    return repacked(written(other.schema, [other]))


def _prepare(kind: str, home: Path) -> FuzzDrill:
    messages = samples()
    whole = [msg.encode(m) for m in messages[kind]]
    others = [msg.encode(m) for many in messages.values() for m in many]

    def make(rng: Random) -> bytes:
        way = rng.random()
        if way < 0.05:
            return spoilt(rng, rng.choice(whole), others)
        if way < 0.5:
            return respoilt(rng, rng.choice(whole), others)
        if way < 0.93:
            return changed_fields(rng, rng.choice(messages[kind]))
        return _changed_form(rng, rng.choice(messages[kind]))

    return FuzzDrill(make, partial(_feed, msg.KINDS[kind]))


def _feed(kind: Any, data: bytes) -> None:
    version_of(data)  # the label server reads this before anybody has logged in
    message = msg.decode(data, kind)
    holds(msg.decode(msg.encode(message), kind) == message, "decode(encode(m)) is not m")
    if isinstance(message, msg.Schema):
        for column in message.private():
            again = msg.ColumnSchema(json.dumps(column_to_dict(column))).column()
            holds(repr(again) == repr(column), "a column's description means another column")
            column.release_names()
    if isinstance(message, msg.ScoreTask):
        model = message.score_model()
        same = msg.ScoreTask.of(message.job, model).score_model()
        holds(same.to_plain() == model.to_plain(), "a score model changes when it is written again")
    if isinstance(message, msg.Welcome) and message.receipt:
        msg.decode(message.receipt, msg.Receipt)


LARGE = ("schema", "points", "split query", "split values")
TARGETS = [
    Target(f"message: {k}", (WireError,), partial(_prepare, k), share=3.0 if k in LARGE else 1.0)
    for k in msg.KINDS
]
