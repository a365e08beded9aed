"""A table in pieces of bounded size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from opboost.errors import ColumnError, DataError

CELLS = 2_000_000
"""Cells in one piece, so that wide tables come in shorter pieces."""

BLOCK_BYTES = 1024 * 1024
"""Bytes of a CSV file that are parsed at a time."""

_SUFFIXES = (".csv", ".csv.gz", ".parquet")


def table_files(path: Path) -> list[Path]:
    """The files of a table: the file itself, or those of a folder in the order of their names."""
    if path.is_file():
        kind_of(path)
        return [path]
    if not path.is_dir():
        raise DataError(f"{path} does not exist", hint="Give a CSV or Parquet file, or a folder.")
    files = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES) and p.is_file())
    if not files:
        raise DataError(f"The folder {path} holds no CSV or Parquet file")
    return files


def kind_of(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the name."""
    if path.name.endswith((".csv", ".csv.gz")):
        return "csv"
    if path.suffix == ".parquet":
        return "parquet"
    raise DataError(
        f"{path.name} is neither CSV nor Parquet by its name",
        hint="Name it .csv, .csv.gz or .parquet.",
    )


def column_names(path: Path) -> list[str]:
    """The names in a file's header."""
    if kind_of(path) == "parquet":
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    with closing(_csv_reader(path, {})) as reader:
        names = list(reader.schema.names)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"Column {twice!r} stands twice in {path.name}", hint="Rename one.")
    return names


def pieces(
    path: Path,
    types: Mapping[str, pa.DataType] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[pa.Table]:
    """The rows of a file, a piece at a time.

    ``types`` are the types of a CSV file's columns (Parquet has its own); all others are text.
    ``progress`` is told how many bytes of the file have been used up.
    """
    if kind_of(path) == "parquet":
        yield from _parquet_pieces(path, progress)
    else:
        yield from _csv_pieces(path, types or {}, progress)


def _parquet(path: Path) -> pa.parquet.ParquetFile:
    try:
        return pa.parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path.name} is not a Parquet file that can be read: {error}") from None


def _parquet_pieces(path: Path, progress: Callable[[int], None] | None) -> Iterator[pa.Table]:
    with _parquet(path) as file:
        rows = max(1024, CELLS // max(1, len(file.schema_arrow.names)))
        size, total, done = path.stat().st_size, max(1, file.metadata.num_rows), 0
        try:
            for batch in file.iter_batches(batch_size=rows):
                yield pa.Table.from_batches([batch])
                done += batch.num_rows
                if progress:
                    progress(size * done // total)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{path.name} is damaged after row {done}: {error}") from None


def _csv_reader(path: Path, types: Mapping[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
    try:
        header = _header(path)
        kinds = {name: types.get(name, pa.string()) for name in header}
        return pa.csv.open_csv(
            path,
            read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=True),
            convert_options=pa.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        raise _csv_error(path, [], 0, error) from None


def _header(path: Path) -> list[str]:
    first = pa.csv.open_csv(path, read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES))
    with closing(first):
        return list(first.schema.names)


def _csv_pieces(
    path: Path, types: Mapping[str, pa.DataType], progress: Callable[[int], None] | None
) -> Iterator[pa.Table]:
    names: list[str] = []
    done, used, size = 0, 0, path.stat().st_size
    try:
        with closing(_csv_reader(path, types)) as reader:
            names = list(reader.schema.names)
            for batch in reader:
                yield pa.Table.from_batches([batch])
                done += batch.num_rows
                used = min(size, used + BLOCK_BYTES)
                if progress:
                    progress(used)
    except pa.ArrowInvalid as error:
        raise _csv_error(path, names, done, error) from None


_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to \S+: invalid value '(.*)'",
    re.DOTALL,
)


def _csv_error(path: Path, names: list[str], done: int, error: pa.ArrowInvalid) -> DataError:
    found = _CONVERSION.search(str(error))
    if found:
        column = (names or _header(path))[int(found.group(1))]
        row = _row_of(path, column, found.group(2), done)
        return ColumnError(
            column,
            f"of {path.name} must hold numbers",
            detail=f"row {row} holds {found.group(2)!r}",
            hint="Convert it, or declare its categories instead of bounds.",
        )
    if "Empty CSV file" in str(error):
        return DataError(f"{path.name} is empty")
    return DataError(f"{path.name} is not a CSV table that can be read: {error}")


def _row_of(path: Path, column: str, value: str, done: int) -> int:
    """The first row from ``done`` on that holds this text."""
    row = 0
    for piece in _csv_pieces(path, {}, None):
        if row + piece.num_rows > done:
            found = pc.index(piece.column(column), value, start=max(0, done - row)).as_py()
            if found >= 0:
                return row + int(found)
        row += piece.num_rows
    return done
