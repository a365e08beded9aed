"""Ledgers of version 0.1 (format 1), which the migration reads.

One SQLite file held everything: the chain of entries, ``charges`` (an amount and the people who
were charged) and ``noise`` (draws by cell).  For each line of the key file, a person's name was the
HMAC-SHA256 of the ID as spelt in the table: four words.  Charges stored the third word.  A cell was
the first two words, with the value folded into the first, encrypted with AES under a key of
attribute and mechanism.  Decrypting a cell yields the second word, but only the IDs say whose it
is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost._typing import Words
from opboost.errors import PrivacyError
from opboost.ledger import chain_witness
from opboost.ledger.chain import Chain, Entry
from opboost.ledger.key_file import Key, KeyFile
from opboost.ledger.packed_draws import Draws
from opboost.ledger.verify_ledger import LedgerFinding, check_chain, not_whole

_BLOCKS = {
    "charges": "reservation, key, attribute, amount, persons",
    "noise": "reservation, key, attribute, mechanism, width, cells, drawn",
}
"""The columns of each table, in the order in which a block's digest covers them."""


class Names(NamedTuple):
    """The names of some people in version 0.1 under one key: in cells, and in charges."""

    in_cells: Words
    in_charges: Words


def names_of(key: Key, ids: Sequence[bytes]) -> Names:
    """Return the names that version 0.1 gave people."""
    secret = key.derived("row id")
    digests = b"".join([hmac.digest(secret, i, "sha256") for i in ids])
    words = np.frombuffer(digests, dtype="<u8").reshape(-1, 4)
    return Names(words[:, 1].copy(), words[:, 2].copy())


def key_name(key: Key) -> str:
    """Return the name that version 0.1 gave a key."""
    return hashlib.sha256(b"opboost key name\n" + key.secret).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Block:
    """The header of a block of people: charges have an amount, noise has a mechanism.

    Noise without an attribute is a choice of columns; its ``mechanism`` names the plan.
    """

    number: int
    attribute: str
    amount: int = 0
    mechanism: str = ""
    width: int = 0

    @property
    def table(self) -> str:
        """The table that holds it."""
        return "noise" if self.mechanism else "charges"

    @property
    def is_choice(self) -> bool:
        """Whether it says which columns are sent for each person."""
        return not self.attribute


class Content(NamedTuple):
    """The people of a block, by their names under a key, and what was drawn for each."""

    key: str
    people: Words
    drawn: Draws


@dataclass(frozen=True, slots=True)
class Piece:
    """What one entry drew for some rows of a release, without what an abort cancelled.

    The draws of a ``stored`` piece are in a stored release; it has only charges.
    """

    reservation: int
    stored: bool
    blocks: tuple[Block, ...]


