"""Read a table in pieces of bounded size, from files, an S3 store or a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from glob import glob
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from opboost.columns.private_column import PrivateColumn
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.errors import ColumnError, DataError, in_words
from opboost.files.csv_faults import fault, look
from opboost.grid import NumericMapping, OrdinalMapping
from opboost.sources.database_table import DatabaseTable
from opboost.sources.s3_table import S3File, S3Table
from opboost.sources.s3_table import fault as store_fault
from opboost.sources.table_address import TableAddress, TableFile

PIECE_CELLS = 2_000_000
"""The most cells in one piece, so that wide tables are read in shorter pieces."""

BLOCK_BYTES = 1024 * 1024
"""The number of bytes of a CSV file that are parsed at a time."""

_SUFFIXES = (".csv", ".csv.gz", ".parquet")
_UNREADABLE = (pa.ArrowException, OSError, UnicodeError)
"""What pyarrow raises for a damaged file."""


def table_files(table: TableAddress) -> Sequence[TableFile]:
    """Return the files of a table: one, those of a folder, or those of a pattern like 2024-*.csv.

    Files of a folder or pattern are sorted by name.  A database table counts as one file; an S3
    store has files and folders.
    """
    if isinstance(table, DatabaseTable):
        return [table]
    if isinstance(table, S3Table):
        found = table.files()
        for file in found:
            kind_of(file)
        return found
    return local_files(table)


def is_single(table: TableAddress) -> bool:
    """Return whether a table is one file or one database table, not a folder or pattern."""
    if isinstance(table, Path):
        return table.is_file()
    return isinstance(table, DatabaseTable) or table.is_single()


def local_files(path: Path) -> list[Path]:
    """Return the files of a local table: one, those of a folder, or those of a pattern."""
    if path.is_file():
        kind_of(path)
        return [path]
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES) and p.is_file())
        if not files:
            raise DataError(f"The folder {path} holds no CSV or Parquet file")
        return files
    if not any(mark in str(path) for mark in "*?["):
        raise DataError(f"{path} does not exist", hint="Give a CSV or Parquet file, or a folder.")
    files = [Path(name) for name in sorted(glob(str(path), recursive=True))]
    files = [f for f in files if f.name.endswith(_SUFFIXES) and f.is_file()]
    if not files:
        raise DataError(f"No CSV or Parquet file matches {path}", hint="Correct the pattern.")
    return files


Fingerprint = list[tuple[str, int, int | str]]
"""What reveals a change of a table's files."""


def fingerprint(files: Sequence[TableFile]) -> Fingerprint:
    """Return names and sizes with modification times, ETags (a store) or digests (a database)."""
    return [
        (str(f), f.stat().st_size, f.stat().st_mtime_ns) if isinstance(f, Path) else f.fingerprint()
        for f in files
    ]


def size_of(file: TableFile) -> int:
    """Return what progress counts up to: a file's bytes, or a database table's rows once known."""
    if isinstance(file, Path):
        return file.stat().st_size
    return file.rows if isinstance(file, DatabaseTable) else file.size


def kind_of(path: TableFile) -> str:
    """Return ``"csv"`` or ``"parquet"``, by the name, or ``"database"``."""
    if isinstance(path, DatabaseTable):
        return "database"
    if path.name.endswith((".csv", ".csv.gz")):
        return "csv"
    if path.name.endswith(".parquet"):
        return "parquet"
    raise DataError(
        f"{path.name} is neither CSV nor Parquet by its name",
        hint="Name it .csv, .csv.gz or .parquet.",
    )


def column_names(path: TableFile, form: CsvFormat = PLAIN_CSV) -> list[str]:
    """Return the names in a file's header; ``form`` is the format of CSV files."""
    if isinstance(path, DatabaseTable):
        return path.column_names()
    if kind_of(path) == "parquet":
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    return _header(path, form)


