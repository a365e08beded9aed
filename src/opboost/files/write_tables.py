"""Write tables to files that appear only when they are complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from opboost.errors import DataError
from opboost.files.read_tables import kind_of
from opboost.storage import atomic_files


def check_new(target: Path, hint: str = "Give another name.") -> None:
    """Refuse a name that exists already, or whose folder does not exist."""
    if target.exists():
        raise DataError(f"{target} exists already", hint=hint)
    if not target.parent.is_dir():
        raise DataError(f"The folder {target.parent} does not exist", hint="Create it first.")


@contextmanager
def appearing(target: Path, *, folder: bool) -> Iterator[Path]:
    """Yield a name next to ``target`` to write to; it becomes ``target`` if nothing fails.

    Files are flushed to disk before they are renamed; an error leaves nothing behind.
    """
    check_new(
        target,
        "A second release of the same rows would reveal more about the same people. "
        "Send the one you have, or give another name.",
    )
    with atomic_files.placing(target, folder=folder, alone=True) as partial:
        yield partial


class TableWriter:
    """A writer that appends pieces of a table to a CSV or Parquet file, depending on ``name``."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._kind = path, kind_of(Path(name))
        self._stream: pa.NativeFile | None = None
        self._writer: pa.csv.CSVWriter | pa.parquet.ParquetWriter | None = None
        self._compress = name.endswith(".gz")

    def write(self, piece: pa.Table) -> None:
        """Append a piece, which must have the columns of the first."""
        try:
            if self._writer is None:
                self._writer = self._open(piece.schema)
            if self._kind == "csv":
                self._writer.write_table(piece)
            else:
                self._writer.write_table(piece, row_group_size=1_000_000)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"A column cannot be written as {self._kind}: {error}",
                hint="Drop it, or write Parquet.",
            ) from None

    def _open(self, schema: pa.Schema) -> pa.csv.CSVWriter | pa.parquet.ParquetWriter:
        if self._kind == "parquet":
            return pa.parquet.ParquetWriter(self._path, schema, compression="zstd")
        options = pa.csv.WriteOptions(quoting_style="needed")
        compression = "gzip" if self._compress else None
        self._stream = pa.output_stream(str(self._path), compression=compression)
        return pa.csv.CSVWriter(self._stream, schema, write_options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._stream is not None:
            self._stream.close()
