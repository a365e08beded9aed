"""Fuzzing: a short run over every decoder, and each crash that a long run found."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization

import opboost as op
from opboost.config.columns_file import parse
from opboost.config.job_file import load_job
from opboost.errors import ConfigError, DataError, OpBoostError, PeerError, WireError, in_words
from opboost.files.describe_table import describe
from opboost.files.desensitize_table import desensitize
from opboost.files.read_tables import column_names
from opboost.files.whole_table import read_table
from opboost.ledger import Ledger
from opboost.ledger.key_file import KeyFile
from opboost.ledger.ledger_summary import summary
from opboost.ledger.verify_ledger import verify
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.feature.outgoing_columns import read_values
from opboost.protocol.column_streams import ColumnHead, Outline
from opboost.protocol.envelope import PROTOCOL_VERSION, pack_message
from opboost.protocol.messages import Ack, ColumnSchema, Hello, Schema, SplitQuery, decode
from opboost.protocol.stored_columns import read_head
from opboost.psi.common_rows import Common
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import JobRecord, PartyFolder, newest_receipt
from opboost.transport.label.label_job import read_manifest
from opboost.transport.label.receive_columns import check_column_file
from opboost.transport.shared.bundle_chain import STEPS, BundleChain, Pair
from opboost.transport.shared.bundle_keys import read_public
from opboost.transport.shared.development_certificates import kit_files, new_kit
from opboost.transport.shared.tls import Identity, check_receipt, read_identity
from robustness.fuzz.engine import planned, rng_of, run
from robustness.fuzz.target import FuzzDrill, judged, of_files
from robustness.fuzz.targets import TARGETS
from robustness.fuzz.targets.config import der_of, pem_of
from robustness.fuzz.targets.messages import (
    JOB,
    changed_fields,
    columns,
    repacked,
    samples,
    written,
)
from robustness.fuzz.targets.streams import column_files
from tests.support.fuzz_targets import bloats, dies, hangs, raises, sound, target

PLAN = "[mechanism]\nepsilon = 1.0\n[columns.age]\nbounds = [0, 100]\n"


# The engine


@pytest.mark.parametrize(
    ("prepare", "words"),
    [(dies, "dies with -11"), (raises, "KeyError"), (bloats, "takes "), (hangs, "hangs for 2 s")],
)
def test_a_case_that_breaks_the_contract_is_counted_and_its_bytes_are_kept(prepare, words):
    breaking = target(prepare)
    cases = [rng_of(1, breaking.name, case).randbytes(8) for case in range(40)]
    bad = [case for case, data in enumerate(cases) if data[0] < 12]
    result = run([breaking], 40, 1, workers=1)
    assert 1 <= len(bad) <= 4
    assert result.cases == {breaking.name: 40}
    assert [c.case for c in result.crashes] == bad
    assert all(c.words.startswith(words) and c.data == cases[c.case] for c in result.crashes)


def test_the_wrong_error_and_half_a_sentence_are_crashes():
    kept = target(sound)

    def feeding(error):
        def feed(data):
            raise error

        return judged(kept, FuzzDrill(lambda rng: b"", feed), b"")

    assert feeding(DataError("Column 'age' has no bounds")) == ""
    assert "WireError" in feeding(WireError("Another family."))
    assert "RecursionError" in feeding(RecursionError())
    assert "no sentence" in feeding(Unfinished("cut off in the"))
    assert "no sentence" in feeding(Unfinished("It has format 1: see the opboost"))
    assert feeding(Unfinished("It has format 1. Run: opboost ledger migrate -c FILE")) == ""


class Unfinished(DataError):
    def __str__(self):
        return self.rule


def test_every_target_gets_its_cases():
    counts = planned(TARGETS, 1_000_000)
    assert sum(counts.values()) >= 1_000_000
    assert all(counts[t.name] >= min(5_000, t.most) for t in TARGETS)


def test_a_short_run_over_every_decoder():
    result = run(TARGETS, 4_500, 20_260_101, workers=2)
    assert set(result.cases) == {t.name for t in TARGETS}
    assert result.total >= 4_500
    assert not result.crashes, "\n".join(f"{c.target} {c.case}: {c.words}" for c in result.crashes)


def test_some_messages_whose_fields_were_changed_are_accepted():
    """Otherwise all cases would be refused for one reason, such as an old protocol version."""
    rng = Random(1)
    for made in samples().values():
        accepted = 0
        for _ in range(60):
            with suppress(WireError):
                decode(changed_fields(rng, made[0]), type(made[0]))
                accepted += 1
        assert accepted, made[0]


def test_a_sample_that_its_own_decoder_refuses_is_noticed(tmp_path):
    def refuse():
        raise DataError("The sample is of an old format.")

    with pytest.raises(DataError):
        of_files([(tmp_path / "note", b"{}")], refuse)


# Its findings, one by one


def test_a_message_without_its_list_is_refused():
    marked = Ack.ARROW.with_metadata({"kind": "ack", "version": str(PROTOCOL_VERSION)})
    row = {"job": JOB, "step": "schema", "columns": None}
    data = repacked(written(marked, [pa.RecordBatch.from_pylist([row], schema=marked)]))
    with pytest.raises(WireError, match="lacks a field"):
        decode(data, Ack)
    marked = SplitQuery.ARROW.with_metadata(
        {"kind": "split query", "version": str(PROTOCOL_VERSION)}
    )
    row = {"job": JOB, "left_up_to": True, "columns": None}
    data = repacked(written(marked, [pa.RecordBatch.from_pylist([row], schema=marked)]))
    with pytest.raises(WireError, match="lacks a field"):
        decode(data, SplitQuery)


@pytest.mark.parametrize("note", ["kind", "version"])
def test_an_error_quotes_few_words_of_a_peer(note):
    notes = {"kind": "hello", "version": str(PROTOCOL_VERSION), note: "x" * 9000}
    row = {"party": "shop", "job_hash": bytes(32)}
    marked = Hello.ARROW.with_metadata(notes)
    data = repacked(written(marked, [pa.RecordBatch.from_pylist([row], schema=marked)]))
    with pytest.raises(WireError) as refused:
        decode(data, Hello)
    assert len(str(refused.value)) < 300


def test_an_error_shows_nothing_that_a_terminal_would_act_on():
    error = DataError("It has \x1b[31m,\n \u202e", detail="\x00", hint="\x07 Do.")
    assert str(error).isprintable()
    assert error.public.isprintable()
    assert str(op.errors.PeerError("\x1b]0;title\x07.")).isprintable()
    assert len(str(ConfigError("y" * 10**6))) <= 2000
    assert in_words(ValueError("two\nlines.")) == "two lines"


def test_a_number_with_too_many_digits_is_not_a_column():
    with pytest.raises(WireError, match=r"cannot be used.*\.$"):
        ColumnSchema("9" * 9000).column()


def test_a_damaged_columns_file_has_no_head(tmp_path):
    file = tmp_path / "a.arrow"
    file.write_bytes(b"\xff\xff\xff\xff\xb0\x01\x00\x00")
    with pytest.raises(WireError, match="cannot be read"):
        read_head(file)


def test_a_codebook_that_would_fill_the_memory_is_not_unpacked(tmp_path):
    """Half a megabyte stands for half a gigabyte; a grid of ten cells has ten values."""
    file = column_files(tmp_path)[0]
    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
        notes, rows = dict(stream.schema.metadata), list(stream)
        head = ColumnHead.from_schema(stream.schema)
    outline = Outline.unpacked(notes[b"opboost"])
    values = b"\x18" + zlib.compress(bytes(2**20))
    outline = outline._replace(symbols=2**26, rows=2**26, values=values)
    notes[b"opboost"] = outline.packed()
    bomb = head.to_schema().with_metadata(notes)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, bomb) as out:
        out.write_batch(rows[0])
    described = (ColumnSchema.of(columns()[0], "age", "raw"),)
    schema = Schema("shop", JOB, 2**26, bytes(32), "full", "raw", described, 0)
    announced = AnnouncedColumns.of(schema)
    with pytest.raises(WireError, match="more than its grid has cells"):
        check_column_file(file, announced, 0)
    with pytest.raises(PeerError, match="1 are announced"):
        check_column_file(file, announced, 5)


@pytest.mark.parametrize("data", [b"", bytes(40), bytes(39) + b"\x03\xff", bytes(39) + b"\x01\0"])
def test_damaged_common_rows_are_refused(data):
    with pytest.raises(DataError, match="damaged"):
        Common.from_bytes(data)


@pytest.mark.parametrize("data", [b"1234567", np.array([3, 1], "<i8").tobytes()])
def test_damaged_values_are_refused(tmp_path, data):
    (tmp_path / "a.values").write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        read_values(tmp_path / "a.arrow")


@pytest.mark.parametrize(
    "tail",
    [
        "[x]\ny = " + "[" * 2000,
        "[x]\ny = " + "9" * 5000,
        "[table]\ndrop = 1979-05-27",
        '[table]\ndrop = ["a\\u0000"]',
    ],
    ids=["deep", "digits", "date", "nul"],
)
def test_toml_that_the_reader_gives_up_on_is_a_configuration_error(tmp_path, tail):
    with pytest.raises(ConfigError):
        parse(PLAN + tail, "b.toml")
    (tmp_path / "job.toml").write_text('[job]\nname = "a"\n' + tail)
    with pytest.raises(ConfigError):
        load_job(tmp_path / "job.toml")


def test_a_constant_that_no_float_holds_is_a_configuration_error():
    for constant in (10**30, 10**400):
        with pytest.raises(ConfigError, match="public constant"):
            parse(PLAN + f"missing = {constant}\n", "b.toml")


def test_an_unknown_setting_of_a_job_file_lists_the_job_files_settings(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('[job]\nnam = "a"\nlabel_party = "b"\nfeature_parties = ["c"]\nname = "d"\n')
    with pytest.raises(ConfigError, match="Did you mean 'name'"):
        load_job(file)
    file.write_text("[grid]\nlower = 1\n")
    with pytest.raises(ConfigError, match="job"):
        load_job(file)


def test_a_path_with_a_zero_byte_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be the path of a file"):
        load_job(tmp_path / "job\0.toml")


def test_a_public_key_with_a_name_that_cannot_be_encoded_is_refused(tmp_path):
    new_kit("bank", tmp_path)
    plain = json.loads((tmp_path / "bank.public").read_bytes()) | {"party": "\ud800"}
    (tmp_path / "bank.public").write_text(json.dumps(plain))
    ca = (tmp_path / "ca" / "ca.pem").read_bytes()
    with pytest.raises(PeerError, match="not the public key"):
        read_public(tmp_path / "bank.public", "bank", ca)


def test_a_ledgers_key_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(b"\xff\xfe" * 32)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="64 hex digits"):
        KeyFile.read(file, tmp_path / "ledger", new=False)


def test_a_certificate_of_an_unknown_kind_is_a_configuration_error(tmp_path):
    kit = new_kit("bank", tmp_path)
    key = serialization.load_pem_private_key((kit / "key.pem").read_bytes(), None)
    der = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    curve = bytes.fromhex("06082a8648ce3d030107")
    assert curve in der
    (kit / "key.pem").write_bytes(pem_of("PRIVATE KEY", der.replace(curve, curve[:-1] + b"\x7f")))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_identity(kit_files(kit), "bank")


def test_a_certificate_of_an_unknown_version_is_refused(tmp_path):
    """A peer's receipt includes its certificate."""
    kit = new_kit("shop", tmp_path)
    ca, cert, key = ((kit / f"{part}.pem").read_bytes() for part in ("ca", "cert", "key"))
    receipt = Identity("shop", ca, cert, key).sign(JOB, 3, bytes(32))
    label, der = der_of(cert)
    other = der.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020106"))
    assert other != der
    with pytest.raises(PeerError, match="has no valid signature"):
        check_receipt(replace(receipt, certificate=pem_of(label, other)), "shop", ca)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfe,age\n1,2\n", "UTF-16"),
        (b"\xe9,age\n1,2\n", "not UTF-8"),
        (b"age,age\n1,2\n", "occurs twice"),
        (b"age\n1_000\n", "must hold numbers"),
        (b"age\n\x00\x1b,2\n", "binary file"),
    ],
    ids=["wide", "names", "twice", "underscore", "control"],
)
def test_a_file_that_is_not_csv_is_a_data_error(tmp_path, data, words):
    file = tmp_path / "a.csv"
    file.write_bytes(data)
    plan = parse(PLAN, "b.toml")
    with pytest.raises(DataError, match=words) as refused:
        read_table(file, plan.private)
    assert str(refused.value).isprintable()


