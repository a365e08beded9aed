"""The label party's answer to a pilot: how often to send each column for other people."""

from __future__ import annotations

import math
from collections.abc import Iterator

from opboost.columns.codebook import CodedColumn
from opboost.errors import PeerError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.message_checks import check_private
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Schema, Weights
from opboost.training.column_weights import label_features, quantised, score, usefulness
from opboost.training.released_columns import ReleasedColumn
from opboost.training.targets import Target


def pilot_answer(
    schema: Schema,
    columns: Iterator[tuple[ColumnHead, CodedColumn]],
    target: Target,
    epsilon: float | None = None,
) -> Weights:
    """Weigh a party's columns by its pilot's release, with one column in memory at a time.

    ``epsilon`` first applies randomised response to each label.
    """
    labels = label_features(target, epsilon)
    scores = {c.private.name: score(c, labels) for c in released_columns(schema, columns)}
    weights = quantised(usefulness(scores))
    return Weights(schema.job, tuple(round(-math.log2(weight)) for weight in weights.values()))


def released_columns(
    schema: Schema, columns: Iterator[tuple[ColumnHead, CodedColumn]]
) -> Iterator[ReleasedColumn]:
    """Yield the columns that a schema announces, in its order; refuse a missing one."""
    private = schema.private()
    check_private(private)
    announced = AnnouncedColumns.of(schema, private)
    numbered = enumerate(columns)
    for column in private:
        parts = []
        for _, (number, (head, codes)) in zip(column.release_names(), numbered, strict=False):
            announced.check(head, number)
            parts.append(codes)
        if len(parts) < len(column.release_names()):
            raise PeerError(f"Party {schema.party!r} sent only some columns of its pilot.")
        yield ReleasedColumn(column, tuple(parts))
