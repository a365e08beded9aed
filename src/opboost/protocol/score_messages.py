"""The request for a score: trees over one party's cells, and the public cells of their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opboost.protocol.message_rules import BYTES, TEXT, arrow, check_job
from opboost.protocol.packed_lists import packed, unpacked
from opboost.scores.score_model import ScoreModel


@dataclass(frozen=True, slots=True)
class ScoreTask:
    """The score that the label party wants a feature party to release instead of columns."""

    job: str
    model: bytes

    KIND: ClassVar = "score task"
    ARROW: ClassVar = arrow(job=TEXT, model=BYTES)

    def __post_init__(self) -> None:
        check_job(self.job)

    @classmethod
    def of(cls, job: str, model: ScoreModel) -> ScoreTask:
        """Build the message for a model."""
        return cls(job, packed(model.to_plain()))

    def score_model(self) -> ScoreModel:
        """Return the model, checked before it is used."""
        return ScoreModel.of_plain(unpacked(self.model, most=4))
