"""Receipts: what recipients hold of a ledger's chain, against a ledger that was rolled back.

A head that is kept on the ledger's own disk rolls back with it.  A recipient's copy does not.
"""

from __future__ import annotations

from pathlib import Path

from opboost.errors import ConfigError
from opboost.wire.messages import Receipt, decode


def read_receipts(path: Path) -> list[tuple[int, bytes]]:
    """Entry numbers and hashes of a receipt's file, or of every one below a folder."""
    files = [path] if path.is_file() else sorted(f for f in path.rglob("receipt*") if f.is_file())
    if not files:
        raise ConfigError(f"There is no receipt in {path}.")
    found = [decode(file.read_bytes(), Receipt) for file in files]
    return [(r.entry, r.head) for r in found]
