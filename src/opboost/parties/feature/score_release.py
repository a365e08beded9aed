"""The checks that a feature party makes before it releases a score, and the table of its scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opboost._typing import BoolArray
from opboost.columns.private_column import PrivateColumn
from opboost.config import Plan
from opboost.config.sections import BoosterSection
from opboost.errors import PrivacyError
from opboost.ledger import Ledger
from opboost.ledger.score_charge import ScoreCharge, check_cap_person, score_attribute
from opboost.parties.feature.outgoing_rows import RawRows
from opboost.parties.feature.party_table import PartyTable
from opboost.promises import LDP
from opboost.scores.score_model import ScoreModel


@dataclass(frozen=True, slots=True)
class AcceptedScore:
    """A score that the party releases: the model, its column, and the budget it is charged to."""

    model: ScoreModel
    column: PrivateColumn
    plan: Plan
    charge: ScoreCharge


def accepted(plan: Plan, table: PartyTable, ledger: Ledger, model: ScoreModel) -> AcceptedScore:
    """Refuse a score that the party does not allow, before anything is drawn or written."""
    budget = plan.score
    if budget is None:
        raise PrivacyError(
            "This party releases no scores: [budget] has no score. Nothing was drawn. Add score = "
            "4.0 to [budget] to allow it, or ask the label party to use columns (--release "
            "columns)."
        )
    if not budget.despite_radius and (near := _nearer(plan)):
        raise PrivacyError(
            f"Column {near!r} protects near values better than others, and near values can have "
            "distant scores. Nothing was drawn. Add score_despite_radius = true to [budget] to "
            "allow plain LDP for scores all the same."
        )
    if table.stored is not None:
        raise PrivacyError(
            "The table is a stored release, which has no values to score. Nothing was drawn. Join "
            "with the table itself."
        )
    check_cap_person(ledger.caps.person)
    model.check(plan.private)
    column = model.column(budget.level)
    reads = tuple(dict.fromkeys(plan.attributes[place] for place in model.reads(plan.private)))
    attribute = score_attribute(model.digest(column))
    scored = Plan(plan.source, (column,), (), (), None, BoosterSection(), (attribute,))
    return AcceptedScore(model, column, scored, ScoreCharge(reads, budget.models))


def _nearer(plan: Plan) -> Any:
    """Return the first column with a stronger guarantee for near values; None if there is none."""
    return next((c.name for c in plan.private if not isinstance(c.guarantee(), LDP)), None)


class ScoredTable(PartyTable):
    """A party's table whose rows are scores."""

    def __init__(self, table: PartyTable, score: AcceptedScore, private: Any, level: float) -> None:
        self._whole, self._score, self._private, self._level = table, score, private, level
        self.stored = None

    def pieces(self) -> Iterator[tuple[Any, int, int]]:
        """Yield the table in pieces, each with the amount read so far and the total."""
        return self._whole.pieces()

    def known(self, piece: Any) -> BoolArray | None:
        """Return which rows of a piece are people whom the party knows; None if all are."""
        return self._whole.known(piece)

    def rows(self, piece: Any, first: int) -> RawRows:
        """Return the scores of a piece as cells, before any noise."""
        rows = self._whole.rows(piece, first)
        assert isinstance(rows, RawRows), "a stored release was refused earlier"
        return RawRows((self._score.model.cells(self._private, rows.prepared, self._level),))
