"""Row keys: ID columns under a declared normalisation, the same at every party."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opboost.errors import DataError
from opboost.ids import id_bytes

Digests = np.ndarray[Any, np.dtype[np.uint8]]
"""One row of 32 bytes a key."""

_DOMAIN = b"opboost row key 1\0"


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What two spellings of an ID may differ in; by default nothing.

    >>> Normalisation(trim=True, case="lower", unicode="NFKC").text("  Ａb-７ ")
    'ab-7'
    """

    trim: bool = False
    case: Literal["keep", "lower", "upper"] = "keep"
    unicode: Literal["none", "NFC", "NFKC"] = "none"

    def text(self, value: str) -> str:
        """The normal form of a text; that of a normal form is itself."""
        value = self._composed(value)
        if self.case == "lower":
            value = self._composed(value.lower())
        elif self.case == "upper":
            value = self._composed(value.upper())
        return value.strip() if self.trim else value

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        """A column of IDs in normal form; what is no text stays as it is."""
        if self == Normalisation():
            return values
        return [self.text(v) if isinstance(v, str) else v for v in values]

    def _composed(self, value: str) -> str:
        return value if self.unicode == "none" else unicodedata.normalize(self.unicode, value)


def row_keys(
    columns: Sequence[Sequence[Any]], names: Sequence[str], rule: Normalisation
) -> list[bytes]:
    """Each row's key: its IDs in normal form, parts kept apart."""
    return id_bytes([rule.column(c) for c in columns], names)


def key_digests(keys: Iterable[bytes]) -> Digests:
    """SHA-256 of each key: what is blinded, and by what common rows are put in order."""
    whole = b"".join(hashlib.sha256(_DOMAIN + key).digest() for key in keys)
    return np.frombuffer(whole, dtype=np.uint8).reshape(-1, 32)


def refuse_repeats(digests: Digests) -> None:
    """Refuse keys that stand more than once, with counts and without the keys."""
    _, times = np.unique(np.ascontiguousarray(digests).view("S32"), return_counts=True)
    keys, rows = int((times > 1).sum()), int(times[times > 1].sum())
    if keys:
        raise DataError(
            f"{keys:,} {'ID stands' if keys == 1 else 'IDs stand'} more than once, in {rows:,} "
            "rows, as IDs are normalised in this job",
            hint="An ID stands for one person: keep one row of each.",
        )
