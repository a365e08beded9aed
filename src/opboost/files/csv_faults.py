"""Errors about files that should be CSV, as sentences that show none of their values."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pyarrow as pa

from opboost.config.csv_format import CsvFormat
from opboost.errors import DataError
from opboost.sources.s3_table import S3File

_HEAD_BYTES = 1 << 16
_OTHER_SEPARATORS = {";": "';'", "\t": "'tab'", "|": "'|'"}
_MAGIC = (
    (b"PAR1", "is a Parquet file", "Name it .parquet."),
    (b"PK\x03\x04", "is an Excel or ZIP file, not CSV text", "Save the sheet as CSV first."),
    (b"\xd0\xcf\x11\xe0", "is an Excel file, not CSV text", "Save the sheet as CSV first."),
    (b"\x1f\x8b", "is compressed by gzip", "Name it .csv.gz."),
    (b"ARROW1", "is an Arrow file", "Save it as Parquet or CSV first."),
)
_WIDTH = re.compile(r"Expected (\d+) columns, got (\d+)")


def look(path: Path | S3File, form: CsvFormat) -> None:
    """Refuse a file whose first bytes are not CSV text in this format, and guess what it is."""
    with _stream(path) as stream:
        head = stream.read(_HEAD_BYTES)
    if not head:
        raise DataError(f"{path.name} is empty")
    for magic, what, hint in _MAGIC:
        if head.startswith(magic):
            raise DataError(f"{path.name} {what}", hint=hint)
    if form.is_utf8 and (wide := _utf16(head)):
        raise DataError(
            f"{path.name} looks like UTF-16 text",
            hint=f'Set encoding = "{wide}" under [data], or --encoding {wide}.',
        )
    if b"\0" in head and not form.encoding.lower().replace("_", "-").startswith(
        ("utf-16", "utf-32")
    ):
        raise DataError(
            f"{path.name} is a binary file, not CSV text", hint="Give a CSV or Parquet file."
        )
    line = head.decode(form.encoding, errors="ignore").lstrip("\r\n").split("\n", 1)[0]
    if form.separator is None and "," not in line:
        guess = max(_OTHER_SEPARATORS, key=line.count)
        if guess in line:
            mark = _OTHER_SEPARATORS[guess]
            raise DataError(
                f"{path.name} looks as if it is separated by {mark}",
                hint=f"Set separator = {mark} under [data], or --separator {mark}.",
            )


def _utf16(head: bytes) -> str:
    """Return the encoding of text with two bytes per character, or an empty string."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) < max(2, len(head) // 4) or min(even, odd) > len(head) // 50:
        return ""
    try:
        text = head[: len(head) // 2 * 2].decode(wide := "utf-16-le" if odd > even else "utf-16-be")
    except UnicodeDecodeError:
        return ""
    return wide if text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else ""


def fault(path: Path | S3File, error: Exception, form: CsvFormat) -> DataError:
    """Return the error for a file that pyarrow could not read."""
    if "Empty CSV file" in str(error):
        return DataError(f"{path.name} has no header line")
    if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
        if form.is_utf8:
            hint = 'Set encoding = "cp1252" (or another) under [data], or --encoding cp1252.'
            return DataError(f"{path.name} is not UTF-8 text", hint=hint)
        return DataError(
            f"{path.name} is not {form.encoding} text", hint="Set the encoding that it has."
        )
    if isinstance(error, LookupError):
        return DataError(f"{path.name} cannot be read with encoding {form.encoding!r}")
    if _WIDTH.search(str(error)) and (line := _ragged_line(path, form)):
        number, found, wanted = line
        return DataError(
            f"Line {number} of {path.name} has {found} fields, but its header has {wanted}",
            hint="Correct the line, or put quotes around a field that contains the separator.",
        )
    return DataError(f"{path.name} is not a readable CSV table")


def _ragged_line(path: Path | S3File, form: CsvFormat) -> tuple[int, int, int] | None:
    """Return the first line whose number of fields differs from the header's, or None."""
    try:
        with (
            _stream(path) as stream,
            io.TextIOWrapper(stream, form.encoding, newline="") as text,
        ):
            rows = csv.reader(text, delimiter=form.delimiter)
            wanted, begins = 0, 1
            for row in rows:
                if row and not wanted:
                    wanted = len(row)
                if row and len(row) != wanted:
                    return begins, len(row), wanted
                begins = rows.line_num + 1
    except (csv.Error, OSError, ValueError):
        return None
    return None


def _stream(path: Path | S3File) -> pa.NativeFile:
    if isinstance(path, S3File):
        return path.stream()
    return pa.input_stream(str(path), compression="detect")
