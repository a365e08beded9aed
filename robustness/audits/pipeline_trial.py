"""Audit the whole pipeline of a feature party with its randomness fixed.

A record goes through mapping, gaps, budget, ledger, sampling, coding and messages, as in a job.
Only the stream of random words is replaced: the words that a sampler may draw fall into a few
cases, each with an exact probability.  So the distribution of everything that is sent about a
record (the bytes of all messages, hence their sizes and order) is known exactly.  Any two records
are compared with the promise, in integers.

Two steps keep this small.  First, every case of every word is tried on every column, which gives
the exact probabilities of its outputs.  Then a feature party runs the whole job once for every
record and output, with words that lead to this output.
"""

import hashlib
import itertools
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Self
from unittest import mock

import numpy as np
import pyarrow as pa

from opboost.columns.private_column import PrivateColumn
from opboost.config import Plan
from opboost.config.columns_file import parse
from opboost.distributions import IntegerTable
from opboost.distributions.alias_kernel import THRESHOLD_BITS
from opboost.errors import OpBoostError
from opboost.ledger import Drawing, Ledger
from opboost.mechanisms import WindowWithMissing, WithMissing
from opboost.mechanisms.mechanism import distribution_of
from opboost.parties.feature.feature_party import FeatureParty
from opboost.protocol.messages import Cuts, SplitQuery, Welcome, encode
from opboost.protocol.stored_columns import read_column
from opboost.randomness import streams
from opboost.randomness.exact import exp_bounds
from opboost.storage.atomic_files import CHECKSUM_BYTES

JOB = Welcome("20260101T000000Z-00000000", bytes(32), b"")
RAW = {None: math.nan, 1: 0.5, 2: 1.5, 3: 2.5}
"""A raw value in each cell of a grid over 0 to 3; None is a gap."""

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""The fastest place for a party's files, since this audit does not need them to be durable."""

Transcript = tuple[bytes, ...]
Record = tuple[int | None, ...]
"""The cell of each column."""


@dataclass(frozen=True)
class Case:
    """Values of a random word with the same effect: one of them, and their total probability."""

    word: int
    tail: int
    chance: Fraction


def cut_points(cuts: Sequence[int], bits: int) -> list[Case]:
    """Return the cases of a random number of ``bits`` bits that is compared with ``cuts``."""
    edges = sorted({0, *cuts, 1 << bits})
    rest = bits - 64
    return [
        Case(low >> rest, low & ((1 << rest) - 1), Fraction(high - low, 1 << bits))
        for low, high in itertools.pairwise(edges)
    ]


def table_cases(table: IntegerTable) -> list[Case]:
    """Return the cases of the word that chooses an output of a table, the same for every input."""
    alias = table.alias
    cases: dict[tuple[int, ...], Case] = {}
    share_bits = table.bits - alias.column_bits
    rest = share_bits - THRESHOLD_BITS
    for column in range(1 << alias.column_bits):
        thresholds = [row[column] for row in alias.thresholds]
        for low, high in itertools.pairwise(sorted({0, *thresholds, 1 << share_bits})):
            chosen = tuple(
                column if low < threshold else row[column]
                for threshold, row in zip(thresholds, alias.aliases, strict=True)
            )
            word = column << THRESHOLD_BITS | low >> rest
            word <<= 64 - alias.column_bits - THRESHOLD_BITS
            chance = Fraction(high - low, 1 << table.bits)
            if chosen in cases:
                chance += cases[chosen].chance
            cases[chosen] = Case(word, low & ((1 << rest) - 1), chance)
    return list(cases.values())


