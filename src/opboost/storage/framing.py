"""Join lists of byte strings into one byte string, each part after its length."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


def framed(parts: Iterable[bytes]) -> bytes:
    """Return the parts joined, each after its length: no two lists give the same bytes."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def framed_array(parts: pa.LargeBinaryArray) -> bytes:
    """Return what :func:`framed` returns, for an Arrow array.

    >>> parts = [b"7", b"", b"eighty"]
    >>> framed_array(pa.array(parts, pa.large_binary())) == framed(parts)
    True
    """
    _, offsets, data = parts.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[parts.offset : parts.offset + len(parts) + 1]
    sizes = np.diff(places)
    starts = places[:-1] - places[0] + 4 * np.arange(len(parts))
    out = np.empty(int(sizes.sum()) + 4 * len(parts), dtype=np.uint8)
    is_text = np.ones(len(out), dtype=np.bool_)
    for k, shift in enumerate((24, 16, 8, 0)):
        out[starts + k] = (sizes >> shift) & 0xFF
        is_text[starts + k] = False
    out[is_text] = np.frombuffer(data or b"", dtype=np.uint8)[places[0] : places[-1]]
    return out.tobytes()
