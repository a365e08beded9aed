"""Tables: CSV and Parquet files that are damaged or of unexpected types."""

import gzip
import io
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opboost.columns.row_ids import id_bytes
from opboost.config.columns_file import parse
from opboost.config.table_plan import Plan
from opboost.errors import DataError
from opboost.files.describe_table import describe, roles
from opboost.files.desensitize_table import desensitize
from opboost.files.read_tables import column_names, table_files
from opboost.files.whole_table import label_of, read_table
from robustness.fuzz.mutate import number, plain, spoilt, text
from robustness.fuzz.target import MEMORY, FuzzDrill, Target, of_file, sample

GOOD: dict[str, Any] = {
    "id": ["a1", "b2", "c3", "d4"],
    "age": [23, 71, 40, 18],
    "pay": [2.5, None, 999.0, 1e3],
    "city": ["north", "south", "east", "north"],
    "size": [1, 2, 3, 1],
    "ok": [True, False, True, True],
}
CSV = (
    b"id,age,pay,city,size,ok\na1,23,2.5,north,1,true\nb2,71,,south,2,false\n"
    b'c3,40,999.0,"east",3,true\nd4,18,1e3,north,1,true\n',
    b"id,age\r\n1,2\r\n3,4\r\n",
    b'\xef\xbb\xbf"id","age"\n"a ""x""","1"\n',
    b"id\n",
    b"a;b\n1;2\n",
)
CSV_WORDS = (
    *(b",", b"\n", b'"', b'""', b"\r\n", b"\x00", b"\xff", b"NA", b"nan", b"inf", b"-inf"),
    *(b"1e999", b"0x10", b"9" * 30, b" ", b"true", b"north", b"\xef\xbb\xbf", b";", b"\t"),
    *(b"'", b"#", b"-0"),
)