def _parquet(path, array, names=("age",)):
    pq.write_table(pa.Table.from_arrays([array] * len(names), names=list(names)), path)


def test_parquet_types_that_cannot_be_categories_are_refused(tmp_path):
    file = tmp_path / "a.parquet"
    _parquet(file, pa.array([[1], [2]]))
    assert describe(file)[0].distinct is None
    plan = parse('[mechanism]\nepsilon = 1.0\n[columns.age]\ncategories = ["x", "y"]\n', "b.toml")
    with pytest.raises(DataError, match="cannot be categories"):
        desensitize(file, plan, tmp_path / "out.parquet")


def test_parquet_with_a_repeated_name_or_invalid_text_is_refused(tmp_path):
    file = tmp_path / "a.parquet"
    _parquet(file, pa.array([1, 2]), ("age", "age"))
    for use in (column_names, describe):
        with pytest.raises(DataError, match="occurs twice"):
            use(file)
    raw = pa.array([b"\xff\xff", b"ok"])
    _parquet(file, pa.Array.from_buffers(pa.string(), 2, raw.buffers()))
    with pytest.raises(DataError, match="damaged after row 0"):
        describe(file)


def _ledger(tmp_path, *statements):
    with Ledger(tmp_path / "ledger", tmp_path / "key") as ledger, ledger.writing():
        body = {"job": "j", "recipient": "bank", "people": "id", "columns": [], "caps": {}}
        ledger.append("reserve", body)
        about = {"job": "j", "recipient": "bank", "reservation": 1, "rows": 1}
        ledger.append("commit", {**about, "runs": [], "members": []})
    db = sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")
    for verb in ("UPDATE", "DELETE"):
        db.execute(f"DROP TRIGGER entries_{verb}")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def _looked_at(ledger):
    verify(ledger)
    summary(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET hash = 'text' WHERE number = 1",
        "UPDATE entries SET hash = -7 WHERE number = 0",
        "UPDATE entries SET body = '[]' WHERE number = 1",
        "UPDATE entries SET body = '{}' WHERE number = 2",
    ],
)
def test_a_damaged_ledger_is_refused_in_words(tmp_path, statement):
    _ledger(tmp_path, statement)
    with (
        pytest.raises(DataError, match="damaged"),
        Ledger(tmp_path / "ledger", tmp_path / "key") as ledger,
    ):
        _looked_at(ledger)


