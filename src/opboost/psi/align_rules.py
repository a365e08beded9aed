"""A party's rules for the alignment of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from opboost.errors import ParameterError, PrivacyError
from opboost.psi.row_keys import Normalisation

RowChoice = Literal["common", "mine"]
"""Which rows a model learns from: those that all parties have, or all of the label party's."""


def checked_rows(rows: str) -> RowChoice:
    """Return the choice of rows; refuse anything else.

    >>> checked_rows("mine")
    'mine'
    """
    if rows == "common":
        return "common"
    if rows == "mine":
        return "mine"
    raise ParameterError(f"rows is 'common' or 'mine'; got {rows!r}.")


@dataclass(frozen=True, slots=True)
class AlignRules:
    """How IDs are normalised, and the limits of one party.

    Args:
        normalisation: How two spellings of an ID may differ; the same at every party.
        minimum_rows: With fewer common rows than this, nothing is released.
        most_rows: The largest set, this party's or a peer's, that may take part.
        repeats: How many jobs the same label party may align with a feature party's ledger.
    """

    normalisation: Normalisation = field(default_factory=Normalisation)
    minimum_rows: int = 100
    most_rows: int = 5_000_000
    repeats: int = 20

    def __post_init__(self) -> None:
        for name in ("minimum_rows", "most_rows", "repeats"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} is 1 or more; got {getattr(self, name)}.")

    @classmethod
    def of(cls, align: AlignRules | Literal["psi", "given"]) -> AlignRules | None:
        """Return the rules that ``align`` stands for; None if rows are given."""
        if isinstance(align, AlignRules):
            return align
        if align not in ("psi", "given"):
            raise ParameterError(f"align is 'psi', 'given' or op.AlignRules; got {align!r}.")
        return cls() if align == "psi" else None

    def check_common(self, count: int, who: str = "The parties") -> None:
        """Refuse an intersection that is too small to hide in."""
        if count < self.minimum_rows:
            raise PrivacyError(
                f"{who} have {count:,} rows in common; with fewer than "
                f"{self.minimum_rows:,} nothing is released. Check that IDs are spelt alike "
                "([align] of the job file), or lower minimum_rows under [align]."
            )

    def check_own(self, rows: int) -> None:
        """Refuse a table with more rows than this party is willing to send points for."""
        if rows > self.most_rows:
            raise PrivacyError(
                f"The table has {rows:,} rows, and no more than {self.most_rows:,} may be aligned. "
                "Raise most_rows under [align] to accept more."
            )

    def check_theirs(self, rows: int) -> None:
        """Refuse a peer with more rows than it may use as guesses."""
        if rows > self.most_rows:
            raise PrivacyError(
                f"The other party has {rows:,} rows, and each may be a guess; no more than "
                f"{self.most_rows:,} are accepted. Raise most_rows under [align] to accept more."
            )
