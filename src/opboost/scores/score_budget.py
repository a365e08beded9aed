"""The scores that a feature party allows to be released, in addition to its record budget."""

from __future__ import annotations

from dataclasses import dataclass

from opboost.errors import ParameterError
from opboost.promises import checked_epsilon


@dataclass(frozen=True, slots=True)
class ScoreBudget:
    """The level of one released score, which adds to the record total.

    Args:
        level: Each score is plain LDP at this level, whatever the columns' own promises are.
        models: How many models may be scored about one person in a period.
        despite_radius: Must be true if columns protect near values better than others.  A score
            does not, because near values can have distant scores.

    >>> ScoreBudget(4).level
    4.0
    """

    level: float
    models: int = 1
    despite_radius: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", checked_epsilon("score", self.level))
        if type(self.models) is not int or self.models < 1:
            raise ParameterError(
                f"models, scored about one person in a period, must be a whole number, 1 or more; "
                f"got {self.models!r}."
            )

    @property
    def total(self) -> float:
        """The most that scores reveal about one person in a period."""
        return self.level * self.models