def pieces(
    path: TableFile,
    types: Mapping[str, pa.DataType] | None = None,
    progress: Callable[[int], None] | None = None,
    width: int = 0,
    groups: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    form: CsvFormat = PLAIN_CSV,
) -> Iterator[pa.Table]:
    """Yield the rows of a file, one piece at a time.

    ``types`` are the types of some columns of a CSV file; its other columns are text.  ``progress``
    is called with the bytes of the file, or rows of a database, that were read so far.  ``width``
    is how many columns a piece will become: more columns give shorter pieces.  ``groups`` are the
    wanted row groups of a Parquet file, ``columns`` the wanted columns.  ``form`` is the format of
    CSV files.
    """
    if isinstance(path, DatabaseTable):
        whole = _database_pieces(path, progress, columns)
    elif kind_of(path) == "parquet":
        whole = _parquet_pieces(path, progress, width, groups, columns)
    else:
        whole = _csv_pieces(path, types or {}, progress, form)
    for found in whole:
        piece = found if columns is None else found.select(list(columns))
        rows = max(1024, PIECE_CELLS // max(1, width, piece.num_columns))
        for start in range(0, piece.num_rows, rows):
            yield piece.slice(start, rows)
    if isinstance(path, S3File):
        path.check()


def _database_pieces(
    table: DatabaseTable, progress: Callable[[int], None] | None, columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    done = 0
    for piece in table.pieces(columns):
        yield piece
        done += piece.num_rows
        if progress:
            progress(done)


def _store_fault(path: Path | S3File, error: Exception) -> DataError | None:
    """Return the error if the store failed; None if the file itself is bad."""
    if isinstance(path, S3File) and "AWS Error" in str(error):
        return store_fault(path.uri, path.key, error)
    return None


def _parquet(path: Path | S3File) -> pa.parquet.ParquetFile:
    opened = path.open() if isinstance(path, S3File) else path
    try:
        file = pa.parquet.ParquetFile(opened, buffer_size=1 << 20, pre_buffer=False)
        names = list(file.schema_arrow.names)
    except _UNREADABLE as error:
        raise _store_fault(path, error) or DataError(
            f"{path.name} is not a readable Parquet file: {in_words(error)}"
        ) from None
    _refuse_twice(names, path)
    return file


def _parquet_pieces(
    path: Path | S3File,
    progress: Callable[[int], None] | None,
    width: int,
    groups: Sequence[int] | None,
    columns: Sequence[str] | None,
) -> Iterator[pa.Table]:
    with _parquet(path) as file:
        names = list(file.schema_arrow.names) if columns is None else list(columns)
        rows = max(1024, PIECE_CELLS // max(1, width, len(names)))
        size, total, done = size_of(path), max(1, file.metadata.num_rows), 0
        try:
            for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=names):
                batch.validate(full=True)  # text in Parquet may be invalid
                yield pa.Table.from_batches([batch])
                done += batch.num_rows
                if progress:
                    progress(size * done // total)
        except _UNREADABLE as error:
            raise _store_fault(path, error) or DataError(
                f"{path.name} is damaged after row {done}: {in_words(error)}"
            ) from None


def groups(path: Path | S3File) -> list[int]:
    """Return the number of rows in each row group of a Parquet file."""
    with _parquet(path) as file:
        return [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]


def _csv_reader(path: Path | S3File, form: CsvFormat) -> pa.csv.CSVStreamingReader:
    """Return a reader of all columns as text; missing values and numbers are recognised later."""
    try:
        return pa.csv.open_csv(
            path.stream() if isinstance(path, S3File) else path,
            read_options=_read_options(form),
            parse_options=_parse_options(form),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(_header(path, form), pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except _UNREADABLE as error:
        raise _store_fault(path, error) or fault(path, error, form) from None


def _read_options(form: CsvFormat) -> pa.csv.ReadOptions:
    encoding = "utf8" if form.is_utf8 else form.encoding
    return pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=True, encoding=encoding)


def _parse_options(form: CsvFormat) -> pa.csv.ParseOptions:
    return pa.csv.ParseOptions(newlines_in_values=True, delimiter=form.delimiter)


def _header(path: Path | S3File, form: CsvFormat) -> list[str]:
    try:
        look(path, form)
        first = pa.csv.open_csv(
            path.stream() if isinstance(path, S3File) else path,
            read_options=_read_options(form),
            parse_options=_parse_options(form),
        )
        with closing(first):
            names = list(first.schema.names)
    except _UNREADABLE as error:
        raise _store_fault(path, error) or fault(path, error, form) from None
    _refuse_twice(names, path)
    return names


def _refuse_twice(names: list[str], path: Path | S3File) -> None:
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"Column {twice!r} occurs twice in {path.name}", hint="Rename one.")


def _csv_pieces(
    path: Path | S3File,
    types: Mapping[str, pa.DataType],
    progress: Callable[[int], None] | None,
    form: CsvFormat,
) -> Iterator[pa.Table]:
    done, used, size = 0, 0, size_of(path)
    try:
        with closing(_csv_reader(path, form)) as reader:
            for batch in reader:
                yield _typed(pa.Table.from_batches([batch]), types, path.name, done, form)
                done += batch.num_rows
                used = min(size, used + BLOCK_BYTES)
                if progress:
                    progress(used)
    except _UNREADABLE as error:
        raise _store_fault(path, error) or fault(path, error, form) from None


_NOT_A_NUMBER = pa.array(["NA", "N/A", "#N/A", "NULL", "null", "None", "NaN", "nan", "-nan"])


def _typed(
    piece: pa.Table, types: Mapping[str, pa.DataType], file: str, first_row: int, form: CsvFormat
) -> pa.Table:
    """Return the piece with its declared columns as numbers or truth values.

    In columns of numbers, the usual words for missing values count as missing.  A column of
    whole-number or true/false categories with a value that cannot be converted stays text, so that
    the column itself reports an undeclared category.
    """
    for name, kind in types.items():
        if name not in piece.column_names or kind == pa.string():
            continue
        index = piece.column_names.index(name)
        written = piece.column(index)
        text = with_points(written, form) if kind == pa.float64() else written
        try:
            typed = text.cast(kind)
        except pa.ArrowInvalid:
            missing = pc.is_in(text, value_set=_NOT_A_NUMBER)
            try:
                typed = pc.if_else(missing, pa.scalar(None, pa.string()), text).cast(kind)
            except pa.ArrowInvalid:
                if kind != pa.float64():
                    continue
                raise _not_a_number(name, text, written, file, first_row, form) from None
        piece = piece.set_column(index, name, typed)
    return piece


def with_points(text: pa.ChunkedArray, form: CsvFormat) -> pa.ChunkedArray:
    """Return numbers as text with decimal points; where commas are decimal, a point becomes ``#``.

    >>> with_points(pa.chunked_array([["1,5", "1.500"]]), CsvFormat(decimal=",")).to_pylist()
    ['1.5', '1#500']
    """
    if form.decimal == ".":
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", "#"), ",", ".")


def _not_a_number(
    name: str,
    text: pa.ChunkedArray,
    written: pa.ChunkedArray,
    file: str,
    first_row: int,
    form: CsvFormat,
) -> ColumnError:
    bad = next(i for i, value in enumerate(text.to_pylist()) if not _reads_as_number(value))
    shown = str(written[bad].as_py())
    hint = "Convert it, or declare its categories instead of bounds."
    if form.decimal == "." and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", shown):
        hint = "It looks like a decimal comma: set decimal = ',' under [data], or --decimal ,"
    elif form.decimal == "," and "." in shown:
        hint = "decimal is ',', so no number has a point: remove it, or set decimal = '.'."
    return ColumnError(
        name,
        f"of {file} must hold numbers",
        detail=f"row {first_row + bad} holds {shown!r}",
        hint=hint,
        row=first_row + bad,
    )


def _reads_as_number(text: str | None) -> bool:
    if text is None or text in _NOT_A_NUMBER.to_pylist():
        return True
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def csv_types(private: Iterable[PrivateColumn]) -> dict[str, pa.DataType]:
    """Return the types in which to read a CSV file's private columns."""
    types: dict[str, pa.DataType] = {}
    for column in private:
        if isinstance(column.mapping, NumericMapping):
            dated = column.mapping.unit is not None
            types[str(column.name)] = pa.string() if dated else pa.float64()
            continue
        if isinstance(column.mapping, OrdinalMapping):
            categories = column.mapping.order.categories
        else:
            categories = column.mechanism.categories  # type: ignore[union-attr]
        kinds = {type(c) for c in categories if c is not None}
        types[str(column.name)] = {
            frozenset({int}): pa.int64(),
            frozenset({float}): pa.float64(),
            frozenset({int, float}): pa.float64(),
            frozenset({bool}): pa.bool_(),
        }.get(frozenset(kinds), pa.string())
    return types