@pytest.mark.parametrize("runs", ["7", "[7]", '[{"file": "../x"}]', "[{}]"])
def test_a_commit_that_names_no_runs_is_refused(tmp_path, runs):
    _ledger(
        tmp_path,
        f"UPDATE entries SET body = json_set(body, '$.runs', json('{runs}')) WHERE number = 2",
    )
    with (
        pytest.raises(DataError, match="damaged"),
        Ledger(tmp_path / "ledger", tmp_path / "key") as ledger,
    ):
        summary(ledger)


def test_a_ledger_whose_pages_are_damaged_is_refused_in_words(tmp_path):
    _ledger(tmp_path)
    file = tmp_path / "ledger" / "ledger.sqlite"
    data = bytearray(file.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    file.write_bytes(data)
    with (
        pytest.raises(DataError, match="read"),
        Ledger(tmp_path / "ledger", tmp_path / "key") as ledger,
    ):
        summary(ledger)


def test_half_a_character_is_not_a_column():
    message = Schema("shop", JOB, 9, bytes(32), "full", "raw", (ColumnSchema("{}"),), 0)
    row = {f: getattr(message, f) for f in message.ARROW.names}
    row["columns"] = zlib.compress(b'["\\ud800"]')
    with pytest.raises(WireError, match="description must be text"):
        decode(pack_message(Schema.KIND, Schema.ARROW, row), Schema)


def test_dates_beyond_pythons_calendar_are_described(tmp_path):
    file = tmp_path / "dates.parquet"
    _parquet(file, pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32()))
    assert [c.kind for c in describe(file)] == ["date"]


