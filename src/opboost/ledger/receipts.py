"""Receipts that recipients hold of a ledger's chain, which detect a ledger that was rolled back.

A note on the ledger's own disk is rolled back with the ledger.  A recipient's copy is not.
"""

from __future__ import annotations

from pathlib import Path

from opboost.errors import ConfigError
from opboost.protocol.messages import Receipt, decode_receipt


def read_receipts(path: Path, party: str) -> list[Receipt]:
    """Return a party's receipts from a file, or from a folder that may also hold other parties'."""
    files = [path] if path.is_file() else sorted(f for f in path.rglob("receipt*") if f.is_file())
    found = [decode_receipt(file.read_bytes()) for file in files]
    own = [receipt for receipt in found if receipt.party == party]
    if not own:
        raise ConfigError(f"There is no receipt of party {party!r} in {path}.")
    return own