def odd_columns() -> list[pa.Array]:
    """Return four rows of every type that Arrow writes to Parquet."""
    day, time = date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5)
    return [
        pa.nulls(4),
        pa.array([1, 2, 3, None], pa.int8()),
        pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
        pa.array([1, 2, 3, -(2**63)], pa.int64()),
        pa.array([0.5, float("nan"), float("inf"), None]),
        pa.array([1.5, 2.5, None, 3.5], pa.float32()),
        pa.array([1.5, 2.5, None, 3.5]).cast(pa.float16()),
        pa.array([Decimal("1.5"), None, Decimal("-2"), Decimal("99")], pa.decimal128(38, 2)),
        pa.array([Decimal("1.5"), None, Decimal("-2"), Decimal(10) ** 60], pa.decimal256(76, 2)),
        pa.array([True, False, None, True]),
        pa.array(["north", "south", None, "é"]),
        pa.array(["1", "2", "x", ""], pa.large_string()),
        pa.array(["1", "2", "x", ""], pa.string_view()),
        pa.array([b"1", b"\xff", None, b""]),
        pa.array([b"ab", b"cd", None, b"ef"], pa.binary(2)),
        pa.array(["north", "south", None, "north"]).dictionary_encode(),
        pa.array([3, 1, None, 3]).dictionary_encode(),
        pa.array([day, None, day, day]),
        pa.array([day, None, day, day], pa.date64()),
        pa.array([time, None, time, time], pa.timestamp("ns", "UTC")),
        pa.array([time, None, time, time], pa.timestamp("s")),
        pa.array([1, 2, 3, None], pa.time32("s")),
        pa.array([timedelta(1), None, timedelta(0), timedelta(-1)]),
        pa.array([[1], [], None, [None]]),
        pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int64(), 2)),
        pa.array([{"a": 1}, None, {"a": None}, {"a": 2}]),
        pa.array([[("k", 1)], [], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([{"a": {"b": [1]}}, None, {"a": None}, {"a": {"b": []}}]),
    ]


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _parquet_samples() -> list[bytes]:
    table = pa.table(GOOD)
    odd = pa.table({f"c{i}": c for i, c in enumerate(odd_columns())})
    return [
        parquet_bytes(table),
        parquet_bytes(table, compression="zstd", use_dictionary=False),
        parquet_bytes(table, compression="gzip", row_group_size=2),
        parquet_bytes(table, data_page_version="2.0", write_page_index=True),
        parquet_bytes(table.slice(0, 0)),
        parquet_bytes(odd),
    ]


def _odd_table(rng: Random, odd: list[pa.Array]) -> bytes:
    """Return a valid Parquet file whose columns have the wrong types."""
    columns = {name: pa.array(values) for name, values in GOOD.items()}
    for _ in range(rng.choice((1, 1, 2, 6))):
        columns[rng.choice(list(GOOD))] = rng.choice(odd)
    names = list(columns)
    if rng.random() < 0.1:
        names[rng.randrange(len(names))] = rng.choice([*names, "", "é", "\x1b", "a.b", "x" * 300])
    table = pa.Table.from_arrays(list(columns.values()), names=names)
    if rng.random() < 0.2:
        table = pa.concat_tables([table] * 3)
    return parquet_bytes(table, store_schema=rng.random() < 0.8)


def _odd_csv(rng: Random) -> bytes:
    """Return a well-formed CSV file with odd words."""
    names = list(GOOD)
    if rng.random() < 0.2:
        names[rng.randrange(len(names))] = text(rng)[:40].replace("\ud800", "")
    rows = []
    for _ in range(rng.choice((0, 1, 4, 50))):
        row = [str(values[rng.randrange(4)]) for values in GOOD.values()]
        if rng.random() < 0.6:
            row[rng.randrange(len(row))] = rng.choice((str(plain(rng))[:99], str(number(rng)), ""))
        rows.append(row)
    lines = [",".join(f'"{w}"' if rng.random() < 0.3 else w for w in row) for row in [names, *rows]]
    return "\n".join(lines).encode(errors="replace")


Use = Callable[[Path, Plan], None]


def _describe(file: Path, plan: Plan) -> None:
    column_names(file)
    for look in describe(file, roles(plan)):
        assert look.next_step is not None


def _train(file: Path, plan: Plan) -> None:
    """Read what training reads: the whole table, a label, row IDs."""
    table = read_table(file, plan.private, text=["id"])
    for name in table.column_names[:2]:
        label_of(table, name)
    name = table.column_names[0]
    id_bytes([table.column(name).to_pylist()], [name])


def _desensitize(file: Path, plan: Plan) -> None:
    target = file.with_name("out" + "".join(file.suffixes[-2:]).replace(".gz", ""))
    target.unlink(missing_ok=True)
    desensitize(file, plan, target)
    column_names(table_files(target)[0])


def _prepare(kind: str, use: Use, home: Path) -> FuzzDrill:
    plan = parse(sample("table-plan").decode(), "b.toml")
    odd = odd_columns()
    samples = _parquet_samples() if kind == "parquet" else list(CSV)
    file = home / f"table.{kind}"

    def make(rng: Random) -> bytes:
        way = rng.random()
        (one,) = rng.choices(samples, [4] + [1] * (len(samples) - 1))
        if kind == "parquet":
            return _odd_table(rng, odd) if way < 0.5 else spoilt(rng, one, samples)
        data = _odd_csv(rng) if way < 0.4 else spoilt(rng, one, CSV_WORDS)
        if kind == "csv":
            return data
        packed = gzip.compress(data, 1)
        return packed if way < 0.7 else spoilt(rng, packed)

    return of_file(file, make, lambda file: use(file, plan))


PAGE = 2**31
"""Bytes that pyarrow may allocate, if a Parquet page's header says so, before reading the page."""

KINDS = {"csv": (20_000, MEMORY), "csv.gz": (5_000, MEMORY), "parquet": (20_000, PAGE)}
"""The most cases, and the memory, of each kind of file."""

USES = {"describe": _describe, "train": _train, "desensitize": _desensitize}
TARGETS = [
    Target(f"{kind}: {what}", (DataError,), partial(_prepare, kind, use), most=most, memory=room)
    for kind, (most, room) in KINDS.items()
    for what, use in USES.items()
]
