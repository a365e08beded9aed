"""Predict rows from the columns or scores that feature parties release about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opboost.errors import PeerError
from opboost.parties.channel import Channel, refuse_all
from opboost.parties.label.known_rows import with_model_presence
from opboost.parties.label.label_rows import LabelRows, where
from opboost.parties.label.predictions import Predicted, check_offers, names_of_party, of_model
from opboost.parties.label.received_release import (
    ReceivedRelease,
    named_apart,
    own_names,
    promise,
    sent_by_all,
)
from opboost.parties.label.score_query import check_score_schema, scores_of, with_scores
from opboost.protocol.messages import Schema, Welcome
from opboost.training.released_columns import ReleasedColumn
from opboost.training.released_columns import rows_of as release_rows

if TYPE_CHECKING:
    from opboost._typing import BoolArray, IntArray
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

    Estimator = OpBoostClassifier | OpBoostRegressor


def predict_by_columns(
    model: Estimator,
    rows: LabelRows,
    channels: Sequence[Channel],
    offers: list[ReceivedRelease],
    without: Sequence[str],
) -> Predicted:
    """Receive every party's columns, and predict the rows.

    ``without`` names parties of the model that do not take part.
    """
    lacking = [n for party in without for n in names_of_party(model, party)]
    offers = named_apart(offers, [*own_names(model.own_columns_), *lacking])
    try:
        check_offers(model, offers, without)
    except PeerError:
        refuse_all(channels, "The columns are not those that the model was trained on.")
        raise
    columns = of_model(model, rows.released(offers), rows.count)
    own = with_model_presence(model, rows.own, columns)
    there = sent_by_all(offers, columns) if rows.choice == "common" and offers else None
    columns, own, places = _sent(rows, columns, own, there)
    return Predicted.of(model, own, columns, places, promise(offers))


def predict_by_scores(
    model: Estimator,
    rows: LabelRows,
    channels: Sequence[Channel],
    welcome: Welcome,
    check: Callable[[Schema, Channel, Welcome], None],
) -> Predicted:
    """Ask every party for its part of the score, and add up the answers.

    ``check`` refuses a schema of other rows, or of a larger total than was announced.
    """
    offers = []
    for channel in channels:
        schema = channel.open_score(welcome)
        check(schema, channel, welcome)
        try:
            check_score_schema(model, schema)
        except PeerError:
            channel.refuse("The release is not the score that was asked for.")
            raise
        offers.append(ReceivedRelease(channel, schema, scores_of(schema)))
    columns = [c for offer in offers for c in offer.received()]
    columns, own, places = _sent(rows, columns, rows.own, sent_by_all(offers, columns))
    parties = [offer.channel.party for offer in offers]
    answers = dict(zip(parties, columns, strict=True))
    return Predicted.of_scores(model, own, answers, places, with_scores(model, answers))


def _sent(
    rows: LabelRows, columns: list[ReleasedColumn], own: Any, there: BoolArray | None
) -> tuple[list[ReleasedColumn], Any, IntArray]:
    """Keep the rows that were sent; ``there`` is None if all were."""
    places = rows.table_places()
    if there is None:
        return columns, own, places
    return release_rows(columns, there), where(own, there), places[there]