def test_a_ledger_of_another_format_is_damaged_and_not_full(tmp_path):
    _ledger(tmp_path)
    file = tmp_path / "ledger" / "ledger.sqlite"
    data = bytearray(file.read_bytes())
    data[47] = 9  # the schema format number: https://www.sqlite.org/fileformat2.html
    file.write_bytes(data)
    with pytest.raises(DataError, match="Restore it from a backup"):
        _looked_at(Ledger(tmp_path / "ledger", tmp_path / "key"))


RECORD = {
    "job": JOB,
    **dict.fromkeys(("hash", "nonce", "ids"), "ab" * 32),
    **{"rows": 10, "label_party": "bank", "parties": ["shop"], "revoked": []},
    **{"receipts": True, "columns": 9, "run": 1},
}


@pytest.mark.parametrize(
    "change",
    [{"rows": "10"}, {"hash": "zz"}, {"parties": ["../x"]}, {"job": ".."}, {"run": None}],
    ids=str,
)
def test_a_damaged_job_record_is_refused_by_name(tmp_path, change):
    file = tmp_path / "job.json"
    file.write_bytes(atomic_files.with_checksum(json.dumps(RECORD).encode()))
    assert JobRecord.load(tmp_path).parties == ("shop",)
    file.write_bytes(atomic_files.with_checksum(json.dumps(RECORD | change).encode()))
    with pytest.raises(DataError, match=r"job\.json is damaged.*, or begin a new run \(--again\)"):
        JobRecord.load(tmp_path)
    file.write_text(json.dumps(RECORD)[:50])
    with pytest.raises(DataError, match=r"job\.json is damaged"):
        JobRecord.load(tmp_path)


