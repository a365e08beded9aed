"""The score of a model on rows that it did not learn from, in figures and in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opboost.config.sections import MAX_HELD_OUT
from opboost.errors import ParameterError

PRIVATE_COLUMNS = "the private columns"
"""The name of the released columns in the printed line if no party is named."""


def checked_share(share: float) -> float:
    """Check and return the share of rows to hold out; 0 switches the score off."""
    number = isinstance(share, int | float) and not isinstance(share, bool)
    if not number or not 0 <= share <= MAX_HELD_OUT:
        raise ParameterError(
            f"held_out must be a share of the rows between 0 (no score) and {MAX_HELD_OUT}; "
            f"got {share!r}. Write 0.2 to hold out a fifth."
        )
    return float(share)


@dataclass(frozen=True, slots=True)
class Figures:
    """The score of own columns together with released ones.

    Attributes:
        released: Measured on released held-out rows, predicted as the model predicts released rows.
        clear: Estimated for rows whose released columns are known without noise; None if the model
            was trained on noisy rows, or has rounds that read only own columns.
        clear_error: The standard error of that estimate.
    """

    released: float
    clear: float | None = None
    clear_error: float | None = None

    def __str__(self) -> str:
        if self.clear is None or f"{self.clear:.3f}" == f"{self.released:.3f}":
            return f"{self.released:.3f}"
        return (
            f"{self.released:.3f} on released rows, {self.clear:.3f} ± {self.clear_error or 0:.3f} "
            "(estimate) on rows known in the clear"
        )


@dataclass(frozen=True, slots=True)
class HeldOutScore:
    """The scores of own columns without, and with, the columns of other parties.

    Attributes:
        metric: ``"AUC"``, ``"accuracy"`` or ``"R²"``.
        rows: How many held-out rows were scored.
        held_out: The share of rows that training was asked to hold out.
        own: The score with only own columns; if there are none, that of a constant prediction.
        has_own: Whether there are own columns.
        whole: The score of all columns.
        parties: If there are several, the score of own columns with those of each party.
        names: The parties, in their order; empty on one machine.
        unscored: Why there is no figure; empty if there is one.
    """

    metric: str
    rows: int
    held_out: float
    own: float | None = None
    has_own: bool = True
    whole: Figures | None = None
    parties: dict[str, Figures] | None = None
    names: tuple[str, ...] = ()
    unscored: str = ""

    def line(self, label_party: str = "own columns", total: float | None = None) -> str:
        """Return the line that training prints.

        >>> score = HeldOutScore("AUC", 400, 0.2, 0.8321, True, Figures(0.8757), names=("shop",))
        >>> score.line("bank", 8.0)
        'AUC on 400 held-out rows: bank alone 0.832 → with shop 0.876; at most 8 revealed per ...'
        """
        return f"{self._score(label_party)}{_revealed(total)}"

    def _score(self, label_party: str) -> str:
        if self.whole is None or self.own is None:
            return f"No score: {self.unscored}"
        alone = f"{label_party} alone" if self.has_own else "without any column"
        said = (
            f"{self.metric} on {self.rows:,} held-out rows: {alone} {self.own:.3f} → "
            f"with {_listed(self.names)} {self.whole}"
        )
        if not self.parties:
            return said
        return f"{said}; with one party: " + ", ".join(
            f"{name} {figures.released:.3f}" for name, figures in self.parties.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain JSON data."""
        return {**asdict(self), "names": list(self.names)}

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> HeldOutScore:
        """Return the score that :meth:`to_dict` described."""
        whole, parties = spec.get("whole"), spec.get("parties")
        return cls(
            **{
                **spec,
                "whole": None if whole is None else Figures(**whole),
                "parties": parties and {name: Figures(**f) for name, f in parties.items()},
                "names": tuple(spec.get("names", ())),
            }
        )


def _listed(names: Sequence[str]) -> str:
    if not names:
        return PRIVATE_COLUMNS
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _revealed(total: float | None) -> str:
    if total is None:
        return ""
    if not math.isfinite(total):
        return "; nothing is promised about a person"
    return f"; at most {total:.6g} revealed per person"
