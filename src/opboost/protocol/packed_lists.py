"""Lists inside messages, deflated because they are repetitive."""

from __future__ import annotations

import json
import zlib
from typing import Any

from opboost.errors import WireError
from opboost.protocol.envelope import MAX_MESSAGE_BYTES
from opboost.protocol.message_rules import check


def packed(items: list[Any]) -> bytes:
    """Return items of plain data as bytes.

    >>> unpacked(packed([[0, "grid", [1.5, 2.5]]]), most=1)
    [[0, 'grid', [1.5, 2.5]]]
    """
    text = json.dumps(items, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 9)


def is_text(words: str) -> bool:
    """Return whether a string can be encoded, unlike the lone surrogates that JSON allows.

    >>> is_text("größer"), is_text(json.loads('"\\\\ud800"'))
    (True, False)
    """
    return not any("\ud800" <= c <= "\udfff" for c in words)


def unpacked(data: bytes, most: int) -> list[Any]:
    """Return the items that a peer packed: at most ``most``, and at most one message's bytes."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(data, MAX_MESSAGE_BYTES)
        check(unpacker.eof and not unpacker.unused_data, "A packed list is too long or truncated.")
        items = json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        raise WireError("A packed list cannot be unpacked.") from None
    if not isinstance(items, list) or len(items) > most:
        raise WireError(f"A packed list may have at most {most:,} items.")
    return items