def test_damaged_files_of_a_party_folder_are_refused_by_name(tmp_path):
    box = PartyFolder(tmp_path, "shop")
    record = JobRecord(**RECORD | {"parties": ("shop",), "revoked": (), "align": "psi"})
    for name, data in (
        ("points", b'{"tag": "00", "total": 0}'),
        ("points", b"["),
        ("expected", b'{"rows": 1, "ids": "zz"}'),
        ("due", b"many"),
    ):
        box.write(name, atomic_files.with_checksum(data))
        with pytest.raises(DataError, match=f"{name} is damaged.*, or begin a new run"):
            {"points": box.points, "due": box.due}.get(name, lambda: box.expected(record))()
    box.write("receipt", b"OPBOOST")
    with pytest.raises(DataError, match=r"receipt is damaged.*Without one, remove it"):
        newest_receipt(tmp_path.parent, "shop")
    (tmp_path / "manifest.json").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"manifest\.json is damaged.*, or begin a new run"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("chain", ["{}", '[{"number": 9, "sender": "bank", "digest": ""}]', "[1]"])
@pytest.mark.parametrize(
    ("own", "peer", "step"),
    [("bank", "shop", "or begin a new run"), ("shop", "bank", "or ask the label party to begin")],
)
def test_a_damaged_chain_of_bundles_is_refused_by_name(tmp_path, chain, own, peer, step):
    atomic_files.write_new(tmp_path / "bundles" / f"{peer}.json", chain.encode())
    talk = BundleChain(tmp_path, Pair(own, peer, "ab" * 32, JOB, "bank", STEPS))
    with pytest.raises(DataError, match=rf"{peer}\.json is damaged.*{step}"):
        talk.due()


def test_the_root_of_all_errors_is_printable_too():
    assert str(OpBoostError("a\x1b")) == "a\\x1b"