def cases_of(column: PrivateColumn) -> list[list[Case]]:
    """Return the cases of each word that the draw of one value takes, in order."""
    table, gaps = distribution_of(column.mechanism), column.flagged()
    assert isinstance(table, IntegerTable)
    if isinstance(gaps, WithMissing):
        lie, bits = gaps.integer_flag()
        return [cut_points([lie], bits), table_cases(table)]
    if isinstance(gaps, WindowWithMissing):
        gap, cell, bits = gaps.integer_symbol()
        outputs = gaps.mechanism.domain.size + 2 * gaps.mechanism.reach
        chance = Fraction(1, outputs)
        uniform = [Case(((2 * i + 1) << 63) // outputs, 0, chance) for i in range(outputs)]
        return [cut_points([gap, cell], bits), table_cases(table), uniform]
    return [table_cases(table)]


class ScriptedSource:
    """A stream with scripted words for the first row, and the same word for every other row."""

    def __init__(self, script: Sequence[Case]) -> None:
        self._script = iter(script)
        self._tail = 0

    def words(self, draws: int, start: int, stop: int) -> Any:
        out = np.full((draws, stop - start), 1 << 62, dtype=np.uint64)
        for draw in range(draws):
            case = next(self._script, Case(1 << 62, 0, Fraction(1)))
            out[draw, 0], self._tail = case.word, case.tail
        return out

    def further(self, row: int) -> Self:
        return self

    def bits(self, count: int) -> int:
        return self._tail


@contextmanager
def scripted(script: Sequence[Case]) -> Iterator[None]:
    """Let the cryptographic stream return these words."""
    source = mock.Mock(return_value=ScriptedSource(script))
    with mock.patch.object(streams, "_SecureSource", source):
        yield


@dataclass(frozen=True)
class Pipeline:
    """A feature party's declaration, whose promise is audited, and the fault of its pipeline."""

    declared: str
    fault: Callable[[pa.Table], AbstractContextManager[Any]] = nullcontext
    """Returns a context in which the pipeline has a fault, which may depend on the table."""
    misread: Callable[[str, pa.Table], str] = lambda declared, table: declared
    """Returns the declaration that the party follows instead."""

    def promised(self) -> Plan:
        return parse(self.declared, "b.toml")

    def names(self) -> list[str]:
        return [str(c.name) for c in self.promised().private]

    def followed(self, table: pa.Table) -> Plan:
        return parse(self.misread(self.declared, table), "b.toml")


def table_of(record: Record, names: Sequence[str]) -> pa.Table:
    """Return a table of the person under audit and another one."""
    values = {
        name: pa.array([RAW[cell], 1.5], from_pandas=True)
        for name, cell in zip(names, record, strict=True)
    }
    return pa.table({"id": ["audited", "other"], **values})


def transcript(
    pipeline: Pipeline, table: pa.Table, key: bytes, script: Sequence[Case]
) -> Transcript:
    """Return everything that leaves a feature party in a job, message by message."""
    sent: list[bytes] = []
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as place,
        scripted(script),
        mock.patch("os.fsync"),
    ):
        folder = Path(place)
        (folder / "key").write_text(key.hex())
        (folder / "key").chmod(0o600)
        try:
            plan, state = pipeline.followed(table), folder / "state"
            ledger = Ledger(folder / "ledger", folder / "key", new=True)
            party = FeatureParty(table, plan, ledger=ledger, ids="id", codebook="cuts", state=state)
            party.check_release()
            sent += [encode(party.hello(1000.0)), encode(party.rows(JOB))]
            schema, files = party.release(JOB)
            sent += [encode(schema), *(f.read_bytes()[:-CHECKSUM_BYTES] for f in files)]
            heads = [read_column(file)[0] for file in files]
            asked = [Cuts(h.column, tuple(range(h.values))) for h in heads if h.values]
            sent.append(encode(party.answer(SplitQuery(JOB.job, True, tuple(asked)))))
        except OpBoostError as error:
            sent.append(f"refused: {error.refusal}".encode())
    return tuple(sent)


def outputs_of(column: PrivateColumn, table: pa.Table) -> list[tuple[Fraction, tuple[Case, ...]]]:
    """Return the probability of each output of a column, with words that lead to it."""
    try:
        prepared = column.prepare(table.slice(0, 1))
    except OpBoostError:
        return [(Fraction(1), ())]
    found: dict[object, tuple[Fraction, tuple[Case, ...]]] = {}
    for script in itertools.product(*cases_of(column)):
        with scripted(script):
            released = column.release(prepared)
        output = tuple(
            (c.values.tobytes(), None if c.missing is None else c.missing.tobytes())
            for c in released
        )
        before = found[output][0] if output in found else Fraction(0)
        found[output] = before + math.prod((c.chance for c in script), start=Fraction(1)), script
    return list(found.values())


def distribution(
    pipeline: Pipeline, record: Record, key: bytes, chosen: Sequence[bool]
) -> dict[Transcript, Fraction]:
    """Return the exact probability of each transcript if a record's chosen columns are sent."""
    found: dict[Transcript, Fraction] = defaultdict(Fraction)
    table = table_of(record, pipeline.names())
    with pipeline.fault(table):
        plan = pipeline.followed(table)
        outputs = [outputs_of(c, table) for c, s in zip(plan.private, chosen, strict=True) if s]
        for combined in itertools.product(*outputs):
            chance = math.prod((part[0] for part in combined), start=Fraction(1))
            script = [case for _, part in combined for case in part]
            found[transcript(pipeline, table, key, script)] += chance
    return found


def sent_by(sound: Pipeline, key: bytes) -> list[tuple[bool, ...]]:
    """Return which columns are sent for each person under a ledger's key."""
    found, ask = [], Drawing._sent

    def noted(drawing: Drawing, people: Any) -> Any:
        found.append(ask(drawing, people))
        return found[-1]

    names = sound.names()
    table = table_of((1,) * len(names), names)
    with mock.patch.object(Drawing, "_sent", noted):
        transcript(sound, table, key, [])
    if found[-1] is None:
        return [(True,) * len(names)] * table.num_rows
    return [tuple(row) for row in found[-1].tolist()]


@cache
def keys_of(declared: str) -> list[tuple[bytes, tuple[bool, ...]]]:
    """Return, for every choice of columns, a ledger's key that gives it to both people."""
    sound = Pipeline(declared)
    count = len(sound.names())
    sent = sound.promised().guarantee().columns_per_row or count
    found: dict[tuple[bool, ...], bytes] = {}
    for number in itertools.count():
        key = hashlib.sha256(str(number).encode()).digest()
        audited, other = sent_by(sound, key)
        if audited == other:
            found.setdefault(audited, key)
        if len(found) == math.comb(count, sent):
            return [(key, chosen) for chosen, key in found.items()]
    raise AssertionError


@dataclass
class Audited:
    """The result of an audit of a pipeline."""

    pairs: int = 0
    transcripts: int = 0
    worst: float = 0.0
    """The largest loss of a pair, as a share of its promise."""
    finding: str | None = None
    """The first pair that loses more than is promised."""


def audit(pipeline: Pipeline, records: Sequence[Record]) -> Audited:
    """Compare every pair of records under every choice of columns; stop at the first finding."""
    promise = pipeline.promised().guarantee()
    done = Audited()
    for key, chosen in keys_of(pipeline.declared):
        known: dict[Record, dict[Transcript, Fraction]] = {}
        for record in records:
            known[record] = distribution(pipeline, record, key, chosen)
            done.transcripts += len(known[record])
            for other in records[: len(known) - 1]:
                done.pairs += 1
                cells = [dict(zip(promise.parts, r, strict=True)) for r in (record, other)]
                bound = promise.bound(*cells)
                ratio = worst_ratio(known[record], known[other])
                if ratio is None or ratio * 2**256 > exp_bounds(Fraction(bound), 256)[0]:
                    done.finding = f"{other} and {record} where a row sends {chosen}"
                    return done
                done.worst = max(done.worst, math.log(ratio) / bound if bound else 0.0)
    return done


def worst_ratio(
    ours: dict[Transcript, Fraction], theirs: dict[Transcript, Fraction]
) -> Fraction | None:
    """Return the largest ratio of two probabilities of a transcript; None if one is zero."""
    assert sum(ours.values()) == sum(theirs.values()) == 1
    if ours.keys() != theirs.keys():
        return None
    return max(max(p / theirs[t], theirs[t] / p) for t, p in ours.items())