class Format1:
    """A reader for a ledger of version 0.1."""

    def __init__(self, folder: Path, keys: KeyFile) -> None:
        self.folder = folder
        self._chain = Chain(folder / "ledger.sqlite")
        self._keys = {key_name(key): key for key in keys.keys}

    def close(self) -> None:
        """Close the file."""
        self._chain.close()

    def __enter__(self) -> Format1:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def is_format_1(self) -> bool:
        """Return whether version 0.1 wrote the file."""
        return self._chain.has_table("noise")

    # The chain

    @property
    def keys(self) -> dict[str, Key]:
        """The keys by the names that version 0.1 gave them."""
        return self._keys

    def key_of(self, name: str) -> Key | None:
        """Return the key with a name."""
        return self._keys.get(name)

    def entries(self) -> Iterator[Entry]:
        """Return all entries from the first on."""
        return self._chain.entries()

    def open_reservations(self) -> list[Entry]:
        """Return the reservations that were neither committed nor aborted."""
        entries = list(self.entries())
        closed = {said(e)["reservation"] for e in entries if e.kind in ("commit", "abort")}
        return [e for e in entries if e.kind == "reserve" and e.number not in closed]

    def sound(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        return self._chain.sound()

    def check(self) -> None:
        """Refuse a damaged ledger: entries, blocks, or the end of the chain."""
        before = chain_witness.noted(self.folder / chain_witness.FOLDER_NOTE)
        if before is not None:
            entry = self._chain.entry(before.number)
            if entry is None or entry.hash != before.hash:
                raise chain_witness.shorter(self.folder, before)
        for name in self._chain.key_names():
            if name not in self._keys:
                raise PrivacyError(
                    f"The ledger in {self.folder} was written under key {name}, which the key file "
                    "does not hold. Restore that line of the key file."
                )
        check_chain(self)
        self._check_blocks()

    def _check_blocks(self) -> None:
        listed = {
            (table, number): digest
            for entry in self.entries()
            if entry.kind == "draw"
            for table, number, digest in _blocks(said(entry))
        }
        for table, columns in _BLOCKS.items():
            for number, *row in self._chain.read(f"SELECT id, {columns} FROM {table}"):
                if listed.pop((table, number), None) != _digest(row):
                    words = f"block {number} of {table} was changed, or belongs to no entry"
                    raise not_whole(self.folder, LedgerFinding(None, words))
        for table, number in listed:
            words = f"block {number} of {table} is missing"
            raise not_whole(self.folder, LedgerFinding(None, words))

    # Its content

    def pieces(self) -> list[Piece]:
        """Return everything that was drawn and counts as spent, in order."""
        entries = list(self.entries())
        taken_back = [said(e) for e in entries if e.kind == "abort"]
        there = self._headers()
        found = []
        for body in (said(e) for e in entries if e.kind == "draw"):
            blocks = tuple(
                there[table, number]
                for table, number, _ in _blocks(body)
                if not any(a[table][0] < number <= a[table][1] for a in taken_back)
            )
            if blocks:
                found.append(Piece(body["reservation"], "part" in body, blocks))
        return found

    def _headers(self) -> dict[tuple[str, int], Block]:
        charges = self._chain.read("SELECT id, attribute, amount FROM charges")
        noise = self._chain.read("SELECT id, attribute, mechanism, width FROM noise")
        blocks = [Block(number, attribute, amount=amount) for number, attribute, amount in charges]
        blocks += [Block(n, a, mechanism=mechanism, width=w) for n, a, mechanism, w in noise]
        return {(block.table, block.number): block for block in blocks}

    def content(self, block: Block) -> Content:
        """Return the people of a block, and their draws."""
        columns = "cells, drawn" if block.mechanism else "persons, x''"
        statement = f"SELECT key, {columns} FROM {block.table} WHERE id = ?"
        ((key, people, drawn),) = self._chain.read(statement, block.number)
        if not block.mechanism:
            return Content(key, np.frombuffer(people, dtype="<u8"), np.empty((0, 0), np.uint8))
        names = _people_of_cells(self._keys[key], block.attribute, block.mechanism, people)
        return Content(key, names, np.frombuffer(drawn, np.uint8).reshape(-1, block.width))


def said(entry: Entry) -> dict[str, Any]:
    """Return the content of an entry of a verified chain."""
    found: dict[str, Any] = json.loads(entry.text)
    return found


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Yield the blocks that a draw names: table, number and digest."""
    for block in body["blocks"]:
        table, name = ("charges", "charge") if "charge" in block else ("noise", "noise")
        yield table, block[name], block["sha256"]


def _people_of_cells(key: Key, attribute: str, mechanism: str, cells: bytes) -> Words:
    secret = key.derived("cell", attribute, mechanism)
    plain = Cipher(algorithms.AES256(secret), modes.ECB()).decryptor().update(cells)
    return np.frombuffer(plain, dtype="<u8").reshape(-1, 2)[:, 1].copy()


def _digest(values: Sequence[Any]) -> str:
    whole = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode()
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()
