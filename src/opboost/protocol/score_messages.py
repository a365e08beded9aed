"""The question for a score: trees over one party's cells, and the public cells of their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opboost.protocol.message_rules import BYTES, TEXT, arrow, check_job
from opboost.protocol.packed_lists import packed, unpacked
from opboost.scores.score_model import ScoreModel


@dataclass(frozen=True, slots=True)
class ScoreTask:
    """What the label party wants a feature party to compute and to release in place of columns."""

    job: str
    model: bytes

    KIND: ClassVar = "score task"
    ARROW: ClassVar = arrow(job=TEXT, model=BYTES)

    def __post_init__(self) -> None:
        check_job(self.job)

    @classmethod
    def of(cls, job: str, model: ScoreModel) -> ScoreTask:
        """The message of a model."""
        return cls(job, packed(model.to_plain()))

    def score_model(self) -> ScoreModel:
        """The model, looked at before it is used."""
        return ScoreModel.of_plain(unpacked(self.model, most=4))
